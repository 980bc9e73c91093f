"""Seconds of old documents go and everything else of them stays; the flow does it every night."""

from __future__ import annotations

import gzip
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dbos import DBOS, DBOSConfig

from results.document import Outcome
from service.flows.retention import (
    BATCH_RUNS,
    SCHEDULE_NAME,
    Pruned,
    RetentionFlow,
    RetentionSteps,
)
from service.store import jobs, retention, runs
from tests.fakes.memory_fork import AT
from tests.fakes.old_runs import a_run_with_seconds, a_year_later, stored_days_ago
from tests.fakes.run_documents import a_run
from tests.fakes.stored_fork import SHAS, a_fork, a_stored_run, a_week, git_commit, measured
from tests.fakes.stored_weeks import sha_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from results.document import RunDocument
    from service.store.database import Database

STORY = measured("run-1", SHAS[0], scan=2.0, point=60000.0)


def has_seconds(document: RunDocument) -> bool:
    return any(piece.per_second_ops_s for start in document.starts for piece in start.slices)


def test_seconds_go_and_everything_else_of_a_document_stays(database: Database) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(SHAS[0]), git_commit(SHAS[1]))
        before = a_run_with_seconds(session, STORY)
        other = a_stored_run(session, measured("run-2", SHAS[1], scan=2.0, point=1.0))
    pruned = a_year_later(database, seconds=364).everything()

    with database.reading() as session:
        after = runs.document(session, "run-1")
        plain = runs.document(session, "run-2")
    assert has_seconds(before)
    assert not has_seconds(after)
    assert after == STORY.build()
    assert plain == other
    assert (pruned.documents, pruned.runs, pruned.rows) == (1, 0, 0)
    assert pruned.document_bytes > 0


def test_a_document_that_lost_its_seconds_is_still_the_same_run(database: Database) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(SHAS[0]))
        document = a_run_with_seconds(session, STORY)
    a_year_later(database, seconds=1).everything()

    with database.writing() as session:
        job = jobs.find(session, document.job)
        assert job is not None
        run, created = runs.store_once(session, document, job, at=AT)
    assert (run.id, created) == ("run-1", False)


def test_young_seconds_stay(database: Database) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(SHAS[0]))
        document = a_run_with_seconds(session, STORY)

    assert a_year_later(database, seconds=366).everything() == Pruned()
    with database.reading() as session:
        assert runs.document(session, "run-1") == document


def test_what_a_text_says_is_no_series_of_seconds() -> None:
    said = 'it said {"per_second_ops_s":[1,2,3]}'
    story = a_run().that(Outcome.FAILED, stage="measure", message=said)
    packed = gzip.compress(story.build().model_dump_json().encode())

    assert retention.without_seconds(packed) is None


def test_a_night_looks_at_what_grew_old_lately(database: Database) -> None:
    with database.writing() as session:
        a_fork(session, *[git_commit(sha) for sha in SHAS[:3]])
        for place, days in enumerate((99, 101, 200)):
            story = measured(f"run-{place}", SHAS[place], scan=2.0, point=60000.0)
            a_run_with_seconds(session, story)
            stored_days_ago(session, f"run-{place}", days)
    steps = a_year_later(database, seconds=100)

    lately, after = steps.prune("runs", "", lately=True, dry=True)
    assert (lately.documents, after) == (1, None)
    assert steps.everything(dry=True).documents == 2


def test_nothing_is_pruned_where_everything_is_kept_for_ever(database: Database) -> None:
    with database.writing() as session:
        a_week(session)
    steps = a_year_later(database)

    assert steps.parts() == []
    assert steps.everything() == Pruned()


def test_a_batch_goes_on_where_the_last_one_ended(database: Database) -> None:
    with database.writing() as session:
        shas = [sha_of(number) for number in range(BATCH_RUNS + 1)]
        a_fork(session, *[git_commit(sha) for sha in shas])
        for place, sha in enumerate(shas):
            story = a_run().called(f"run-{place:04}").on(sha).with_samples("scan", [[2.0]])
            a_stored_run(session, story)
    steps = a_year_later(database, seconds=1)

    first, after = steps.prune("runs", "")
    assert (first, after) == (Pruned(), f"run-{BATCH_RUNS - 1:04}")
    assert steps.prune("runs", after or "") == (Pruned(), None)


@contextmanager
def launched(steps: RetentionSteps, home: Path) -> Iterator[RetentionFlow]:
    """Run the flow on DBOS, whose own tables lie in the home."""
    DBOS(
        config=DBOSConfig(
            name="forkwatch",
            system_database_url=f"sqlite:///{home / 'flows.sqlite'}",
            executor_id="service",
            application_version="1",
            console_log_level="WARNING",
        )
    )
    try:
        flow = RetentionFlow(steps, step_pause_seconds=0.01)
        DBOS.launch()
        yield flow
    finally:
        DBOS.destroy(destroy_registry=True)


def test_the_flow_prunes_at_the_start_and_every_night(database: Database, tmp_path: Path) -> None:
    with database.writing() as session:
        a_fork(session, git_commit(SHAS[0]), git_commit(SHAS[1]))
        a_run_with_seconds(session, STORY)
    steps = a_year_later(database, seconds=100, samples=100)
    with launched(steps, tmp_path) as flow:
        flow.open_schedule()
        flow.catch_up().get_result()
        with database.reading() as session:
            first = runs.document(session, "run-1")
        with database.writing() as session:
            a_run_with_seconds(session, measured("run-2", SHAS[1], scan=2.0, point=60000.0))
            stored_days_ago(session, "run-2", 101)
        DBOS.trigger_schedule(SCHEDULE_NAME).get_result()

    with database.reading() as session:
        second = runs.document(session, "run-2")
    assert not has_seconds(first)
    assert not has_seconds(second)
