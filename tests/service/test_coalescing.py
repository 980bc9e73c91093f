"""Bursts of pushes: the newest is measured, some in between are skipped, and none is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.core.model import CommitOutcome, CommitState
from service.core.settings import load_settings
from service.flows.bisect_asks import BisectAsks
from service.flows.coalescing import coalesce, evenly
from service.flows.watcher import LOOK_COMMITS_MAX
from service.store import alerts, bisects, commits, events, jobs
from tests.fakes.bisect_world import LongFork
from tests.fakes.memory_fork import AT, MemoryFork, StillClock
from tests.fakes.stored_bisects import HeardFlow
from tests.fakes.walked_steps import WalkedSteps

if TYPE_CHECKING:
    from service.store.database import Database

QUIET = ("Import", "Quiet", "More", "Still")
#: Place of the slow commit among those of the burst, and how many these are.
SLOW, BURST = 23, 50


@pytest.mark.parametrize(
    ("count", "most", "before", "expected"),
    [
        (3, 3, -1, {0, 1, 2}),
        (10, 1, -1, {9}),
        (10, 2, -1, {4, 9}),
        (12, 3, -1, {3, 7, 11}),
        (50, 5, -1, {9, 19, 29, 39, 49}),
    ],
)
def test_kept_commits_lie_evenly_and_the_newest_is_one(
    count: int, most: int, before: int, expected: set[int]
) -> None:
    assert evenly(range(count), most=most, before=before) == expected


def test_what_comes_on_top_of_thinned_commits_is_thinned_with_them() -> None:
    """What is measured before them counts: the gap to it is as long as the others."""
    waiting = [10, 20, 30, 40, 50, *range(51, 61)]

    kept = evenly(waiting, most=5, before=0)

    assert kept == {10, 20, 40, 50, 60}
    assert max(b - a for a, b in zip([0, *sorted(kept)], sorted(kept), strict=False)) == 20


def burst(database: Database) -> WalkedSteps:
    """Walk four quiet commits, then fifty that are pushed at once, the 24th of them slow."""
    fork = LongFork(*QUIET)
    walked = WalkedSteps(database, fork, waiting_commits_max=5, backfill_commits=4)
    walked.walk()
    for place in range(BURST):
        fork.push(f"Change {place} speed={0.88 if place >= SLOW else 1}")
    walked.walk()
    return walked


def test_of_fifty_commits_at_once_five_are_measured(database: Database) -> None:
    walked = burst(database)
    pushed = [walked.commit(number) for number in range(5, 5 + BURST)]
    skipped = [commit for commit in pushed if commit.outcome is CommitOutcome.SKIPPED]

    assert {commit.state for commit in pushed} == {CommitState.FINISHED}
    assert len(skipped) == BURST - 5
    assert pushed[-1].outcome is not CommitOutcome.SKIPPED
    measured = {order.candidate for order in walked.runners.orders}
    assert measured.isdisjoint(commit.sha for commit in skipped)
    assert "50 commits waited, and 5 may" in skipped[0].reason
    with database.reading() as session:
        assert jobs.of_commit(session, "demo", skipped[0].sha) == []
        said = events.of_commit(session, "demo", skipped[0].sha)
    assert said[-1].message.startswith("skipped: not measured")


def test_no_commit_of_a_confirmed_range_is_lost(database: Database) -> None:
    """The skipped ones are in the range of the alert, and candidates of its bisect."""
    walked = burst(database)
    slow = walked.fork.commits[len(QUIET) + SLOW].sha

    with database.reading() as session:
        [alert] = alerts.newest(session)
    between = walked.fork.commits_between(alert.baseline_sha, alert.sha, limit=100)
    assert slow in {commit.sha for commit in between[1:]}
    assert walked.commit(len(QUIET) + SLOW + 1).outcome is CommitOutcome.SKIPPED
    asks = BisectAsks(
        database=database,
        clock=StillClock(),
        code_host=walked.fork,
        settings=load_settings(host_class="small"),
        flow=HeardFlow(),
    )
    bisect, _ = asks.ask_about(alert.id, actor="ada", via="api")
    with database.reading() as session:
        material = bisects.material(session, bisect.id)
    assert [commit.sha for commit in material.commits] == [commit.sha for commit in between]


def test_few_commits_all_wait_for_their_turn(database: Database) -> None:
    fork = MemoryFork(*QUIET)
    walked = WalkedSteps(database, fork, waiting_commits_max=5, backfill_commits=4)
    walked.watcher.look()
    fork.push("One more")
    walked.watcher.look()

    with database.writing() as session:
        assert len(commits.waiting(session, "demo")) == len(QUIET) + 1


def test_a_commit_that_is_measured_or_was_is_never_skipped(database: Database) -> None:
    fork = MemoryFork(*QUIET)
    walked = WalkedSteps(database, fork, waiting_commits_max=1, backfill_commits=1)
    walked.watcher.look()
    for number in range(6):
        fork.push(f"Change {number}")
    begun = walked.begun[0]
    assert walked.steps.order_single("demo", begun.sha) is not None
    walked.watcher.look()

    with database.writing() as session:
        assert coalesce(session, "demo", most=1, at=AT) == set()
        [left] = commits.waiting(session, "demo")
        assert not commits.skip(session, "demo", begun.sha, reason="", at=AT)
    assert left.sha == fork.commits[-1].sha
    assert walked.commit(4).state is CommitState.MEASURING
    # The flow of a skipped commit that was begun before it was skipped ends at once.
    assert walked.steps.order_single("demo", fork.commits[5].sha) is None


def test_a_push_of_more_than_one_look_reads_goes_on_where_the_branch_was(
    database: Database,
) -> None:
    """Else the branch would begin anew, and a change in between would be lost."""
    fork = MemoryFork(*QUIET)
    walked = WalkedSteps(database, fork, waiting_commits_max=3, backfill_commits=3)
    walked.watcher.look()
    for number in range(LOOK_COMMITS_MAX + 20):
        fork.push(f"Change {number}")
    new = walked.watcher.look()

    assert len(new) == LOOK_COMMITS_MAX + 20
    with database.reading() as session:
        assert len(commits.waiting(session, "demo")) <= 3
        ancestors = commits.first_parents(session, "demo", fork.commits[-1].sha)
    assert ancestors[0].sha == fork.commits[-2].sha
    assert len(ancestors) > LOOK_COMMITS_MAX - 2
