"""Queries about jobs that a CI was asked to do, and the run documents that its runners brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import select, update

from service.core.dispatching import UNDER_WAY, DispatchedJob, DispatchState
from service.core.errors import NotFoundError
from service.core.identity import CiSystem
from service.store.dispatch_tables import DispatchedJobRow
from service.store.packing import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.dispatching import CiRun

#: Kept of why a dispatch ended: a sentence with an address in it.
SAID_LENGTH_MAX: Final = 1_000
#: Names of one list: no bisect has more commits.
NAMED_MAX: Final = 2_000


def begin(session: Session, dispatched: DispatchedJob) -> None:
    """Write a dispatch down."""
    session.add(
        DispatchedJobRow(
            job=dispatched.job,
            attempt=dispatched.attempt,
            system=dispatched.system.value,
            host_class=dispatched.host_class,
            state=dispatched.state.value,
            order=dispatched.order,
            flow=dispatched.flow,
            external_id=dispatched.external_id,
            page=dispatched.page,
            said=dispatched.said,
            credential_hash=None,
            credential_expires_at=None,
            asked_at=dispatched.asked_at,
            posted_at=dispatched.posted_at,
            taken_at=dispatched.taken_at,
            ended_at=dispatched.ended_at,
            document_gzip=None,
        )
    )
    session.flush()


def newest(session: Session, job: str) -> DispatchedJob | None:
    """Return the last dispatch of a job, if it was ever dispatched."""
    query = select(DispatchedJobRow).where(DispatchedJobRow.job == job)
    row = session.scalar(query.order_by(DispatchedJobRow.attempt.desc()).limit(1))
    return _value(row) if row else None


def named(session: Session, prefix: str) -> list[str]:
    """Return the jobs that were ever dispatched whose names begin so, in their order."""
    query = select(DispatchedJobRow.job).where(
        DispatchedJobRow.job.startswith(prefix, autoescape=True)
    )
    query = query.distinct().order_by(DispatchedJobRow.job).limit(NAMED_MAX)
    return list(session.scalars(query))


def by_run(session: Session, system: CiSystem, external_id: str) -> DispatchedJob | None:
    """Return the dispatch that a run of a CI is of, if it is of one that is under way."""
    query = select(DispatchedJobRow).where(
        DispatchedJobRow.system == system.value,
        DispatchedJobRow.external_id == external_id,
        DispatchedJobRow.state.in_([state.value for state in UNDER_WAY]),
    )
    row = session.scalar(query.order_by(DispatchedJobRow.asked_at.desc()).limit(1))
    return _value(row) if row else None


def by_credential(session: Session, credential_hash: str, *, at: datetime) -> DispatchedJob | None:
    """Return the dispatch whose credential has that hash and is still good, if any."""
    query = select(DispatchedJobRow).where(
        DispatchedJobRow.credential_hash == credential_hash,
        DispatchedJobRow.credential_expires_at > at,
    )
    row = session.scalar(query)
    return _value(row) if row else None


def begin_posting(session: Session, dispatched: DispatchedJob, *, at: datetime) -> bool:
    """Note that the CI is about to be asked; return whether nobody else has begun to meanwhile."""
    row = _row(session, dispatched.job, dispatched.attempt)
    still = DispatchState(row.state) is DispatchState.ASKED
    if not still or row.external_id is not None or row.posted_at != dispatched.posted_at:
        return False
    row.posted_at = at
    session.flush()
    return True


def note_run(session: Session, dispatched: DispatchedJob, run: CiRun) -> None:
    """Note which run of the CI is the dispatch's; the first one counts."""
    row = _row(session, dispatched.job, dispatched.attempt)
    if row.external_id is None:
        row.external_id, row.page = run.external_id, run.page
    session.flush()


def take(
    session: Session,
    dispatched: DispatchedJob,
    *,
    credential_hash: str,
    expires_at: datetime,
    at: datetime,
) -> bool:
    """Note that a runner has the order, and put its credential in force; return whether it may."""
    row = _row(session, dispatched.job, dispatched.attempt)
    if DispatchState(row.state) not in UNDER_WAY:
        return False
    row.state, row.taken_at = DispatchState.TAKEN.value, row.taken_at or at
    row.credential_hash, row.credential_expires_at = credential_hash, expires_at
    session.flush()
    return True


def state(session: Session, dispatched: DispatchedJob) -> DispatchState:
    """Return how far a dispatch is; it stays so until the transaction ends."""
    return DispatchState(_row(session, dispatched.job, dispatched.attempt).state)


def bring(session: Session, dispatched: DispatchedJob, text: bytes, *, at: datetime) -> bool | None:
    """Keep a run document; return whether it is new, None where another one is here already."""
    row = _row(session, dispatched.job, dispatched.attempt)
    packed = pack(text)
    if row.document_gzip is not None:
        return False if row.document_gzip == packed else None
    row.document_gzip, row.ended_at = packed, at
    row.state = DispatchState.BROUGHT.value
    session.flush()
    return True


def end(
    session: Session,
    dispatched: DispatchedJob,
    said: str,
    *,
    at: datetime,
    states: Collection[DispatchState] = UNDER_WAY,
) -> bool:
    """End a dispatch that is in one of these states; return whether it was. Its credential ends."""
    row = _row(session, dispatched.job, dispatched.attempt)
    if DispatchState(row.state) not in states:
        return False
    row.state, row.said, row.ended_at = DispatchState.ENDED.value, said[:SAID_LENGTH_MAX], at
    row.credential_hash = row.credential_expires_at = None
    session.flush()
    return True


def document(session: Session, job: str) -> bytes | None:
    """Return the run document of a job's last dispatch, if it brought one that is still kept."""
    query = select(DispatchedJobRow.document_gzip).where(DispatchedJobRow.job == job)
    packed = session.scalar(query.order_by(DispatchedJobRow.attempt.desc()).limit(1))
    return unpack(packed) if packed else None


def drop_documents(session: Session, *, before: datetime) -> None:
    """Let go of documents that came before a time; whoever wanted one has it by then."""
    session.execute(
        update(DispatchedJobRow)
        .where(DispatchedJobRow.ended_at < before, DispatchedJobRow.document_gzip.is_not(None))
        .values(document_gzip=None)
        .execution_options(synchronize_session=False)
    )


def _row(session: Session, job: str, attempt: int) -> DispatchedJobRow:
    """Return a row, held until the transaction ends."""
    row = session.get(DispatchedJobRow, (job, attempt), with_for_update=True)
    if row is None:
        raise NotFoundError(f"job {job} was not dispatched {attempt} times")
    return row


def _value(row: DispatchedJobRow) -> DispatchedJob:
    return DispatchedJob(
        job=row.job,
        attempt=row.attempt,
        system=CiSystem(row.system),
        host_class=row.host_class,
        state=DispatchState(row.state),
        order=row.order,
        flow=row.flow,
        external_id=row.external_id,
        page=row.page,
        said=row.said,
        asked_at=row.asked_at,
        posted_at=row.posted_at,
        taken_at=row.taken_at,
        ended_at=row.ended_at,
    )
