"""Old slices become one sample for each start, but for what alerts and baselines rest on."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select

from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.model import AlertState, CommitOutcome
from service.flows.baseline import level_at
from service.flows.retention import Pruned, runs_in_use
from service.store import alerts, commits, retention, samples, series, verdicts
from service.store.retention import level_of
from service.store.tables import EventRow, VerdictRow
from tests.fakes.memory_fork import AT
from tests.fakes.old_runs import (
    a_branch,
    a_run_with_seconds,
    a_year_later,
    accept_level,
    rows_of,
)
from tests.fakes.stored_fork import (
    SHAS,
    a_fork,
    a_stored_run,
    a_week,
    finished,
    git_commit,
    measured,
)

if TYPE_CHECKING:
    from service.store.database import Database


def close_the_alert(database: Database) -> None:
    with database.writing() as session:
        [alert] = alerts.newest(session)
        alerts.keep(session, replace(alert, state=AlertState.FIXED, closed_at=AT))


def test_one_sample_for_each_start_stays_and_the_level_is_what_it_was(database: Database) -> None:
    with database.writing() as session:
        a_branch(session, 1)
        keys = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        before = samples.of_runs(session, keys[0].id, ["run-0"])["run-0", SideName.CANDIDATE]
        gone = retention.thin_samples(session, "run-0")
    with database.reading() as session:
        after = samples.of_runs(session, keys[0].id, ["run-0"])["run-0", SideName.CANDIDATE]

    assert gone > 0
    assert [len(start) for start in before.starts] == [2, 2, 2]
    assert [len(start) for start in after.starts] == [1, 1, 1]
    for old, new in zip(before.starts, after.starts, strict=True):
        assert math.log(new[0]) == pytest.approx(fmean(map(math.log, old)), abs=1e-12)


def test_thinning_again_takes_nothing(database: Database) -> None:
    with database.writing() as session:
        a_branch(session, 1)
        to_go = retention.rows_to_go(session, ["run-0", "no such run"])
        gone = retention.thin_samples(session, "run-0")

    assert to_go == {"run-0": gone}
    with database.writing() as session:
        assert retention.rows_to_go(session, ["run-0"]) == {}
        assert retention.rows_to_go(session, []) == {}
        assert retention.thin_samples(session, "run-0") == 0


def test_the_level_of_slices_is_the_mean_of_their_logs_or_their_mean_where_one_is_zero() -> None:
    assert level_of([1.0, 4.0]) == pytest.approx(2.0)
    assert level_of([0.0, 4.0]) == 2.0
    assert level_of([3.0]) == pytest.approx(3.0)


def test_what_the_present_baseline_rests_on_stays_whole(database: Database) -> None:
    with database.writing() as session:
        shas = a_branch(session, 8)
        # What came before this level is nobody's baseline.
        accept_level(session, shas[5])
    before = [rows_of(database, f"run-{place}") for place in range(8)]
    pruned = a_year_later(database, samples=364).everything()

    after = [rows_of(database, f"run-{place}") for place in range(8)]
    assert after[5:] == before[5:]
    assert all(new < old for new, old in zip(after[:5], before[:5], strict=True))
    assert (pruned.runs, pruned.rows) == (5, sum(before) - sum(after))
    with database.reading() as session:
        for key in series.of_fork(session, "demo", metric=THROUGHPUT.name):
            used = {one.run for one in level_at(session, key, shas[7])}
            assert used == {"run-5", "run-6", "run-7"}


def test_young_samples_stay(database: Database) -> None:
    with database.writing() as session:
        shas = a_branch(session, 3)
        accept_level(session, shas[2])

    assert a_year_later(database, samples=366).everything() == Pruned()


def test_what_an_open_alert_rests_on_stays_until_the_alert_is_closed(database: Database) -> None:
    with database.writing() as session:
        a_week(session)
        # The branch goes on at another level, so that only the alert needs the past.
        accept_level(session, SHAS[5])
        finished(session, SHAS[7], CommitOutcome.NO_CHANGE, "as before")
    with database.reading() as session:
        open_ = runs_in_use(session)
    assert open_ >= {"run-1", "run-2", "run-4", "run-5", "run-5c", "run-6"}
    assert a_year_later(database, samples=1).everything() == Pruned()

    close_the_alert(database)
    with database.reading() as session:
        assert runs_in_use(session) == {"run-6"}
    assert a_year_later(database, samples=1).everything().runs == 5


def test_commits_that_are_not_finished_keep_all_they_have(database: Database) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(SHAS[0]), git_commit(SHAS[1]))
        a_stored_run(session, measured("run-0", SHAS[0], scan=2.0, point=60000.0))
        assert [commit.sha for commit in commits.unfinished(session, "demo")] == SHAS[:2]

    with database.reading() as session:
        assert runs_in_use(session) == {"run-0"}


def test_verdicts_and_events_are_never_touched(database: Database) -> None:
    def told() -> tuple[list[str], int, int]:
        with database.reading() as session:
            found = [repr(one) for one in verdicts.of_commit(session, "demo", SHAS[4])]
            events = session.scalar(select(func.count(EventRow.id))) or 0
            return found, events, session.scalar(select(func.count(VerdictRow.id))) or 0

    with database.writing() as session:
        a_week(session)
    close_the_alert(database)
    before = told()
    pruned = a_year_later(database, seconds=1, samples=1).everything()

    assert pruned.rows > 0
    assert told() == before
    assert before[2] == 10


def test_a_dry_run_says_what_would_go_and_changes_nothing(database: Database) -> None:
    with database.writing() as session:
        shas = a_branch(session, 3)
        accept_level(session, shas[2])
        commits.register(session, "demo", [git_commit(SHAS[0], parent=shas[2])], at=AT)
        a_run_with_seconds(session, measured("more", SHAS[0], scan=2.0, point=60000.0))
    steps = a_year_later(database, seconds=1, samples=1)
    before = [rows_of(database, f"run-{place}") for place in range(3)]

    would = steps.everything(dry=True)
    assert [rows_of(database, f"run-{place}") for place in range(3)] == before
    assert (would.documents, would.runs) == (1, 2)
    assert would == steps.everything()
    assert steps.everything() == Pruned()


def test_a_store_without_forks_has_nothing_in_use(database: Database) -> None:
    with database.reading() as session:
        assert runs_in_use(session) == set()
