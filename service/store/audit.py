"""Queries about the audit log: who did what, when, and through what; append-only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

from service.core.alert_records import AuditEntry, AuditSubject
from service.store.alert_tables import AuditRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

#: Rows of one page of the log.
PAGE_ROWS_MAX: Final = 500


@dataclass(frozen=True, kw_only=True)
class NewEntry:
    """An entry that is about to be written; the words are those of `AuditEntry`."""

    at: datetime
    subject: AuditSubject
    about: str
    what: str
    actor: str
    via: str
    note: str = ""
    key: str = ""
    before: str | None = None
    after: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    #: Issue and chat have still to hear of it.
    to_tell: bool = False


def append(session: Session, entry: NewEntry) -> AuditEntry:
    """Append an entry and return it."""
    row = AuditRow(
        at=entry.at,
        subject=entry.subject,
        about=entry.about,
        what=entry.what,
        actor=entry.actor,
        via=entry.via,
        note=entry.note,
        key=entry.key or None,
        before=entry.before,
        after=entry.after,
        details=entry.details,
        told_at=None if entry.to_tell else entry.at,
    )
    session.add(row)
    session.flush()
    return _value(row)


def with_key(session: Session, subject: AuditSubject, about: str, key: str) -> AuditEntry | None:
    """Return the entry that this key made, if it made one."""
    row = session.scalar(
        select(AuditRow).where(
            AuditRow.subject == subject, AuditRow.about == about, AuditRow.key == key
        )
    )
    return _value(row) if row else None


def find(session: Session, entry_id: int) -> AuditEntry | None:
    """Return an entry, if there is one of that id."""
    row = session.get(AuditRow, entry_id)
    return _value(row) if row else None


def history(
    session: Session, subject: AuditSubject, about: str, *, limit: int = PAGE_ROWS_MAX
) -> list[AuditEntry]:
    """Return the newest entries about one thing, oldest first."""
    query = (
        select(AuditRow)
        .where(AuditRow.subject == subject, AuditRow.about == about)
        .order_by(AuditRow.id.desc())
        .limit(min(limit, PAGE_ROWS_MAX))
    )
    return [_value(row) for row in reversed(session.scalars(query).all())]


def untold(session: Session, *, limit: int = PAGE_ROWS_MAX) -> list[AuditEntry]:
    """Return the entries that issue and chat have still to hear of, oldest first."""
    query = select(AuditRow).where(AuditRow.told_at.is_(None)).order_by(AuditRow.id)
    return [_value(row) for row in session.scalars(query.limit(min(limit, PAGE_ROWS_MAX)))]


def mark_told(session: Session, entry_id: int, *, at: datetime) -> None:
    """Note that issue and chat have heard of an entry; the first time stays."""
    row = session.get_one(AuditRow, entry_id)
    if row.told_at is None:
        row.told_at = at
    session.flush()


def _value(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=row.at,
        subject=row.subject,
        about=row.about,
        what=row.what,
        actor=row.actor,
        via=row.via,
        note=row.note,
        key=row.key or "",
        before=row.before,
        after=row.after,
        details=dict(row.details),
        told_at=row.told_at,
    )
