"""Queries about what was posted on Slack, and which of its requests were seen."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from service.core.slack import FIRST, SlackPost
from service.store.slack_tables import SlackMessageRow, SlackRequestRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.store.database import Database

#: Alerts of one look at those that wait; the next look takes the rest.
DUE_ROWS_MAX: Final = 100


class StoredSlackMemory:
    """A memory of posts in the service's database; each call is a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, alert: str, topic: str) -> SlackPost | None:
        """Return what is known about a post."""
        with self._database.reading() as session:
            row = session.get(SlackMessageRow, (alert, topic))
            return _value(row) if row else None

    def keep(self, post: SlackPost) -> None:
        """Remember a post in place of what was known about it."""
        with self._database.writing() as session:
            session.merge(
                SlackMessageRow(
                    alert=post.alert,
                    topic=post.topic,
                    channel=post.channel,
                    ts=post.ts,
                    digest=post.digest,
                    resolution=post.resolution,
                    due_at=post.due_at,
                )
            )

    def due(self, at: datetime) -> list[str]:
        """Return the alerts whose first message waited until now, the longest first."""
        query = (
            select(SlackMessageRow.alert)
            .where(SlackMessageRow.topic == FIRST, SlackMessageRow.due_at <= at)
            .order_by(SlackMessageRow.due_at, SlackMessageRow.alert)
            .limit(DUE_ROWS_MAX)
        )
        with self._database.reading() as session:
            return list(session.scalars(query))


def accept_once(session: Session, signature: str, *, at: datetime, forget_before: datetime) -> bool:
    """Write a request's signature down; return whether it was not there.

    Args:
        session: Of a transaction that ends before anything is done about the request.
        signature: What Slack signed it with; no two requests have the same.
        at: Now.
        forget_before: Requests older than this are refused for their age, and need not be known.
    """
    session.execute(delete(SlackRequestRow).where(SlackRequestRow.at < forget_before))
    digest = hashlib.sha256(signature.encode()).hexdigest()
    if session.get(SlackRequestRow, digest) is not None:
        return False
    try:
        with session.begin_nested():
            session.add(SlackRequestRow(digest=digest, at=at))
    except IntegrityError:
        # The same request came in beside us.
        return False
    return True


def _value(row: SlackMessageRow) -> SlackPost:
    return SlackPost(
        alert=row.alert,
        topic=row.topic,
        channel=row.channel,
        ts=row.ts,
        digest=row.digest,
        resolution=row.resolution,
        due_at=row.due_at,
    )
