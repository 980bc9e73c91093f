"""The tables of what GitHub's webhooks bring: deliveries, pull requests and their jobs.

Explained one by one in docs/schema.md; only query modules and Alembic read this. States are kept as
words.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  SQLAlchemy reads the annotations
from typing import Final

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables import NAME_LENGTH, SHA_LENGTH, WORD_LENGTH, Row

#: A GUID has 36 characters.
GUID_LENGTH: Final = 64


class DeliveryRow(Row):
    """Webhooks that something was done about, so that it is done once."""

    __tablename__ = "deliveries"
    __table_args__ = (Index("ix_deliveries_received_at", "received_at"),)

    guid: Mapped[str] = mapped_column(String(GUID_LENGTH), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    event: Mapped[str] = mapped_column(String(64))
    received_at: Mapped[datetime]


class PullRequestRow(Row):
    """Pull requests, each as its newest news told it."""

    __tablename__ = "pull_requests"

    fork: Mapped[str] = mapped_column(ForeignKey("forks.name"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    head_sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    head_at: Mapped[datetime]
    base: Mapped[str] = mapped_column(String(NAME_LENGTH))
    outside: Mapped[bool]
    draft: Mapped[bool]
    open: Mapped[bool]
    changed_at: Mapped[datetime]


class PullJobRow(Row):
    """Pairs measured for pull requests, each with its run document once that is there."""

    __tablename__ = "pull_jobs"
    __table_args__ = (
        Index("ix_pull_jobs_fork_pull", "fork", "pull"),
        Index("ix_pull_jobs_state", "state"),
    )

    id: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    fork: Mapped[str] = mapped_column(ForeignKey("forks.name"))
    pull: Mapped[int]
    kind: Mapped[str] = mapped_column(String(WORD_LENGTH))
    state: Mapped[str] = mapped_column(String(WORD_LENGTH))
    suite: Mapped[str] = mapped_column(String(NAME_LENGTH))
    candidate_sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    baseline_sha: Mapped[str | None] = mapped_column(String(SHA_LENGTH))
    run: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    asked_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    trusted: Mapped[bool]
    order: Mapped[str] = mapped_column("order_json", Text)
    attempts: Mapped[int]
    said: Mapped[str] = mapped_column(Text)
    verdicts: Mapped[str] = mapped_column("verdicts_json", Text)
    accepted_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    accepted_reason: Mapped[str] = mapped_column(Text)
    #: Grows with each job written down: times may be equal.
    sequence: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    document_gzip: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
