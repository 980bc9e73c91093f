"""The tables of the Slack channel, explained in docs/schema.md."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  SQLAlchemy reads the annotations

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables import NAME_LENGTH, WORD_LENGTH, Row


class SlackMessageRow(Row):
    """Posts of ours: one for each alert, and one for each topic in its thread."""

    __tablename__ = "slack_messages"
    __table_args__ = (Index("ix_slack_messages_due_at", "due_at"),)

    alert: Mapped[str] = mapped_column(ForeignKey("alerts.id"), primary_key=True)
    topic: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    channel: Mapped[str] = mapped_column(String(WORD_LENGTH))
    ts: Mapped[str] = mapped_column(String(WORD_LENGTH))
    digest: Mapped[str] = mapped_column(String(64))
    resolution: Mapped[str] = mapped_column(Text)
    due_at: Mapped[datetime | None]


class SlackRequestRow(Row):
    """Signatures of requests that were taken in, for as long as they would be good."""

    __tablename__ = "slack_requests"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    at: Mapped[datetime]
