"""A culprit that is a merge is followed by a bisect of what it merged, for the same people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bisects.document import BisectEnd
from bisects.levels import noise_of
from service.channels.local_git import LocalGit
from service.core.bisections import BisectState
from service.core.errors import CodeHostError
from service.core.model import GitCommit
from service.flows import bisect_merges
from service.store import bisects
from tests.fakes.bisect_world import BisectWorld, a_bisect_world
from tests.fakes.git_fork import GitFork
from tests.fakes.memory_fork import AT
from tests.fakes.run_documents import TREE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.core.bisections import Bisect
    from tests.fakes.postgres_server import PostgresServer

BRANCH = ("Import", "Quiet", "Tidy up", "Merge the topic speed=0.9", "After it speed=0.9")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BisectWorld]:
    url = None
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.new_database()
    with a_bisect_world(tmp_path_factory.mktemp("home"), url) as opened:
        yield opened


def merge_of(world: BisectWorld, *subjects: str) -> tuple[str, str, str]:
    """Push a branch whose fourth commit merged these; return good, merge and bad."""
    good, bad = world.branch(*BRANCH, seen=True)
    merge = world.fork.commits[-2].sha
    merged = [
        GitCommit(
            # Others from the first digits on, as artifacts are called by these.
            sha=f"{number:02x}{merge[2:]}",
            tree=TREE,
            parent=None,
            author="Bob",
            subject=subject,
            committed_at=AT,
        )
        for number, subject in enumerate(subjects)
    ]
    world.fork.merges[merge] = merged
    world.fork.heads |= {commit.sha: commit for commit in merged}
    return good, merge, bad


def all_of(world: BisectWorld) -> list[Bisect]:
    """Return every bisect, oldest first."""
    with world.database.reading() as session:
        return bisects.newest(session)[::-1]


def test_what_a_merge_brought_is_searched_next(world: BisectWorld) -> None:
    good, merge, bad = merge_of(world, "One", "Slower speed=0.9", "Three speed=0.9")
    outer = world.ended(world.ask(good, bad, number=77))
    inner = all_of(world)[-1]
    found = world.document(inner.id)

    assert "Merge the topic" in outer.said
    assert inner.id != outer.id
    assert (inner.state, found.end, found.culprits) == (
        BisectState.OVER,
        BisectEnd.CULPRIT,
        (2,),
    )
    assert "Slower speed=0.9" in inner.said
    parent = world.fork.commit(merge).parent
    assert (inner.question.good, inner.question.bad) == (parent, merge)
    assert (inner.asked_by, inner.via, inner.number) == (outer.asked_by, outer.via, 77)
    spent = world.document(outer.id).minutes_spent
    assert inner.question.budget_minutes == outer.question.budget_minutes - spent
    # Commits of a topic were never looked at one by one; those of the branch were.
    assert {order.trusted for order in world.orders(inner.id)} == {False}
    assert {order.trusted for order in world.orders(outer.id)} == {True}
    assert "Slower speed=0.9" in world.talk.stuck[77, inner.id]
    with world.database.reading() as session:
        material = bisects.material(session, inner.id)
    # The noise is known by then.
    assert (material.noise_sd, material.noise_df) == noise_of(world.document(outer.id))


def test_a_merge_that_is_the_culprit_itself_is_not_searched_for_ever(world: BisectWorld) -> None:
    good, merge, bad = merge_of(world, "One", "Two")
    before = len(all_of(world))
    world.ended(world.ask(good, bad))
    [outer, inner] = all_of(world)[before:]

    assert world.document(inner.id).commits[world.document(inner.id).culprits[0]].sha == merge
    assert outer.state is inner.state is BisectState.OVER


def test_nothing_follows_a_plain_commit_or_a_budget_that_is_spent(
    world: BisectWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = world.branch("Import", "Quiet", "Slower speed=0.9", "After it speed=0.9")
    before = len(all_of(world))
    world.ended(world.ask(good, bad))
    assert len(all_of(world)) == before + 1

    good, _, bad = merge_of(world, "One", "Slower speed=0.9")
    monkeypatch.setattr(bisect_merges, "LEFT_MIN", 1e6)
    before = len(all_of(world))
    world.ended(world.ask(good, bad))
    assert len(all_of(world)) == before + 1


@pytest.fixture
def fork(tmp_path: Path) -> GitFork:
    return GitFork(tmp_path / "fork.git")


def test_what_a_merge_brought_is_read_along_first_parents(fork: GitFork) -> None:
    first = fork.push("One")
    aside = [fork.commit_aside("Aside 1", parent=first)]
    aside.append(fork.commit_aside("Aside 2", parent=aside[0]))
    second = fork.push("Two")
    merge = fork.push("Merge", also=aside[1])
    last = fork.push("After it")
    host = LocalGit(fork.folder)

    found = host.merged_commits(merge, limit=10)

    assert [commit.sha for commit in found] == [second, *aside, merge]
    assert found[0].files == ()
    # The merge has what the branch had meanwhile, beside what it merged.
    assert found[-1].files == ("note",)
    assert len(host.merged_commits(merge, limit=4)) == 4
    assert host.merged_commits(merge, limit=3) == []
    assert host.merged_commits(last, limit=10) == []
    with pytest.raises(CodeHostError, match=r"fork\.git"):
        host.merged_commits("0" * 40, limit=10)


def test_a_merge_of_what_is_there_already_brought_nothing(fork: GitFork) -> None:
    first = fork.push("One")
    fork.push("Two")
    merge = fork.push("Merge of nothing", also=first)

    assert LocalGit(fork.folder).merged_commits(merge, limit=10) == []
