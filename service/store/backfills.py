"""Queries about backfills: which there are, and how far each has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from service.core.backfills import Backfill, BackfillOrder, BackfillProgress, BackfillState
from service.core.errors import NotFoundError
from service.core.model import CommitOutcome
from service.store.history_tables import BackfillRow
from service.store.tables import CommitRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

#: Rows of one list; a fork has one or two.
PAGE_ROWS_MAX: Final = 100


def add(session: Session, backfill: Backfill) -> None:
    """Write a new backfill down."""
    last = session.scalar(select(func.max(BackfillRow.sequence)))
    session.add(
        BackfillRow(
            id=backfill.id,
            fork=backfill.fork,
            state=backfill.state.value,
            commit_order=backfill.order.value,
            before_sha=backfill.before_sha,
            commits=list(backfill.commits),
            asked_by=backfill.asked_by,
            via=backfill.via,
            said=backfill.said,
            sequence=(last or 0) + 1,
            created_at=backfill.created_at,
            finished_at=backfill.finished_at,
        )
    )
    session.flush()


def count(session: Session) -> int:
    """Return how many backfills there are, and were."""
    return session.scalar(select(func.count()).select_from(BackfillRow)) or 0


def find(session: Session, backfill_id: str) -> Backfill | None:
    """Return a backfill, if there is one of that id."""
    row = session.get(BackfillRow, backfill_id)
    return _value(row) if row else None


def under_way(session: Session, fork: str | None = None) -> list[Backfill]:
    """Return the backfills that are under way, of one fork where given, oldest first."""
    query = select(BackfillRow).where(BackfillRow.state == BackfillState.UNDER_WAY.value)
    if fork is not None:
        query = query.where(BackfillRow.fork == fork)
    return [_value(row) for row in session.scalars(query.order_by(BackfillRow.sequence))]


def newest(session: Session, fork: str) -> list[BackfillProgress]:
    """Return the backfills of a fork with their progress, newest first."""
    query = (
        select(BackfillRow)
        .where(BackfillRow.fork == fork)
        .order_by(BackfillRow.sequence.desc())
        .limit(PAGE_ROWS_MAX)
    )
    return [progress(session, _value(row)) for row in session.scalars(query)]


def progress(session: Session, backfill: Backfill) -> BackfillProgress:
    """Return a backfill and how far it is."""
    left = len(unmeasured(session, backfill.fork, backfill.commits))
    return BackfillProgress(backfill=backfill, done=len(backfill.commits) - left)


def unmeasured(session: Session, fork: str, shas: Sequence[str]) -> set[str]:
    """Return those of these commits that nobody has looked at."""
    query = select(CommitRow.sha).where(
        CommitRow.fork == fork,
        CommitRow.sha.in_(shas),
        CommitRow.outcome == CommitOutcome.SKIPPED,
    )
    return set(session.scalars(query))


def finish(
    session: Session, backfill_id: str, state: BackfillState, *, said: str, at: datetime
) -> Backfill:
    """End a backfill that is under way, and return it; one that has ended stays as it is.

    Raises:
        NotFoundError: There is none of that id.
    """
    row = session.get(BackfillRow, backfill_id, with_for_update=True)
    if row is None:
        raise NotFoundError(f"there is no backfill {backfill_id!r}")
    if row.state == BackfillState.UNDER_WAY.value:
        row.state, row.said, row.finished_at = state.value, said, at
    session.flush()
    return _value(row)


def _value(row: BackfillRow) -> Backfill:
    return Backfill(
        id=row.id,
        fork=row.fork,
        state=BackfillState(row.state),
        order=BackfillOrder(row.commit_order),
        before_sha=row.before_sha,
        commits=tuple(row.commits),
        asked_by=row.asked_by,
        via=row.via,
        said=row.said,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )
