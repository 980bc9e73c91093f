"""Commits as git names them, whatever people are called."""

from __future__ import annotations

import pytest

from runner import checkout, shell
from runner.errors import OperatorError


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit whose author has a control character in their name."""
    folder = tmp_path / "fork"
    git = ["git", "-C", str(folder), "-c", "user.email=ada@example.org"]
    assert shell.run(["git", "init", "--quiet", str(folder)], timeout_s=60).ok
    words = ["-c", "user.name=Ada\x1fX", "commit", "--quiet", "--allow-empty", "-m", "One \x1f two"]
    done = shell.run([*git, *words], timeout_s=60)
    assert done.ok, done.stderr
    return folder


def test_a_separator_in_a_name_is_no_error(repository):
    commit = checkout.resolve(repository, "HEAD")

    assert len(commit.sha) == 40
    assert commit.author == "Ada"
    assert commit.subject.endswith("two")
    assert commit.parents == ()


@pytest.mark.parametrize("revision", ["nothing", "--all"])
def test_what_names_no_commit_is_refused(repository, revision):
    with pytest.raises(OperatorError, match=r"no commit|not a revision"):
        checkout.resolve(repository, revision)
