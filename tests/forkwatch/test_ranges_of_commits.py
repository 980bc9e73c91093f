from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forkwatch.bisect_range import read_range
from forkwatch.errors import DoorError
from runner import shell
from runner.errors import OperatorError
from tests.runner.tiny_fork import TinyFork

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def fork(tmp_path: Path) -> TinyFork:
    return TinyFork(tmp_path / "fork")


def git(fork: TinyFork, *words: str) -> str:
    who = ("-c", "user.name=Grace Hopper", "-c", "user.email=grace@example.com")
    done = shell.run(["git", *who, "-C", str(fork.folder), *words], timeout_s=60)
    assert done.ok, done.stderr
    return done.stdout.strip()


def test_a_range_is_the_good_end_and_all_after_it_oldest_first(fork: TinyFork) -> None:
    second = fork.commit("second", fork.launcher("2"))
    third = fork.commit("third\x1ftail", {"README.md": "words\n", "new name.c": "int x;\n"})

    found = read_range(fork.folder, fork.first, "main")

    assert [one.sha for one in found.commits] == [fork.first, second, third]
    assert [one.files for one in found.commits] == [
        (),
        ("launcher.c",),
        ("README.md", "new name.c"),
    ]
    assert found.commits[1].subject == "second"
    assert found.commits[1].author == "A Tester"
    assert found.commits[2].subject == "third\x1ftail"
    assert found.commits[1].committed_at.tzinfo is not None
    assert found.parents[1:] == ((fork.first,), (second,))
    assert found.trees[1] == git(fork, "rev-parse", f"{second}^{{tree}}")


def test_a_renamed_file_is_touched_under_both_names(fork: TinyFork) -> None:
    git(fork, "mv", "launcher.c", "other.c")
    git(fork, "commit", "--quiet", "--message", "renamed")

    found = read_range(fork.folder, fork.first, "HEAD")

    assert set(found.commits[1].files) == {"launcher.c", "other.c"}


def a_merge(fork: TinyFork) -> tuple[str, str, str]:
    """A commit on main, two on a branch, and their merge."""
    git(fork, "checkout", "--quiet", "-b", "side")
    fork.commit("side 1", {"side.c": "1\n"})
    side = fork.commit("side 2", {"side.c": "2\n"})
    git(fork, "checkout", "--quiet", "main")
    main = fork.commit("main 1", {"README.md": "main\n"})
    git(fork, "merge", "--quiet", "--no-ff", "--message", "merge side", "side")
    return main, side, git(fork, "rev-parse", "HEAD")


def test_a_merge_is_one_commit_with_everything_that_it_brings(fork: TinyFork) -> None:
    main, side, merge = a_merge(fork)

    found = read_range(fork.folder, fork.first, merge)

    assert [one.sha for one in found.commits] == [fork.first, main, merge]
    assert found.commits[2].files == ("side.c",)
    assert found.parents[2] == (main, side)
    assert found.commits[2].author == "Grace Hopper"
    assert found.commits[2].subject == "merge side"


def test_a_good_end_that_was_merged_in_is_refused_with_the_commit_to_begin_at(
    fork: TinyFork,
) -> None:
    _, side, merge = a_merge(fork)

    with pytest.raises(DoorError, match="came into") as refused:
        read_range(fork.folder, side, merge)

    assert f"forkwatch bisect {fork.first[:8]} {merge}" in str(refused.value)


def test_ends_that_are_no_range_are_refused_with_what_to_do(fork: TinyFork) -> None:
    _, side, merge = a_merge(fork)
    git(fork, "checkout", "--quiet", "-b", "late", fork.first)
    late = fork.commit("late", {"late.c": "1\n"})

    with pytest.raises(DoorError, match="are the same commit"):
        read_range(fork.folder, "late", late)
    with pytest.raises(DoorError, match=f"forkwatch bisect {fork.first} late"):
        read_range(fork.folder, "late", fork.first)
    with pytest.raises(DoorError, match=f"parted at {fork.first[:8]}: forkwatch bisect"):
        read_range(fork.folder, "late", merge)
    with pytest.raises(DoorError, match="no ancestor"):
        read_range(fork.folder, late, side)
    with pytest.raises(OperatorError, match="no commit 'nowhere'"):
        read_range(fork.folder, fork.first, "nowhere")
