from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from service.channels.local_git import LocalGit
from service.core.errors import CodeHostError
from tests.fakes.git_fork import GitFork
from tests.fakes.scripted_measurement import PLAN

if TYPE_CHECKING:
    from pathlib import Path


def test_commits_come_oldest_first_along_first_parents(tmp_path: Path) -> None:
    fork = GitFork(tmp_path / "fork.git")
    first = fork.push("One")
    aside = fork.commit_aside("Aside", parent=first)
    second = fork.push("Two\n\nBody.")
    merge = fork.push("Merge", also=aside)
    host = LocalGit(fork.folder)

    found = host.branch_commits("main", limit=10)
    assert [(commit.sha, commit.parent) for commit in found] == [
        (first, None),
        (second, first),
        (merge, second),
    ]
    assert [commit.sha for commit in host.branch_commits("main", limit=2)] == [second, merge]
    assert host.commit(second) == found[1]
    assert (found[1].subject, found[1].author) == ("Two", "Ada <ada@example.org>")
    assert found[1].committed_at == datetime.fromtimestamp(1_760_000_120, UTC)
    assert found[1].committed_at.tzinfo == UTC


def test_the_plan_is_that_of_the_default_branch(tmp_path: Path) -> None:
    fork = GitFork(tmp_path / "fork.git")
    fork.push("One")

    assert LocalGit(fork.folder).plan_text() == PLAN


@pytest.mark.parametrize("case", ["no repository", "no commit", "no branch", "no sha"])
def test_what_cannot_be_read_is_a_transient_error_that_says_what(case: str, tmp_path: Path) -> None:
    host = LocalGit(tmp_path / "fork.git")
    if case != "no repository":
        fork = GitFork(tmp_path / "fork.git")
        if case != "no commit":
            fork.push("One")

    with pytest.raises(CodeHostError, match=r"fork\.git"):
        if case == "no branch":
            host.branch_commits("release", limit=1)
        elif case == "no sha":
            host.commit("0" * 40)
        else:
            host.plan_text()
