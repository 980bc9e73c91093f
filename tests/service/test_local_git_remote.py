"""Pull requests and mirrors, with a real remote: another repository on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2
import pytest

from service.channels.local_git import LocalGit
from service.core.errors import CodeHostError
from tests.fakes.git_fork import GitFork

if TYPE_CHECKING:
    from pathlib import Path


class Forge:
    """A forge with a pull request, and an ordinary bare clone of it."""

    def __init__(self, folder: Path) -> None:
        self.origin = GitFork(folder / "origin.git")
        self.parted = self.origin.push("One")
        self.clone = pygit2.clone_repository(
            str(self.origin.folder), str(folder / "clone.git"), bare=True
        )
        self.tip = self.origin.push("Two")
        self.host = LocalGit(folder / "clone.git")

    def pull(self, number: int, subject: str, *, parent: str | None = None) -> str:
        """Push a head to a pull request on the forge; return its hash."""
        head = self.origin.commit_aside(subject, parent=parent or self.parted)
        theirs = pygit2.Repository(str(self.origin.folder))
        name = f"refs/pull/{number}/head"
        theirs.references.create(name, pygit2.Oid(hex=head), force=True)
        return head


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return Forge(tmp_path)


def test_a_head_is_fetched_with_the_place_where_it_parted(forge: Forge) -> None:
    head = forge.pull(7, "Faster")
    found = forge.host.pull_request(7, base="main")

    assert (found.head.sha, found.head.subject) == (head, "Faster")
    assert found.merge_base is not None
    assert found.merge_base.sha == forge.parted
    assert forge.host.commit(head) == found.head


def test_the_base_branch_is_as_new_as_the_head(forge: Forge) -> None:
    """Whoever merged the newest base into the head is not measured against what that brought."""
    forge.pull(7, "Faster", parent=forge.tip)
    found = forge.host.pull_request(7, base="main")

    assert found.merge_base is not None
    assert found.merge_base.sha == forge.tip


def test_a_new_head_takes_the_place_of_the_old_one(forge: Forge) -> None:
    """Also one that does not follow from it, as after a rebase."""
    forge.pull(7, "Faster")
    forge.host.pull_request(7, base="main")
    head = forge.pull(7, "Faster still")

    assert forge.host.pull_request(7, base="main").head.sha == head


def test_only_our_own_references_are_written(forge: Forge) -> None:
    before = {name: forge.clone.references[name].target for name in forge.clone.references}
    forge.pull(7, "Faster")
    forge.host.pull_request(7, base="main")
    after = {name: forge.clone.references[name].target for name in forge.clone.references}

    assert {name for name in after if not name.startswith("refs/forkwatch/")} >= set(before)
    assert after["refs/heads/main"] == before["refs/heads/main"]
    new = set(after) - set(before)
    assert {"refs/forkwatch/pull/7", "refs/forkwatch/base/main"} <= new
    assert all(name.startswith(("refs/forkwatch/", "refs/remotes/origin/")) for name in new)


def test_without_a_remote_the_repository_itself_is_read(tmp_path: Path) -> None:
    fork = GitFork(tmp_path / "fork.git")
    parted = fork.push("One")
    head = fork.commit_aside("Faster", parent=parted)
    own = pygit2.Repository(str(fork.folder))
    own.references.create("refs/pull/7/head", pygit2.Oid(hex=head))

    found = LocalGit(fork.folder).pull_request(7, base="main")
    assert found.head.sha == head
    assert found.merge_base is not None
    assert found.merge_base.sha == parted


def test_histories_that_never_met_have_no_merge_base(forge: Forge) -> None:
    theirs = pygit2.Repository(str(forge.origin.folder))
    who = pygit2.Signature("Eve", "eve@example.org", 1_760_000_000, 0)
    tree = theirs.TreeBuilder().write()
    theirs.create_commit("refs/pull/8/head", who, who, "Alone", tree, [])

    assert forge.host.pull_request(8, base="main").merge_base is None


@pytest.mark.parametrize(
    ("number", "base"), [(9, "main"), (7, "gone"), (7, "a b"), (7, "x:refs/heads/main"), (7, "*")]
)
def test_what_the_remote_has_not_is_a_transient_error(forge: Forge, number: int, base: str) -> None:
    forge.pull(7, "Faster")

    with pytest.raises(CodeHostError):
        forge.host.pull_request(number, base=base)


def test_a_remote_that_is_away_is_a_transient_error(forge: Forge, tmp_path: Path) -> None:
    forge.clone.remotes.set_url("origin", str(tmp_path / "gone.git"))

    with pytest.raises(CodeHostError, match="cannot be fetched from origin"):
        forge.host.pull_request(7, base="main")


def test_names_are_branches_tags_and_hashes(forge: Forge) -> None:
    host = forge.host
    forge.clone.references.create("refs/tags/v1", pygit2.Oid(hex=forge.parted))
    resolved = {
        name: host.resolve(name)
        for name in ("main", "v1", forge.parted, forge.parted[:9], "main~0", "main^0")
    }

    assert {name: found and found.sha for name, found in resolved.items()} == dict.fromkeys(
        resolved, forge.parted
    )


@pytest.mark.parametrize(
    "name",
    [
        "nowhere",
        "",
        "main~9",
        "0" * 40,
        "abcdefa",
        "a..b",
        "main:forkwatch.toml",
        "main^{tree}",
        "@{-1}",
        ":/One",
        "-q",
        "x.lock",
    ],
)
def test_what_names_no_commit_is_none(forge: Forge, name: str) -> None:
    assert forge.host.resolve(name) is None


def test_a_head_of_a_pull_request_has_no_name(forge: Forge) -> None:
    """Only its hash: whoever names it has seen which it is."""
    head = forge.pull(7, "Faster")
    forge.host.pull_request(7, base="main")

    for name in ("pull/7", "forkwatch/pull/7", "refs/forkwatch/pull/7", "pull/7/head"):
        assert forge.host.resolve(name) is None
    found = forge.host.resolve(head)
    assert found is not None
    assert found.sha == head


def test_a_mirror_is_brought_up_to_date_and_nothing_else_is(forge: Forge) -> None:
    forge.host.refresh("main")
    assert [commit.sha for commit in forge.host.branch_commits("main", limit=9)] == [forge.parted]

    forge.clone.config["remote.origin.mirror"] = True
    forge.host.refresh("main")
    assert [commit.sha for commit in forge.host.branch_commits("main", limit=9)] == [
        forge.parted,
        forge.tip,
    ]
