"""Runs of a year ago in a real store, with seconds in their documents, and at chosen times."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from results.metric import THROUGHPUT
from service.core.alert_records import BaselineMark, MarkKind
from service.core.model import CommitOutcome
from service.flows.retention import RetentionSteps
from service.store import baseline_marks, runs, series
from service.store.packing import pack
from service.store.tables import RunRow, SampleRow
from tests.fakes.memory_fork import StillClock
from tests.fakes.run_documents import AT
from tests.fakes.stored_fork import a_fork, a_stored_run, finished, git_commit, measured
from tests.fakes.stored_weeks import sha_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from results.document import RunDocument
    from service.store.database import Database
    from tests.fakes.run_documents import RunStory

YEAR = timedelta(days=365)


def a_year_later(database: Database, *, seconds: int = 0, samples: int = 0) -> RetentionSteps:
    """Return the steps a year after the runs, with what is kept in days."""
    return RetentionSteps(
        database=database,
        clock=StillClock(AT + YEAR),
        keep_seconds_days=seconds,
        keep_samples_days=samples,
    )


def with_seconds(document: RunDocument) -> RunDocument:
    """Return a document whose slices tell of every second."""
    starts = [
        start.model_copy(
            update={
                "slices": tuple(
                    piece.model_copy(update={"per_second_ops_s": (1.5, 2.0, 0.0)})
                    for piece in start.slices
                )
            }
        )
        for start in document.starts
    ]
    return document.model_copy(update={"starts": tuple(starts)})


def a_run_with_seconds(session: Session, story: RunStory) -> RunDocument:
    """Store a run whose document tells of every second."""
    document = with_seconds(a_stored_run(session, story))
    text = runs.canonical(document)
    session.execute(
        update(RunRow)
        .where(RunRow.id == document.id)
        .values(document_gzip=pack(text), digest=hashlib.sha256(text).hexdigest())
    )
    session.expire_all()
    return document


def a_branch(session: Session, count: int) -> list[str]:
    """Store finished commits `run-0`, `run-1` ..., each measured alone; return their hashes."""
    shas = [sha_of(number) for number in range(count)]
    parents = [None, *shas]
    a_fork(session, *[git_commit(sha, parent=parents[place]) for place, sha in enumerate(shas)])
    for place, sha in enumerate(shas):
        a_stored_run(session, measured(f"run-{place}", sha, scan=2.0, point=60000.0))
        finished(session, sha, CommitOutcome.NO_CHANGE, "as before")
    return shas


def stored_days_ago(session: Session, run: str, days: int) -> None:
    """Have a run be so old, a year after the others."""
    at = AT + YEAR - timedelta(days=days)
    session.execute(update(RunRow).where(RunRow.id == run).values(stored_at=at))


def accept_level(session: Session, sha: str) -> None:
    """Have every series of the fork begin anew at a commit, as somebody wants it."""
    for key in series.of_fork(session, "demo", metric=THROUGHPUT.name):
        mark = BaselineMark(
            series=key.id,
            fork="demo",
            sha=sha,
            kind=MarkKind.ACCEPTED,
            alert=None,
            actor="ada",
            note="",
            at=AT,
        )
        baseline_marks.put(session, mark)


def rows_of(database: Database, run: str) -> int:
    """Return how many samples a run has."""
    with database.reading() as session:
        query = select(func.count()).where(SampleRow.run == run)
        return session.scalar(query) or 0
