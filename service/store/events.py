"""Queries about events: what happened to a commit, append-only and in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from service.core.model import Event, EventKind
from service.store.tables import EventRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

#: Rows of one page of the log.
PAGE_ROWS_MAX: Final = 500


def append_once(
    session: Session,
    fork: str,
    sha: str,
    kind: EventKind,
    message: str,
    *,
    at: datetime,
    about: str = "",
) -> None:
    """Append an event, unless this commit has one of that kind about the same thing."""
    topic = f"{kind}:{about}"
    found = session.scalar(
        select(EventRow.id).where(
            EventRow.fork == fork, EventRow.sha == sha, EventRow.topic == topic
        )
    )
    if found is None:
        session.add(EventRow(at=at, fork=fork, sha=sha, kind=kind, topic=topic, message=message))
        session.flush()


def after(
    session: Session, last_id: int, *, fork: str | None = None, limit: int = PAGE_ROWS_MAX
) -> list[Event]:
    """Return the events after `last_id`, oldest first, of one fork where given."""
    query = select(EventRow).where(EventRow.id > last_id)
    if fork is not None:
        query = query.where(EventRow.fork == fork)
    query = query.order_by(EventRow.id).limit(min(limit, PAGE_ROWS_MAX))
    return [_value(row) for row in session.scalars(query)]


def of_commit(session: Session, fork: str, sha: str) -> list[Event]:
    """Return the events of a commit, oldest first."""
    query = (
        select(EventRow)
        .where(EventRow.fork == fork, EventRow.sha == sha)
        .order_by(EventRow.id)
        .limit(PAGE_ROWS_MAX)
    )
    return [_value(row) for row in session.scalars(query)]


def _value(row: EventRow) -> Event:
    return Event(
        id=row.id, at=row.at, fork=row.fork, sha=row.sha, kind=row.kind, message=row.message
    )
