"""Backfills: the past is measured when nothing else waits, and is history and no news."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from results.metric import THROUGHPUT
from service.core.alert_actions import SERVICE_ACTOR
from service.core.backfills import (
    COMMITS_MAX,
    BackfillOrder,
    BackfillRefusedError,
    BackfillState,
    in_order,
    spread,
)
from service.core.errors import NotFoundError
from service.core.model import CommitOutcome, EventKind
from service.flows.old_levels import NOTE
from service.store import alerts, baseline_marks, commits, events, series, verdicts
from service.web.history_notes import fork_notes
from tests.fakes.memory_fork import MemoryFork
from tests.fakes.walked_steps import WalkedSteps

if TYPE_CHECKING:
    from service.core.backfills import Backfill
    from service.store.database import Database

PAST, SEEN = 12, 3


def a_walk(database: Database, *past: str) -> WalkedSteps:
    """Walk the three newest commits of a branch whose older ones nobody has looked at."""
    older = past or tuple(f"Past {number}" for number in range(PAST))
    walked = WalkedSteps(database, MemoryFork(*older, "One", "Two", "Three"), backfill_commits=SEEN)
    walked.walk()
    return walked


def ask(walked: WalkedSteps, count: int, order: BackfillOrder = BackfillOrder.SPREAD) -> Backfill:
    return walked.asks.ask("demo", count, order=order, actor="operator", via="shell")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 101])
def test_a_spread_has_each_place_once_and_the_ends_first(count: int) -> None:
    places = spread(count)

    assert sorted(places) == list(range(count))
    if count > 1:
        assert places[:2] == [count - 1, 0]
    for length in range(3, count):
        kept = sorted(places[:length])
        gaps = [b - a for a, b in pairwise(kept)]
        assert max(gaps) <= 2 * min(gaps) + 2


def test_oldest_first_is_the_order_of_the_branch() -> None:
    assert in_order("abc", BackfillOrder.OLDEST_FIRST) == ("a", "b", "c")
    assert in_order("abc", BackfillOrder.SPREAD) == ("c", "a", "b")


def test_the_newest_commits_before_the_first_seen_are_measured_in_order(
    database: Database,
) -> None:
    walked = a_walk(database)
    backfill = ask(walked, 4, BackfillOrder.OLDEST_FIRST)
    shas = [commit.sha for commit in walked.fork.commits]
    expected = tuple(shas[PAST - 4 : PAST])

    assert backfill.commits == expected
    assert [about.partition("/")[2] for about in walked.backfill.waiting()] == list(expected)
    assert walked.commit(PAST).outcome is CommitOutcome.SKIPPED
    walked.walk_aside(walked.backfill)

    started = [order.candidate for order in walked.runners.orders]
    assert started[SEEN:] == list(expected)
    assert [one.backfill.state for one in walked.asks.newest("demo")] == [BackfillState.DONE]
    assert walked.backfill.waiting() == []


def test_what_is_measured_is_history_and_no_news(database: Database) -> None:
    """One of them is as slow as can be: nobody is told, and nothing is judged."""
    older = [f"Past {number}" for number in range(PAST)]
    older[8] = "A slow one speed=0.5"
    walked = a_walk(database, *older)
    ask(walked, PAST)
    walked.walk_aside(walked.backfill)

    slow = walked.commit(9)
    assert (slow.outcome, slow.state.value) == (CommitOutcome.BASELINE, "finished")
    assert "for the baseline alone" in slow.reason
    with database.reading() as session:
        assert alerts.newest(session) == []
        assert verdicts.of_commit(session, "demo", slow.sha) == []
        kinds = [event.kind for event in events.of_commit(session, "demo", slow.sha)]
    assert kinds == [
        EventKind.SEEN,
        EventKind.DISPATCHED,
        EventKind.STORED,
        EventKind.FINISHED,
    ]
    assert {order.baseline for order in walked.runners.orders} == {None}


def test_the_next_commit_is_compared_with_the_past_too(database: Database) -> None:
    walked = a_walk(database)
    ask(walked, PAST)
    walked.walk_aside(walked.backfill)
    walked.fork.push("Four")
    walked.walk()

    with database.reading() as session:
        found = verdicts.of_commit(session, "demo", walked.fork.commits[-1].sha)
        ancestors = commits.first_parents(session, "demo", walked.fork.commits[-1].sha)
    assert {len(verdict.baseline_inputs) for verdict in found} == {PAST + SEEN}
    assert [commit.position for commit in ancestors] == list(range(2, -PAST - 1, -1))


def test_where_the_past_was_at_another_level_the_baseline_begins_at_the_present_one(
    database: Database,
) -> None:
    """Else it would be of two levels, and so wide that the next loss hides in it."""
    older = [f"Past {number} speed={0.85 if number < 6 else 1}" for number in range(12)]
    walked = a_walk(database, *older)
    ask(walked, 12)
    walked.walk_aside(walked.backfill)

    with database.reading() as session:
        [scan] = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        [point] = series.of_fork(session, "demo", workload="point-query", metric=THROUGHPUT.name)
        shas = [commit.sha for commit in walked.fork.commits]
        assert baseline_marks.beginnings(session, scan.id, shas) == {shas[6]}
        assert baseline_marks.beginnings(session, point.id, shas) == set()
        mark = baseline_marks.find(session, scan.id, shas[6])
    assert mark is not None
    assert (mark.actor, mark.note) == (SERVICE_ACTOR, NOTE)
    walked.fork.push("Slower speed=0.93")
    walked.walk()
    assert walked.fork.commits[-1].sha in walked.alerts_by_sha()


def test_a_past_that_does_not_build_says_so_and_the_rest_goes_on(database: Database) -> None:
    older = ["Past 0", "Past 1 outcome=build-failed", "Past 2 lose=99", "Past 3"]
    walked = a_walk(database, *older)
    ask(walked, 4)
    walked.walk_aside(walked.backfill)

    outcomes = [walked.commit(number).outcome for number in range(1, 5)]
    assert outcomes == [
        CommitOutcome.BASELINE,
        CommitOutcome.BUILD_FAILED,
        CommitOutcome.FAILED,
        CommitOutcome.BASELINE,
    ]
    assert "brought no run after 3 attempts" in walked.commit(3).reason


def test_a_cancelled_backfill_goes_no_further_and_may_be_asked_again(
    database: Database,
) -> None:
    walked = a_walk(database)
    ask(walked, 5)
    waiting = walked.backfill.waiting()
    walked.walk_aside(walked.backfill, most=2)
    ended = walked.asks.cancel("demo", actor="operator")

    assert (ended.backfill.state, ended.done) == (BackfillState.CANCELLED, 2)
    assert walked.backfill.waiting() == []
    assert walked.backfill.order(waiting[2]) is None
    with pytest.raises(NotFoundError, match="no backfill"):
        walked.asks.cancel("demo", actor="operator")
    again = ask(walked, 6)
    assert len(again.commits) == 6
    assert len(walked.backfill.waiting()) == 4


def test_a_backfill_is_said_on_the_first_page_while_it_is_under_way(database: Database) -> None:
    walked = a_walk(database)
    with database.reading() as session:
        assert fork_notes(session, "demo") == ()
    ask(walked, 3)
    walked.walk_aside(walked.backfill, most=1)

    with database.reading() as session:
        [line] = fork_notes(session, "demo")
    assert line.startswith("Backfill: 1 of 3 commits")
    walked.walk_aside(walked.backfill)
    with database.reading() as session:
        assert fork_notes(session, "demo") == ()


def test_doing_a_step_again_changes_nothing(database: Database) -> None:
    walked = a_walk(database)
    ask(walked, 2)
    [first, _] = walked.backfill.waiting()
    jobs = {walked.backfill.order(first), walked.backfill.order(first)}
    walked.walk_aside(walked.backfill, most=1)
    walked.backfill.note(first)

    assert len(jobs) == 1
    assert walked.asks.newest("demo")[0].done == 1
    with database.reading() as session:
        told = events.of_commit(session, "demo", first.partition("/")[2])
    assert [event.kind for event in told].count(EventKind.FINISHED) == 1


def test_what_cannot_be_backfilled_is_refused_with_what_to_do(database: Database) -> None:
    walked = a_walk(database)

    with pytest.raises(BackfillRefusedError, match=f"1 to {COMMITS_MAX}"):
        ask(walked, COMMITS_MAX + 1)
    with pytest.raises(NotFoundError, match="watches 'demo'"):
        walked.asks.ask("other", 3, order=BackfillOrder.SPREAD, actor="operator", via="shell")
    ask(walked, 3)
    with pytest.raises(BackfillRefusedError, match="under way"):
        ask(walked, 3)
    walked.walk_aside(walked.backfill)
    with pytest.raises(BackfillRefusedError, match="were looked at"):
        ask(walked, 3)


def test_before_the_first_look_and_at_the_beginning_of_a_branch_there_is_no_past(
    database: Database,
) -> None:
    walked = WalkedSteps(database, MemoryFork("One", "Two"))
    with pytest.raises(NotFoundError, match="is the service running"):
        ask(walked, 1)
    walked.watcher.look()
    with pytest.raises(BackfillRefusedError, match="no commit before"):
        ask(walked, 1)


def test_a_flow_that_fails_ends_the_backfill_and_loses_no_commit(database: Database) -> None:
    walked = a_walk(database)
    ask(walked, 3)
    walked.backfill.give_up(walked.backfill.waiting()[0], "PlanError")
    [told] = walked.asks.newest("demo")

    assert told.backfill.state is BackfillState.CANCELLED
    assert "could not go on (PlanError)" in told.words
    assert len(ask(walked, 3).commits) == 3
    assert told.done == 0
