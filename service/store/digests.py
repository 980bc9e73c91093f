"""Queries about digests: one for each fork and week, written once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from service.core.digests import StoredDigest
from service.core.weeks import Week, parse_week
from service.store.digest_tables import DigestRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

#: Rows of one page of a list: a year of four forks.
PAGE_ROWS_MAX: Final = 200


def store_once(session: Session, digest: StoredDigest) -> StoredDigest:
    """Store a digest, or return the one that its fork and week have already."""
    known = find(session, digest.fork, digest.week)
    if known is not None:
        return known
    try:
        with session.begin_nested():
            session.add(_new_row(digest))
    except IntegrityError:
        # Another replica came in beside us; its digest stands.
        return _value(session.get_one(DigestRow, (digest.fork, digest.week.name)))
    return digest


def find(session: Session, fork: str, week: Week) -> StoredDigest | None:
    """Return the digest of a fork's week, if there is one."""
    row = session.get(DigestRow, (fork, week.name))
    return _value(row) if row else None


def of_week(session: Session, week: Week) -> list[StoredDigest]:
    """Return the digests of a week by fork."""
    query = select(DigestRow).where(DigestRow.week == week.name).order_by(DigestRow.fork)
    return [_value(row) for row in session.scalars(query.limit(PAGE_ROWS_MAX))]


def newest(session: Session, fork: str | None = None, *, limit: int = 100) -> list[StoredDigest]:
    """Return digests, newest week first, of one fork where given."""
    query = select(DigestRow).order_by(DigestRow.week.desc(), DigestRow.fork)
    if fork is not None:
        query = query.where(DigestRow.fork == fork)
    return [_value(row) for row in session.scalars(query.limit(min(limit, PAGE_ROWS_MAX)))]


def mark_sent(session: Session, fork: str, week: Week, *, where: str, at: datetime) -> None:
    """Write down that a digest went out, and where; the first time stands."""
    row = session.get_one(DigestRow, (fork, week.name))
    if row.sent_at is None:
        row.sent_at = at
        row.sent_to = where
    session.flush()


def _new_row(digest: StoredDigest) -> DigestRow:
    return DigestRow(
        fork=digest.fork,
        week=digest.week.name,
        zone=digest.zone,
        headline=digest.headline,
        text=digest.text,
        document=dict(digest.document),
        created_at=digest.created_at,
        sent_at=digest.sent_at,
        sent_to=digest.sent_to,
    )


def _value(row: DigestRow) -> StoredDigest:
    return StoredDigest(
        fork=row.fork,
        week=parse_week(row.week),
        zone=row.zone,
        headline=row.headline,
        text=row.text,
        document=dict(row.document),
        created_at=row.created_at,
        sent_at=row.sent_at,
        sent_to=row.sent_to,
    )
