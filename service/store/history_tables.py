"""The tables of backfills and bridges: past commits to measure, and how old series relate to new.

Explained one by one in docs/schema.md; only query modules and Alembic read this. States are kept as
words.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  SQLAlchemy reads the annotations
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables import NAME_LENGTH, SHA_LENGTH, WORD_LENGTH, Row


class BackfillRow(Row):
    """Past commits that somebody wants measured for the baseline."""

    __tablename__ = "backfills"
    __table_args__ = (Index("ix_backfills_fork_state", "fork", "state"),)

    id: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    fork: Mapped[str] = mapped_column(ForeignKey("forks.name"))
    state: Mapped[str] = mapped_column(String(WORD_LENGTH))
    commit_order: Mapped[str] = mapped_column(String(WORD_LENGTH))
    before_sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    commits: Mapped[list[Any]]
    asked_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    via: Mapped[str] = mapped_column(String(WORD_LENGTH))
    said: Mapped[str] = mapped_column(Text)
    #: Grows with each backfill written down: times may be equal.
    sequence: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class BridgeRow(Row):
    """Commits measured again because what their series were measured under has changed."""

    __tablename__ = "bridges"
    __table_args__ = (
        Index("ix_bridges_fork_sha", "fork", "sha"),
        Index("ix_bridges_state", "state"),
    )

    id: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    fork: Mapped[str] = mapped_column(ForeignKey("forks.name"))
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    old_sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    state: Mapped[str] = mapped_column(String(WORD_LENGTH))
    why: Mapped[str] = mapped_column(Text)
    joints: Mapped[list[Any]]
    paired: Mapped[bool]
    order: Mapped[str] = mapped_column("order_json", Text)
    run: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    attempts: Mapped[int]
    said: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    document_gzip: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)


class SeriesRelationRow(Row):
    """How the level of a series relates to the one before it."""

    __tablename__ = "series_relations"
    __table_args__ = (Index("ix_series_relations_new_series", "new_series"),)

    bridge: Mapped[str] = mapped_column(ForeignKey("bridges.id"), primary_key=True)
    new_series: Mapped[str] = mapped_column(ForeignKey("series.id"), primary_key=True)
    old_series: Mapped[str] = mapped_column(ForeignKey("series.id"))
    workload: Mapped[str] = mapped_column(String(NAME_LENGTH))
    effect: Mapped[float]
    low: Mapped[float]
    high: Mapped[float]
    confidence: Mapped[float]
    method: Mapped[str] = mapped_column(String(NAME_LENGTH))
    at: Mapped[datetime]
