"""Queries about the jobs of pull requests, their run documents and what came of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from results.document import RunDocument
from service.core.errors import NotFoundError
from service.core.pull_requests import UNDER_WAY, PullJob, PullJobKind, PullJobState
from service.store.delivery_tables import PullJobRow
from service.store.packing import pack, unpack

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

#: Rows of one answer; a pull request has a job for each push and each order.
ROWS_MAX: Final = 500


def create_once(session: Session, job: PullJob) -> PullJob:
    """Write a job down, or return the one that is already there under its id."""
    row = session.get(PullJobRow, job.id)
    if row is None:
        last = session.scalar(select(func.max(PullJobRow.sequence)).where(_of(job.fork, job.pull)))
        row = PullJobRow(
            id=job.id,
            fork=job.fork,
            pull=job.pull,
            kind=job.kind.value,
            state=job.state.value,
            suite=job.suite,
            candidate_sha=job.candidate_sha,
            baseline_sha=job.baseline_sha,
            run=job.run,
            asked_by=job.asked_by,
            trusted=job.trusted,
            order=job.order,
            attempts=job.attempts,
            said=job.said,
            verdicts=job.verdicts,
            accepted_by=job.accepted_by,
            accepted_reason=job.accepted_reason,
            sequence=(last or 0) + 1,
            created_at=job.created_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
            document_gzip=None,
        )
        session.add(row)
        session.flush()
    return _value(row)


def find(session: Session, job_id: str) -> PullJob | None:
    """Return a job, if there is one of that id."""
    row = session.get(PullJobRow, job_id)
    return _value(row) if row else None


def of_pull(session: Session, fork: str, pull: int) -> list[PullJob]:
    """Return the newest jobs of a pull request or issue, newest first."""
    query = select(PullJobRow).where(_of(fork, pull)).order_by(PullJobRow.sequence.desc())
    return [_value(row) for row in session.scalars(query.limit(ROWS_MAX))]


def unfinished(session: Session) -> list[PullJob]:
    """Return the jobs that somebody may still wait for, oldest first."""
    states = [state.value for state in UNDER_WAY]
    query = select(PullJobRow).where(PullJobRow.state.in_(states))
    query = query.order_by(PullJobRow.created_at, PullJobRow.sequence)
    return [_value(row) for row in session.scalars(query.limit(ROWS_MAX))]


def put_order(session: Session, job_id: str, *, baseline_sha: str, order: str) -> None:
    """Note what a runner will be asked."""
    row = _row(session, job_id)
    row.baseline_sha, row.order = baseline_sha, order
    session.flush()


def begin_attempt(session: Session, job_id: str, attempt: int, *, at: datetime) -> bool:
    """Note that a runner is about to start; return whether it still should.

    The attempt is given, not counted here: a step of a flow done again is the same attempt.
    """
    row = _row(session, job_id)
    if PullJobState(row.state) not in {PullJobState.WAITING, PullJobState.MEASURING}:
        return False
    row.state, row.attempts = PullJobState.MEASURING.value, attempt
    row.started_at = row.started_at or at
    session.flush()
    return True


def store_document(session: Session, job_id: str, document: RunDocument) -> None:
    """Keep a job's document; a job that is over keeps its state."""
    row = _row(session, job_id)
    row.document_gzip = pack(document.model_dump_json().encode())
    if PullJobState(row.state) in UNDER_WAY:
        row.state = PullJobState.STORED.value
    session.flush()


def document(session: Session, job_id: str) -> RunDocument | None:
    """Return the run document of a job, if it brought one."""
    packed = session.scalar(select(PullJobRow.document_gzip).where(PullJobRow.id == job_id))
    return RunDocument.model_validate_json(unpack(packed)) if packed else None


def finish(
    session: Session,
    job_id: str,
    state: PullJobState,
    *,
    said: str,
    at: datetime,
    verdicts: str = "",
) -> None:
    """Finish a job; one that is finished stays as it is."""
    row = _row(session, job_id)
    if PullJobState(row.state) in UNDER_WAY:
        row.state, row.said, row.verdicts, row.finished_at = state.value, said, verdicts, at
    session.flush()


def accept(session: Session, job_id: str, *, by: str, reason: str) -> None:
    """Note that somebody takes the losses of a job as intended; the last word counts."""
    row = _row(session, job_id)
    row.accepted_by, row.accepted_reason = by, reason
    session.flush()


def supersede(
    session: Session, fork: str, pull: int, *, keep_sha: str | None, said: str, at: datetime
) -> list[PullJob]:
    """Supersede the runs of a pull request that still cost time; return them as they are now.

    Args:
        session: A writing one.
        fork: Its fork.
        pull: Its number.
        keep_sha: The head that is still wanted, if any is.
        said: Why.
        at: When.
    """
    found = []
    costly = {PullJobState.WAITING, PullJobState.MEASURING}
    for job in of_pull(session, fork, pull):
        over = job.kind is not PullJobKind.RUN or job.state not in costly
        if not over and job.candidate_sha != keep_sha:
            finish(session, job.id, PullJobState.SUPERSEDED, said=said, at=at)
            found.append(_value(_row(session, job.id)))
    return found


def _of(fork: str, pull: int) -> ColumnElement[bool]:
    return (PullJobRow.fork == fork) & (PullJobRow.pull == pull)


def _row(session: Session, job_id: str) -> PullJobRow:
    row = session.get(PullJobRow, job_id)
    if row is None:
        raise NotFoundError(f"there is no job {job_id}")
    return row


def _value(row: PullJobRow) -> PullJob:
    return PullJob(
        id=row.id,
        fork=row.fork,
        pull=row.pull,
        kind=PullJobKind(row.kind),
        state=PullJobState(row.state),
        suite=row.suite,
        candidate_sha=row.candidate_sha,
        baseline_sha=row.baseline_sha,
        run=row.run,
        asked_by=row.asked_by,
        trusted=row.trusted,
        order=row.order,
        attempts=row.attempts,
        said=row.said,
        verdicts=row.verdicts,
        accepted_by=row.accepted_by,
        accepted_reason=row.accepted_reason,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
