from __future__ import annotations

import math
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.exc import IntegrityError

from results.document import Outcome
from results.job import JobOrder
from results.metric import METRICS, THROUGHPUT
from results.slice import SideName
from service.core.errors import ConflictError, NotFoundError
from service.core.model import CommitOutcome, CommitState, EventKind, JobKind, JobState
from service.flows.intake import take_run
from service.flows.orders import job_of
from service.store import alerts, commits, events, forks, jobs, runs, samples, series, verdicts
from tests.fakes.run_documents import AT, a_run, sha
from tests.fakes.stored_fork import a_fork, a_stored_run, a_week, git_commit, measured
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.core.model import Job
    from service.store.database import Database

A, B, C, D = (sha(digit) for digit in "abcd")


def test_times_come_back_in_utc_whatever_zone_they_went_in(database: Database) -> None:
    at = datetime(2026, 11, 3, 8, 0, tzinfo=timezone(timedelta(hours=2)))
    with database.writing() as session:
        forks.ensure(session, "demo", branch="main", at=at)

    with database.reading() as session:
        found = forks.find(session, "demo")
    assert found is not None
    assert found.first_seen_at == at
    assert found.first_seen_at.tzinfo == UTC


def test_an_error_undoes_the_whole_transaction(database: Database) -> None:
    def fail_half_way() -> None:
        with database.writing() as session:
            forks.ensure(session, "demo", branch="main", at=AT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()

    with database.reading() as session:
        assert forks.everything(session) == []


def test_foreign_keys_are_enforced(database: Database) -> None:
    with pytest.raises(IntegrityError), database.writing() as session:
        commits.register(session, "nobody", [git_commit(A)], at=AT)


def test_commits_are_registered_once_and_numbered_in_branch_order(database: Database) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(A), git_commit(B, parent=A))
        again = commits.register(session, "demo", [git_commit(B), git_commit(C, parent=B)], at=AT)

    assert [(commit.sha, commit.position) for commit in again] == [(C, 2)]
    with database.reading() as session:
        assert [commit.sha for commit in commits.newest(session, "demo")] == [C, B, A]
        assert [c.sha for c in commits.newest(session, "demo", before=2, limit=1)] == [B]


def test_first_parents_follow_the_chain_and_not_the_order_of_arrival(database: Database) -> None:
    """After a force-push the old tip is no ancestor of the new one."""
    with database.writing() as session:
        a_fork(session, git_commit(A), git_commit(B, parent=A), git_commit(C, parent=A))
        commits.register(session, "demo", [git_commit(D, parent=C)], at=AT)

    with database.reading() as session:
        assert [c.sha for c in commits.first_parents(session, "demo", D)] == [C, A]
        assert commits.first_parents(session, "demo", A) == []


def test_a_finished_commit_stays_as_it_was_finished(database: Database) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(A))
        for outcome in (CommitOutcome.NO_CHANGE, CommitOutcome.FAILED):
            commits.finish(session, "demo", A, outcome=outcome, reason=outcome.value, at=AT)
        commits.mark(session, "demo", A, CommitState.MEASURING)

    with database.reading() as session:
        found = commits.find(session, "demo", A)
        assert commits.unfinished(session, "demo") == []
    assert found is not None
    assert (found.state, found.outcome) == (CommitState.FINISHED, CommitOutcome.NO_CHANGE)


def test_the_same_document_is_stored_once_and_another_is_refused(database: Database) -> None:
    story = measured("run-1", A, scan=2.0, point=60000.0)
    with database.writing() as session:
        a_fork(session, git_commit(A))
        a_stored_run(session, story)
    with database.writing() as session:
        job = jobs.find(session, "job-of-run-1")
        assert job is not None
        run, created = take_run(session, story.build(), job, at=AT + timedelta(days=1))
    other = replace(story, author="Somebody else").build()
    with pytest.raises(ConflictError), database.writing() as session:
        take_run(session, other, job, at=AT)

    assert not created
    assert run.stored_at == AT
    with database.reading() as session:
        assert [found.id for found in runs.of_commit(session, "demo", A)] == ["run-1"]
        assert runs.document(session, "run-1") == story.build()
        with pytest.raises(NotFoundError):
            runs.document(session, "run-2")


def test_two_that_bring_the_same_run_at_once_store_it_once(database: Database) -> None:
    document = measured("run-1", A, scan=2.0, point=60000.0).build()
    with database.writing() as session:
        a_fork(session, git_commit(A))
        job = _job(session, document.job, run=document.id)
    created: list[bool] = []
    together = threading.Barrier(4)

    def bring() -> None:
        together.wait()
        with database.writing() as session:
            created.append(take_run(session, document, job, at=AT)[1])

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(created) == [False, False, False, True]
    with database.reading() as session:
        key = document.series("scan", THROUGHPUT.name)
        [only] = samples.of_runs(session, key.id, ["run-1"]).values()
        assert [len(start) for start in only.starts] == [2, 2, 2]
        found = jobs.find(session, document.job)
    assert found is not None
    assert found.state is JobState.STORED


