"""The tables around an alert, explained in docs/schema.md: its commits, the audit log, the marks.

Only query modules in this package and Alembic read this. The log and the commits of an alert are
append-only; a mark is a person's word that they may take back.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  SQLAlchemy reads the annotations
from typing import Any, Final

from sqlalchemy import (
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from service.core.alert_records import AlertPart, AuditSubject, MarkKind
from service.store.tables import NAME_LENGTH, SHA_LENGTH, WORD_LENGTH, Row, words

SERIES_LENGTH: Final = 16


class AlertCommitRow(Row):
    """Commits that had a part in an alert; append-only."""

    __tablename__ = "alert_commits"
    __table_args__ = (
        ForeignKeyConstraint(["fork", "sha"], ["commits.fork", "commits.sha"]),
        UniqueConstraint("alert", "sha", "part"),
        Index("ix_alert_commits_fork_sha", "fork", "sha"),
        Index("ix_alert_commits_run", "run"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    alert: Mapped[str] = mapped_column(ForeignKey("alerts.id"))
    fork: Mapped[str] = mapped_column(String(NAME_LENGTH))
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    part: Mapped[AlertPart] = mapped_column(words(AlertPart))
    run: Mapped[str | None] = mapped_column(ForeignKey("runs.id"))
    at: Mapped[datetime]


class AuditRow(Row):
    """Who did what, when, and through what; append-only but for the time of telling."""

    __tablename__ = "audit_log"
    # Rows without a key are all different; with one, an order that arrives again is found.
    __table_args__ = (UniqueConstraint("subject", "about", "key"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    at: Mapped[datetime]
    subject: Mapped[AuditSubject] = mapped_column(words(AuditSubject))
    about: Mapped[str] = mapped_column(String(NAME_LENGTH))
    what: Mapped[str] = mapped_column(String(WORD_LENGTH))
    actor: Mapped[str] = mapped_column(String(NAME_LENGTH))
    via: Mapped[str] = mapped_column(String(WORD_LENGTH))
    note: Mapped[str] = mapped_column(Text)
    key: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    before: Mapped[str | None] = mapped_column(String(WORD_LENGTH))
    after: Mapped[str | None] = mapped_column(String(WORD_LENGTH))
    details: Mapped[dict[str, Any]]
    told_at: Mapped[datetime | None]


class BaselineMarkRow(Row):
    """Where people want the baseline of a series to begin, or to go on."""

    __tablename__ = "baseline_marks"
    __table_args__ = (ForeignKeyConstraint(["fork", "sha"], ["commits.fork", "commits.sha"]),)

    series: Mapped[str] = mapped_column(
        String(SERIES_LENGTH), ForeignKey("series.id"), primary_key=True
    )
    fork: Mapped[str] = mapped_column(String(NAME_LENGTH))
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH), primary_key=True)
    kind: Mapped[MarkKind] = mapped_column(words(MarkKind))
    alert: Mapped[str | None] = mapped_column(ForeignKey("alerts.id"))
    actor: Mapped[str] = mapped_column(String(NAME_LENGTH))
    note: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]
