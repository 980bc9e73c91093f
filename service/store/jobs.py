"""Queries about jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from service.core.errors import NotFoundError
from service.core.model import Job, JobState
from service.store.tables import JobRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session


def create_once(session: Session, job: Job) -> Job:
    """Write a job down, or return the one that is already there under its id."""
    row = session.get(JobRow, job.id)
    if row is None:
        row = JobRow(
            id=job.id,
            fork=job.fork,
            sha=job.sha,
            kind=job.kind,
            state=job.state,
            host_class=job.host_class,
            run=job.run,
            baseline_sha=job.baseline_sha,
            order=job.order,
            attempts=job.attempts,
            credential_hash=None,
            credential_expires_at=None,
            created_at=job.created_at,
            finished_at=job.finished_at,
        )
        session.add(row)
        session.flush()
    return _value(row)


def find(session: Session, job_id: str) -> Job | None:
    """Return a job, if there is one of that id."""
    row = session.get(JobRow, job_id)
    return _value(row) if row else None


def by_credential(session: Session, credential_hash: str, *, at: datetime) -> Job | None:
    """Return the job whose credential has that hash and is still good, if any."""
    row = session.scalar(
        select(JobRow).where(
            JobRow.credential_hash == credential_hash, JobRow.credential_expires_at > at
        )
    )
    return _value(row) if row else None


def of_commit(session: Session, fork: str, sha: str) -> list[Job]:
    """Return the jobs of a commit, oldest first."""
    query = select(JobRow).where(JobRow.fork == fork, JobRow.sha == sha).order_by(JobRow.created_at)
    return [_value(row) for row in session.scalars(query)]


def begin_attempt(
    session: Session, job_id: str, attempt: int, *, credential_hash: str, expires_at: datetime
) -> Job:
    """Note that a runner is about to start, and put its new credential in force.

    The attempt is given, not counted here: a step of a flow done again is the same attempt.
    """
    row = _row(session, job_id)
    row.attempts = attempt
    row.state = JobState.DISPATCHED
    row.credential_hash = credential_hash
    row.credential_expires_at = expires_at
    session.flush()
    return _value(row)


def finish(session: Session, job_id: str, state: JobState, *, at: datetime) -> None:
    """Finish a job; a job whose run is stored stays so."""
    row = _row(session, job_id)
    if row.state is not JobState.STORED:
        row.state = state
        row.finished_at = at
    session.flush()


def _row(session: Session, job_id: str) -> JobRow:
    row = session.get(JobRow, job_id)
    if row is None:
        raise NotFoundError(f"there is no job {job_id}")
    return row


def _value(row: JobRow) -> Job:
    return Job(
        id=row.id,
        fork=row.fork,
        sha=row.sha,
        kind=row.kind,
        state=row.state,
        host_class=row.host_class,
        run=row.run,
        baseline_sha=row.baseline_sha,
        order=row.order,
        attempts=row.attempts,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )
