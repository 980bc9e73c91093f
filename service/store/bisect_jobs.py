"""Queries about the measurements of bisects: what was asked of runners, and what they brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from bisects.document import BisectQuestion, Observation
from results.document import RunDocument
from service.core.bisections import JOB_ENDED, UNDER_WAY, BisectJob, BisectJobState
from service.core.errors import NotFoundError
from service.store import bisects
from service.store.bisect_tables import BisectJobRow, BisectRow
from service.store.packing import pack, unpack

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

#: Measurements of one search; it is limited to fewer, each of which may be tried three times.
ROWS_MAX: Final = 5_000
_STARTABLE: Final = (BisectJobState.WAITING, BisectJobState.MEASURING)


def create_once(session: Session, job: BisectJob) -> BisectJob:
    """Write a job down, or return the one that is already there under its id."""
    row = session.get(BisectJobRow, job.id)
    if row is None:
        own = BisectJobRow.bisect == job.bisect
        last = session.scalar(select(func.max(BisectJobRow.sequence)).where(own))
        row = BisectJobRow(
            id=job.id,
            bisect=job.bisect,
            sequence=(last or 0) + 1,
            commit_index=job.commit,
            sha=job.sha,
            state=job.state.value,
            run=job.run,
            starts=job.starts,
            attempts=job.attempts,
            said=job.said,
            observation="",
            created_at=job.created_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
            document_gzip=None,
        )
        session.add(row)
        session.flush()
    return _value(row)


def find(session: Session, job_id: str) -> BisectJob | None:
    """Return a job, if there is one of that id."""
    row = session.get(BisectJobRow, job_id)
    return _value(row) if row else None


def of_bisect(session: Session, bisect_id: str) -> list[BisectJob]:
    """Return the jobs of a bisect in the order in which they were written down."""
    query = select(BisectJobRow).where(BisectJobRow.bisect == bisect_id)
    query = query.order_by(BisectJobRow.sequence).limit(ROWS_MAX)
    return [_value(row) for row in session.scalars(query)]


def measured_before(
    session: Session, question: BisectQuestion, plan_digest: str
) -> list[tuple[str, Observation]]:
    """Return what was measured of commits under the same conditions against the same good end.

    Each comes with the hash of its commit; places in another range mean nothing here.
    """
    query = (
        select(BisectJobRow.sha, BisectJobRow.observation, BisectRow.question)
        .join(BisectRow, BisectRow.id == BisectJobRow.bisect)
        .where(
            BisectRow.fork == question.fork,
            BisectRow.good_sha == question.good,
            BisectRow.plan_digest == plan_digest,
            BisectJobRow.state == BisectJobState.OBSERVED.value,
        )
        .order_by(BisectRow.sequence, BisectJobRow.sequence)
        .limit(ROWS_MAX)
    )
    return [
        (sha, Observation.model_validate_json(observation))
        for sha, observation, asked in session.execute(query)
        if _conditions(BisectQuestion.model_validate_json(asked)) == _conditions(question)
    ]


def begin_attempt(session: Session, job_id: str, attempt: int, *, at: datetime) -> bool:
    """Note that a runner is about to start; return whether it still should.

    The attempt is given, not counted here: a step of a flow done again is the same attempt.
    """
    row = _row(session, job_id)
    wanted = bisects.locked(session, row.bisect).state in UNDER_WAY
    if not wanted or BisectJobState(row.state) not in _STARTABLE:
        return False
    row.state, row.attempts = BisectJobState.MEASURING.value, attempt
    row.started_at = row.started_at or at
    session.flush()
    return True


def store_document(session: Session, job_id: str, brought: RunDocument) -> None:
    """Keep a job's run document; a job that has ended keeps its state."""
    row = _row(session, job_id)
    row.document_gzip = pack(brought.model_dump_json().encode())
    if BisectJobState(row.state) not in JOB_ENDED:
        row.state = BisectJobState.STORED.value
    session.flush()


def document(session: Session, job_id: str) -> RunDocument | None:
    """Return the run document of a job, if it brought one."""
    packed = session.scalar(select(BisectJobRow.document_gzip).where(BisectJobRow.id == job_id))
    return RunDocument.model_validate_json(unpack(packed)) if packed else None


def end(
    session: Session,
    job_id: str,
    *,
    at: datetime,
    observation: Observation | None = None,
    said: str = "",
) -> None:
    """End a job with what it says of its commit, or with why it says nothing; the first counts."""
    row = _row(session, job_id)
    if BisectJobState(row.state) in JOB_ENDED:
        return
    row.said, row.finished_at = said, at
    row.state = BisectJobState.FAILED.value
    if observation is not None:
        row.state = BisectJobState.OBSERVED.value
        row.observation = observation.model_dump_json()
    session.flush()


def _conditions(question: BisectQuestion) -> tuple[str, ...]:
    """Return under what a question wants to be measured."""
    return (
        question.fork,
        question.workload,
        question.suite,
        question.host_class,
        question.variant,
        question.config,
        question.good,
    )


def _row(session: Session, job_id: str) -> BisectJobRow:
    row = session.get(BisectJobRow, job_id)
    if row is None:
        raise NotFoundError(f"there is no job {job_id!r}")
    return row


def _value(row: BisectJobRow) -> BisectJob:
    told = row.observation
    return BisectJob(
        id=row.id,
        bisect=row.bisect,
        commit=row.commit_index,
        sha=row.sha,
        state=BisectJobState(row.state),
        run=row.run,
        starts=row.starts,
        attempts=row.attempts,
        said=row.said,
        observation=Observation.model_validate_json(told) if told else None,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
