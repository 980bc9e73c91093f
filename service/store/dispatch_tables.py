"""The table of jobs that a CI was asked to do, one row for each dispatch.

Explained in docs/dispatching.md; only query modules and Alembic read this. States are kept as
words.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  SQLAlchemy reads the annotations

from sqlalchemy import Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables import NAME_LENGTH, WORD_LENGTH, Row


class DispatchedJobRow(Row):
    """Dispatches of jobs to a CI, with the run document until the flow has taken it."""

    __tablename__ = "dispatched_jobs"
    __table_args__ = (
        Index("ix_dispatched_jobs_system_external_id", "system", "external_id"),
        Index("ix_dispatched_jobs_ended_at", "ended_at"),
    )

    #: Of a commit, a pull request or a bisect: these lie in three tables.
    job: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    system: Mapped[str] = mapped_column(String(WORD_LENGTH))
    host_class: Mapped[str] = mapped_column(String(NAME_LENGTH))
    state: Mapped[str] = mapped_column(String(WORD_LENGTH))
    order: Mapped[str] = mapped_column("order_json", Text)
    flow: Mapped[str | None] = mapped_column(Text)
    external_id: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    page: Mapped[str] = mapped_column(Text)
    said: Mapped[str] = mapped_column(Text)
    credential_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    credential_expires_at: Mapped[datetime | None]
    asked_at: Mapped[datetime]
    posted_at: Mapped[datetime | None]
    taken_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    document_gzip: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
