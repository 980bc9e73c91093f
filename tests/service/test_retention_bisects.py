"""Old measurements of bisects lose their documents, and keep what they observed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from results.slice import SideName
from service.core.bisections import BisectState
from service.core.model import AlertState
from service.flows.retention import BATCH_RUNS, BISECTS, Pruned
from service.store import alerts, bisect_jobs, bisects
from service.store.bisect_tables import BisectJobRow, BisectRow
from tests.fakes.memory_fork import AT
from tests.fakes.old_runs import a_year_later, with_seconds
from tests.fakes.run_documents import a_run
from tests.fakes.stored_bisects import BisectCaller
from tests.fakes.stored_fork import a_week

if TYPE_CHECKING:
    from results.document import RunDocument
    from service.core.bisections import Bisect
    from service.store.database import Database


@pytest.fixture
def bisect(database: Database) -> Bisect:
    """A bisect that is over, with two measurements and their documents."""
    caller = BisectCaller(database)
    for subject in ("Import", "Quiet", "Slower", "Later"):
        caller.fork.push(subject)
    asked = caller.ask()
    caller.observe(asked, 3, [-0.1, -0.11])
    caller.observe(asked, 1, [0.001, -0.001])
    with database.writing() as session:
        for job in bisect_jobs.of_bisect(session, asked.id):
            story = a_run().called(job.run, job=job.id).on(job.sha).against(asked.question.good)
            story = story.with_samples("scan", [[2.0]], side=SideName.BASELINE)
            document = with_seconds(story.with_samples("scan", [[1.8]]).build())
            bisect_jobs.store_document(session, job.id, document)
        bisects.finish(session, asked.id, BisectState.OVER, said="it is the third", at=AT)
    return asked


def documents(database: Database, bisect: Bisect) -> list[RunDocument | None]:
    with database.reading() as session:
        jobs = bisect_jobs.of_bisect(session, bisect.id)
        return [bisect_jobs.document(session, job.id) for job in jobs]


def test_documents_go_and_observations_stay(database: Database, bisect: Bisect) -> None:
    with database.reading() as session:
        before = bisect_jobs.of_bisect(session, bisect.id)
        known = bisects.document(session, bisect.id)
    would = a_year_later(database, samples=364).everything(dry=True)
    assert all(document is not None for document in documents(database, bisect))

    pruned = a_year_later(database, samples=364).everything()

    assert pruned == would
    assert (pruned.bisect_documents, pruned.runs) == (2, 0)
    assert pruned.bisect_bytes > 0
    assert documents(database, bisect) == [None, None]
    with database.reading() as session:
        assert bisect_jobs.of_bisect(session, bisect.id) == before
        assert bisects.document(session, bisect.id) == known
        counted = bisect_jobs.measured_before(session, bisect.question, digest(database, bisect))
    assert len(counted) == 2
    assert a_year_later(database, samples=364).everything() == Pruned()


def digest(database: Database, bisect: Bisect) -> str:
    with database.reading() as session:
        return session.get_one(BisectRow, bisect.id).plan_digest


def test_young_documents_stay(database: Database, bisect: Bisect) -> None:
    assert a_year_later(database, samples=366).everything() == Pruned()
    assert all(document is not None for document in documents(database, bisect))


def test_a_bisect_under_way_keeps_what_it_has(database: Database, bisect: Bisect) -> None:
    with database.writing() as session:
        session.get_one(BisectRow, bisect.id).state = BisectState.MEASURING.value

    assert a_year_later(database, samples=1).everything() == Pruned()


def test_a_measurement_that_has_not_ended_keeps_its_document(
    database: Database, bisect: Bisect
) -> None:
    with database.writing() as session:
        session.execute(update(BisectJobRow).values(state="stored"))

    assert a_year_later(database, samples=1).everything() == Pruned()


def test_the_bisect_of_an_open_alert_keeps_what_it_has(database: Database, bisect: Bisect) -> None:
    with database.writing() as session:
        a_week(session)
        [alert] = alerts.newest(session)
        session.get_one(BisectRow, bisect.id).alert = alert.id
    steps = a_year_later(database, samples=1)

    assert steps.prune(BISECTS, "") == (Pruned(), None)
    with database.writing() as session:
        alerts.keep(session, replace(alert, state=AlertState.FIXED, closed_at=AT))
    assert steps.prune(BISECTS, "")[0].bisect_documents == 2


def test_the_seconds_of_its_documents_go_like_those_of_all_others(
    database: Database, bisect: Bisect
) -> None:
    pruned = a_year_later(database, seconds=364).everything()

    assert (pruned.documents, pruned.bisect_documents) == (2, 0)
    for document in documents(database, bisect):
        assert document is not None
        pieces = [piece for start in document.starts for piece in start.slices]
        assert pieces
        assert not any(piece.per_second_ops_s for piece in pieces)


def test_many_go_in_batches(database: Database, bisect: Bisect) -> None:
    with database.writing() as session:
        [first, *_] = bisect_jobs.of_bisect(session, bisect.id)
        packed = session.get_one(BisectJobRow, first.id).document_gzip
        for number in range(BATCH_RUNS):
            name = f"bisect-zz-{number:04}"
            job = bisect_jobs.create_once(session, replace(first, id=name, run=f"run-{name}"))
            row = session.get_one(BisectJobRow, job.id)
            row.document_gzip, row.finished_at = packed, AT
    steps = a_year_later(database, samples=1)

    pruned, after = steps.prune(BISECTS, "")

    assert pruned.bisect_documents == BATCH_RUNS
    assert after is not None
    assert steps.prune(BISECTS, after)[0].bisect_documents == 2