def test_samples_keep_both_sides_and_the_rows_of_a_pair_together(database: Database) -> None:
    """A start without a usable slice is an empty row, not a missing one."""
    story = (
        a_run()
        .called("run-1")
        .on(B)
        .against(A)
        .with_samples("scan", [[1.0], [], [3.0, 4.0]])
        .with_samples("scan", [[5.0], [6.0], []], side=SideName.BASELINE)
    )
    with database.writing() as session:
        a_fork(session, git_commit(A), git_commit(B, parent=A))
        document = a_stored_run(session, story)

    key = document.series("scan", THROUGHPUT.name)
    with database.reading() as session:
        sets = samples.of_runs(session, key.id, ["run-1"])
    candidate, baseline = sets["run-1", SideName.CANDIDATE], sets["run-1", SideName.BASELINE]
    assert (candidate.sha, candidate.starts) == (B, ((1.0,), (), (3.0, 4.0)))
    assert (baseline.sha, baseline.starts) == (A, ((5.0,), (6.0,), ()))
    assert candidate.measured.counts.tolist() == [1, 2]
    assert candidate.measured.levels == pytest.approx([0.0, math.log(12) / 2])


def test_an_unstable_run_is_kept_and_no_sample_of_it(database: Database) -> None:
    story = measured("run-1", A, scan=2.0, point=60000.0)
    document = story.build().model_copy(update={"outcome": Outcome.UNSTABLE})
    with database.writing() as session:
        a_fork(session, git_commit(A))
        job = _job(session, document.job, run=document.id)
        take_run(session, document, job, at=AT)

    with database.reading() as session:
        assert runs.document(session, "run-1").outcome is Outcome.UNSTABLE
        assert series.of_fork(session, "demo") == []


def test_series_are_found_by_workload_and_metric_with_points_in_branch_order(
    database: Database,
) -> None:
    with database.writing() as session:
        a_week(session)

    with database.reading() as session:
        assert len(series.of_fork(session, "demo")) == 2 * len(METRICS)
        [key] = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        assert series.find(session, key.id) == key
        assert series.find(session, "0" * 16) is None
        points = series.points(session, key.id)
        newest = series.points(session, key.id, limit=2)
    assert [point.samples.run for point in points] == ["run-1", "run-2", "run-4", "run-5", "run-6"]
    assert [point.samples.run for point in newest] == ["run-5", "run-6"]
    assert all(point.samples.side is SideName.CANDIDATE for point in points)


def test_a_verdict_comes_back_whole_and_is_stored_once(database: Database) -> None:
    first, second = a_verdict(-9.1, low=-10.0, high=-8.2), a_verdict(1.0, low=0.1, high=2.0)
    with database.writing() as session:
        a_fork(session, git_commit(A))
        a_stored_run(
            session,
            measured("run-1", A, scan=2.0, point=60000.0),
            {"scan": first},
            compared_with=(("run-0", "candidate"),),
        )
        [stored] = verdicts.of_run(session, "run-1")
        changed = replace(stored, decision=second.decision)
        verdicts.store_once(session, [changed])

    with database.reading() as session:
        [found] = verdicts.of_commit(session, "demo", A)
        assert verdicts.of_series(session, found.series.id) == [found]
    assert found == stored
    assert found.verdict == first
    assert found.baseline_inputs == (("run-0", "candidate"),)


def test_only_confirmed_changes_are_accepted_ones(database: Database) -> None:
    with database.writing() as session:
        a_week(session)
        [key] = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        [other] = series.of_fork(session, "demo", workload="point-query", metric=THROUGHPUT.name)

    every = [sha(digit) for digit in "1234567a"]
    with database.reading() as session:
        assert verdicts.accepted_changes(session, key.id, every) == {sha("5"): "run-5c"}
        assert verdicts.accepted_changes(session, other.id, every) == {}


def test_an_alert_is_opened_once_per_commit(database: Database) -> None:
    with database.writing() as session:
        a_week(session)
        [alert] = alerts.newest(session)
        assert alerts.open_once(session, replace(alert, id="alert-2")).id == alert.id

    with database.reading() as session:
        assert [found.id for found in alerts.newest(session, "demo")] == [alert.id]
        assert alerts.newest(session, "other") == []
        assert alerts.find(session, alert.id) == alert
    assert alert.subject == "Check the record format in row_search_mvcc"


def test_events_are_said_once_about_each_thing_and_read_in_order(database: Database) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(A))
        for about in ("job:1", "job:2", "job:1"):
            events.append_once(session, "demo", A, EventKind.DISPATCHED, about, at=AT, about=about)

    with database.reading() as session:
        found = events.of_commit(session, "demo", A)
        later = events.after(session, found[1].id)
        assert events.after(session, 0, fork="other") == []
    assert [event.message for event in found] == ["Seen on main.", "job:1", "job:2"]
    assert later == found[2:]


def _job(session: Session, job_id: str, *, run: str) -> Job:
    order = JobOrder(
        job=job_id,
        run=run,
        repository=Path("/nowhere"),
        plan="",
        branch="main",
        suite="commit",
        host_class="small",
        candidate=A,
    )
    return jobs.create_once(session, job_of(order, fork="demo", kind=JobKind.SINGLE, at=AT))
