"""The commits of a range as git has them: along first parents, with the paths they touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2
import pytest

from service.channels import local_git
from service.channels.local_git import LocalGit
from service.core.errors import CodeHostError
from tests.fakes.git_fork import GitFork

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def fork(tmp_path: Path) -> GitFork:
    return GitFork(tmp_path / "fork.git")


def test_a_range_is_read_from_good_to_bad_along_first_parents(fork: GitFork) -> None:
    first = fork.push("One")
    aside = fork.commit_aside("Aside", parent=first)
    second = fork.push("Two")
    merge = fork.push("Merge", also=aside)
    third = fork.push("Three")
    host = LocalGit(fork.folder)

    found = host.commits_between(first, third, limit=10)
    assert [commit.sha for commit in found] == [first, second, merge, third]
    assert [commit.sha for commit in host.commits_between(second, merge, limit=10)] == [
        second,
        merge,
    ]
    assert (found[1].subject, found[1].author) == ("Two", "Ada <ada@example.org>")
    assert found[1].committed_at == host.commit(second).committed_at


def test_paths_are_those_beside_the_first_parent(fork: GitFork) -> None:
    first, second = fork.push("One"), fork.push("Two")

    found = LocalGit(fork.folder).commits_between(first, second, limit=2)
    assert [commit.files for commit in found] == [
        (),
        ("note",),
    ]


def test_what_is_no_range_or_too_long_is_empty(fork: GitFork) -> None:
    first = fork.push("One")
    aside = fork.commit_aside("Aside", parent=first)
    second, third = fork.push("Two"), fork.push("Three")
    host = LocalGit(fork.folder)

    assert host.commits_between(third, first, limit=10) == []
    assert host.commits_between(aside, third, limit=10) == []
    assert host.commits_between(first, third, limit=2) == []
    assert len(host.commits_between(first, third, limit=3)) == 3
    assert [commit.sha for commit in host.commits_between(second, second, limit=1)] == [second]


def test_a_commit_that_moves_the_tree_about_is_thinned_evenly(
    fork: GitFork, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fork.push("One")
    repository = pygit2.Repository(str(fork.folder))
    builder = repository.TreeBuilder()
    blob = repository.create_blob(b"x")
    for number in range(25):
        builder.insert(f"file-{number:02}", blob, 0o100644)
    who = pygit2.Signature("Ada", "ada@example.org", 1_760_000_000, 0)
    parents = [pygit2.Oid(hex=first)]
    tree = builder.write()
    large = str(repository.create_commit(None, who, who, "Import files", tree, parents))
    monkeypatch.setattr(local_git, "FILES_MAX", 10)
    [_, found] = LocalGit(fork.folder).commits_between(first, large, limit=2)

    assert 5 <= len(found.files) <= 10
    assert found.files[0] < "file-05"
    assert found.files[-1] > "file-20"


def test_a_commit_that_is_not_there_is_a_transient_error(fork: GitFork) -> None:
    first = fork.push("One")

    with pytest.raises(CodeHostError, match=r"fork\.git"):
        LocalGit(fork.folder).commits_between(first, "0" * 40, limit=2)
