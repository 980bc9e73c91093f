"""The tables of bisects: what is searched, and the measurements that were asked for.

Explained one by one in docs/schema.md; only query modules and Alembic read this. States are kept as
words. A job here is apart from `jobs`: its commit need not be on the branch, it may be measured
more than once, and no baseline learns from it.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  SQLAlchemy reads the annotations

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables import NAME_LENGTH, SHA_LENGTH, WORD_LENGTH, Row


class BisectRow(Row):
    """Searches for the commit that changed a level; the question never changes."""

    __tablename__ = "bisects"
    __table_args__ = (
        Index("ix_bisects_fork_good_sha", "fork", "good_sha"),
        Index("ix_bisects_alert", "alert"),
        Index("ix_bisects_state", "state"),
    )

    id: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    fork: Mapped[str] = mapped_column(ForeignKey("forks.name"))
    good_sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    #: The question as JSON, whole.
    question: Mapped[str] = mapped_column("question_json", Text)
    #: SHA-256 of the plan: measurements under another one are not mixed with these.
    plan_digest: Mapped[str] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(WORD_LENGTH))
    commits: Mapped[int]
    alert: Mapped[str | None] = mapped_column(ForeignKey("alerts.id"))
    asked_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    via: Mapped[str] = mapped_column(String(WORD_LENGTH))
    number: Mapped[int | None]
    said: Mapped[str] = mapped_column(Text)
    #: Grows with each bisect written down: times may be equal.
    sequence: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    material_gzip: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    document_gzip: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)


class BisectJobRow(Row):
    """Measurements of bisects, each with its run document and what it says of its commit."""

    __tablename__ = "bisect_jobs"
    __table_args__ = (Index("ix_bisect_jobs_bisect", "bisect"),)

    id: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    bisect: Mapped[str] = mapped_column(ForeignKey("bisects.id"))
    #: Grows with each job of a bisect: the order in which a search takes observations in.
    sequence: Mapped[int] = mapped_column(BigInteger)
    commit_index: Mapped[int]
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    state: Mapped[str] = mapped_column(String(WORD_LENGTH))
    run: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    starts: Mapped[int]
    attempts: Mapped[int]
    said: Mapped[str] = mapped_column(Text)
    #: The observation as JSON; empty until there is one.
    observation: Mapped[str] = mapped_column("observation_json", Text)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    document_gzip: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
