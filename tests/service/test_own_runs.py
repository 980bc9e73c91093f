"""Commits and their own runs along the branch: the newest, the first, and those of a backfill."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from results.metric import THROUGHPUT
from service.core.digests import Window
from service.store import commits, digest_facts, overview, series, trends
from tests.fakes.stored_fork import a_stored_run, git_commit, measured
from tests.fakes.stored_weeks import HOUR, MONDAY, SAME, SLOWER, Weeks, sha_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.store.database import Database

OLD = "e" * 40
OLDER = "d" * 40


def backfilled(session: Session, *shas: str) -> None:
    """Measure commits that came before all others, oldest first."""
    told = [git_commit(sha) for sha in shas]
    commits.register_before(session, "demo", told, at=MONDAY, reason="not measured yet")
    for sha in shas:
        a_stored_run(session, measured(f"run-{sha[:1]}", sha, scan=1.0, point=5e4))


@pytest.fixture
def stored(database: Database) -> Database:
    """Two commits alone, one in a pair too, and two of a backfill."""
    with database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY)
        weeks.confirmed(MONDAY + HOUR, {"scan": SLOWER, "point-query": SAME})
        backfilled(session, OLDER, OLD)
    return database


def test_the_newest_come_first_and_pairs_are_left_out(stored: Database) -> None:
    with stored.reading() as session:
        found = overview.newest_runs(session, "demo")
        few = overview.newest_runs(session, "demo", limit=1)

    assert [run.sha for run in found] == [sha_of(2), sha_of(1), OLD, OLDER]
    assert [run.id for run in found] == ["demo-2", "demo-1", "run-e", "run-d"]
    assert few == found[:1]


def test_another_branch_has_runs_of_its_own(stored: Database) -> None:
    with stored.reading() as session:
        assert overview.newest_runs(session, "demo", branch="11.4") == []
        assert len(overview.newest_runs(session, "demo", branch="main")) == 4
        assert overview.newest_runs(session, "another") == []


def test_a_backfill_does_not_move_what_others_are_compared_with(stored: Database) -> None:
    with stored.reading() as session:
        found = overview.reference_run(session, "demo")

    assert found is not None
    assert found.sha == sha_of(1)


def test_a_commit_of_a_backfill_can_be_chosen(stored: Database) -> None:
    with stored.reading() as session:
        found = overview.reference_run(session, "demo", chosen=OLD[:8])
        assert overview.reference_run(session, "demo", chosen="0%") is None
        assert overview.reference_run(session, "demo", chosen="_") is None

    assert found is not None
    assert found.id == "run-e"


def test_where_nothing_else_is_measured_the_first_of_a_backfill_stands(database: Database) -> None:
    with database.writing() as session:
        Weeks(session)._seen(MONDAY, subject="A change", author="Ada")
        backfilled(session, OLDER, OLD)
        found = overview.reference_run(session, "demo")

    assert found is not None
    assert found.sha == OLDER


def test_a_digest_compares_with_the_first_commit_that_was_seen(stored: Database) -> None:
    window = Window(fork="demo", begins=MONDAY, until=MONDAY + timedelta(weeks=1))
    with stored.reading() as session:
        ids = [key.id for key in series.of_fork(session, "demo", metric=THROUGHPUT.name)]
        first = digest_facts.reference(session, window, ids, chosen=None)
        chosen = digest_facts.reference(session, window, ids, chosen=OLD)
        none = digest_facts.reference(session, window, ["nothing"], chosen=None)

    assert first is not None
    assert first.sha == sha_of(1)
    assert chosen is not None
    assert chosen.sha == OLD
    assert none is None


def test_what_is_stored_after_a_window_is_not_in_it(stored: Database) -> None:
    window = Window(fork="demo", begins=MONDAY, until=MONDAY + HOUR)
    with stored.reading() as session:
        (scan,) = [
            one for one in digest_facts.histories(session, window) if one.series.workload == "scan"
        ]

    assert [point.sha for point in scan.points] == [sha_of(1)]


def test_points_of_a_series_are_in_branch_order(stored: Database) -> None:
    with stored.reading() as session:
        (key,) = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        points = series.points(session, key.id)
        two = trends.runs_of(session, key, limit=2)
        between = trends.runs_of(session, key, first=-1, last=0)

    assert [point.sha for point in points] == [OLDER, OLD, sha_of(1), sha_of(2)]
    assert [run.sha for run in two] == [sha_of(1), sha_of(2)]
    assert [run.sha for run in between] == [OLD, sha_of(1)]
