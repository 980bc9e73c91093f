"""A history is kept whole, wherever it is, and whoever else writes there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from forkwatch import history_places
from forkwatch.history_places import BranchPlace, FolderPlace, PlaceError
from runner import shell
from tests.fakes.git_fork import GitFork

NAME, OTHER = "series/0011223344556677.jsonl", "series/8899aabbccddeeff.jsonl"


def git(folder, *words):
    done = shell.run(["git", "-C", str(folder), *words], timeout_s=60)
    assert done.ok, done.stderr
    return done.stdout.strip()


@pytest.fixture
def origin(tmp_path):
    """The fork's own repository, bare, with two commits."""
    fork = GitFork(tmp_path / "origin.git")
    fork.push("one")
    fork.push("two")
    return fork.folder


def clone(origin, name, *options):
    folder = origin.parent / name
    words = ["git", "clone", "--quiet", *options, f"file://{origin}", str(folder)]
    assert shell.run(words, timeout_s=60).ok
    return BranchPlace(repository=folder, branch="history")


@pytest.fixture(params=["folder", "branch", "own", "partial"])
def place(request, origin):
    """Every kind of place."""
    if request.param == "folder":
        return FolderPlace(folder=origin.parent / "kept" / "here")
    if request.param == "own":
        return BranchPlace(repository=origin, branch="perf/history", remote=".")
    if request.param == "partial":
        git(origin, "config", "uploadpack.allowFilter", "true")
        sparse = ("--filter=blob:none", "--no-checkout")
        return clone(origin, "partial", *sparse)
    return clone(origin, "clone")


def append(text):
    return lambda files: {NAME: files.get(NAME, "") + text}


def test_an_empty_place_has_nothing(place):
    assert place.read([NAME]) == {}


def test_what_was_written_is_read_and_what_was_not_named_stays(place):
    assert place.update([NAME], append("a\n"), message="first")
    assert place.update([OTHER], lambda _: {OTHER: "other\n"}, message="second")
    assert place.update([NAME], append("b\n"), message="third")

    assert place.read([NAME, OTHER]) == {NAME: "a\nb\n", OTHER: "other\n"}
    assert place.read([OTHER]) == {OTHER: "other\n"}


def test_no_change_writes_nothing(place):
    place.update([NAME], append("a\n"), message="first")

    assert not place.update([NAME], lambda _: {}, message="nothing")
    assert place.read([NAME]) == {NAME: "a\n"}


def test_the_branch_holds_the_history_alone_and_the_checkout_is_left_alone(origin):
    place = clone(origin, "clone")
    (place.repository / "note").write_text("work in progress")
    head = git(place.repository, "rev-parse", "HEAD")
    place.update([NAME], append("a\n"), message="Run of abc")

    assert git(origin, "ls-tree", "-r", "--name-only", "history") == NAME
    assert git(origin, "log", "--format=%s %an", "history") == "Run of abc forkwatch"
    assert git(place.repository, "rev-parse", "HEAD") == head
    assert git(place.repository, "status", "--porcelain") == "M note"
    assert git(place.repository, "branch", "--list", "history") == ""


def test_hooks_of_the_fork_do_not_run(origin):
    place = clone(origin, "clone")
    hook = place.repository / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)

    assert place.update([NAME], append("a\n"), message="first")


def test_a_push_in_between_is_no_conflict(origin):
    mine, theirs = clone(origin, "mine"), clone(origin, "theirs")
    mine.update([NAME], append("before\n"), message="before")
    seen = []

    def change(files):
        if not seen:
            theirs.update([NAME], append("theirs\n"), message="theirs")
        seen.append(files[NAME])
        return {NAME: files[NAME] + "mine\n"}

    assert mine.update([NAME], change, message="mine")
    assert seen == ["before\n", "before\ntheirs\n"]
    assert theirs.read([NAME]) == {NAME: "before\ntheirs\nmine\n"}


def test_the_first_push_in_between_is_none_either(origin):
    mine, theirs = clone(origin, "mine"), clone(origin, "theirs")
    seen = []

    def change(files):
        if not seen:
            theirs.update([NAME], append("theirs\n"), message="theirs")
        seen.append(files)
        return {NAME: files.get(NAME, "") + "mine\n"}

    assert mine.update([NAME], change, message="mine")
    assert mine.read([NAME]) == {NAME: "theirs\nmine\n"}


@pytest.mark.parametrize("kind", ["folder", "branch"])
def test_many_writers_at_once_lose_nothing(origin, kind):
    writers = [f"writer-{number}" for number in range(4)]
    if kind == "folder":
        places = [FolderPlace(folder=origin.parent / "kept")] * 4
    else:
        places = [clone(origin, name) for name in writers]

    def write(place, name):
        for turn in range(3):
            place.update([NAME], append(f"{name} {turn}\n"), message=name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, places, writers))

    lines = places[0].read([NAME])[NAME].splitlines()
    assert sorted(lines) == sorted(f"{name} {turn}" for name in writers for turn in range(3))
    for name in writers:
        assert [line for line in lines if line.startswith(name)] == [
            f"{name} {turn}" for turn in range(3)
        ]


def test_somebody_who_is_always_quicker_is_an_error_in_the_end(origin, monkeypatch):
    monkeypatch.setattr(history_places, "PAUSE_S", 0.0)
    monkeypatch.setattr(history_places, "ATTEMPTS_MAX", 2)
    mine, theirs = clone(origin, "mine"), clone(origin, "theirs")

    def change(files):
        theirs.update([NAME], append("theirs\n"), message="theirs")
        return {NAME: files.get(NAME, "") + "mine\n"}

    with pytest.raises(PlaceError, match="run this again"):
        mine.update([NAME], change, message="mine")


def test_a_refused_push_says_what_the_remote_said(origin):
    place = clone(origin, "clone")
    hook = origin / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho protected >&2\nexit 1\n")
    hook.chmod(0o755)

    with pytest.raises(PlaceError, match="history cannot be pushed to origin"):
        place.update([NAME], append("a\n"), message="first")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"branch": "a..b"}, "cannot be the name of a branch"),
        ({"branch": "--force"}, "cannot be the name of a branch"),
        ({"remote": "--upload-pack=touch pwned"}, "is not a remote"),
        ({"remote": "nowhere"}, "cannot be fetched from nowhere"),
    ],
)
def test_names_that_cannot_be_are_refused(origin, change, said):
    names = {"repository": clone(origin, "clone").repository, "branch": "history"} | change

    with pytest.raises(PlaceError, match=said):
        BranchPlace(**names).update([NAME], append("a\n"), message="first")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    place = FolderPlace(folder=tmp_path)
    place.update([NAME], lambda _: {NAME: "x" * (1024 * 1024 + 1)}, message="")

    with pytest.raises(PlaceError, match="1048577 bytes"):
        place.read([NAME])
