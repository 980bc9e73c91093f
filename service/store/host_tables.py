"""The tables of hosts: the machines that measured, how noisy they are, and their A/A checks.

Explained one by one in docs/schema.md; only query modules and Alembic read this. What is kept of a
host names its run, which is that of a commit or that of a check, and so no foreign key.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  SQLAlchemy reads the annotations
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables import NAME_LENGTH, SHA_LENGTH, WORD_LENGTH, Row


class HostRow(Row):
    """Machines that sent runs, each as its newest run described it."""

    __tablename__ = "hosts"

    host_class: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    cpu_model: Mapped[str] = mapped_column(Text)
    logical_cpus: Mapped[int]
    memory_bytes: Mapped[int] = mapped_column(BigInteger)
    kernel: Mapped[str] = mapped_column(Text)
    os: Mapped[str] = mapped_column(Text)
    virtualised: Mapped[bool]
    fingerprint: Mapped[str] = mapped_column(String(NAME_LENGTH))
    fingerprint_since: Mapped[datetime]
    first_seen_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    #: Null until it has brought one since this column is there.
    last_run: Mapped[str | None] = mapped_column(String(NAME_LENGTH))


class HostNoiseRow(Row):
    """How much one workload scattered in one run; append-only."""

    __tablename__ = "host_noise"
    __table_args__ = (
        UniqueConstraint("run", "workload"),
        Index("ix_host_noise_host_class_host_name_at", "host_class", "host_name", "at"),
        Index("ix_host_noise_at", "at"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    run: Mapped[str] = mapped_column(String(NAME_LENGTH))
    host_class: Mapped[str] = mapped_column(String(NAME_LENGTH))
    host_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    fingerprint: Mapped[str] = mapped_column(String(NAME_LENGTH))
    at: Mapped[datetime]
    workload: Mapped[str] = mapped_column(String(NAME_LENGTH))
    starts: Mapped[int]
    slices: Mapped[int]
    disturbed: Mapped[int]
    steal_percent_max: Mapped[float]
    starts_sd: Mapped[float | None]
    starts_df: Mapped[int]
    slices_sd: Mapped[float | None]
    slices_df: Mapped[int]
    pairs_sd: Mapped[float | None]
    pairs_df: Mapped[int]


class CanaryRow(Row):
    """Readings of the canary, as the runs' documents have them; append-only."""

    __tablename__ = "canary_readings"
    __table_args__ = (
        UniqueConstraint("run", "position"),
        Index("ix_canary_readings_host_class_host_name_at", "host_class", "host_name", "at"),
        Index("ix_canary_readings_at", "at"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    run: Mapped[str] = mapped_column(String(NAME_LENGTH))
    position: Mapped[int]
    host_class: Mapped[str] = mapped_column(String(NAME_LENGTH))
    host_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    fingerprint: Mapped[str] = mapped_column(String(NAME_LENGTH))
    at: Mapped[datetime]
    moment: Mapped[str] = mapped_column(String(NAME_LENGTH))
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    unit: Mapped[str] = mapped_column(String(NAME_LENGTH))
    value: Mapped[float]
    change_percent: Mapped[float | None]
    suspicious: Mapped[bool]


class AaCheckRow(Row):
    """One commit, measured against itself."""

    __tablename__ = "aa_checks"
    __table_args__ = (
        Index("ix_aa_checks_host_class_created_at", "host_class", "created_at"),
        Index("ix_aa_checks_state", "state"),
    )

    id: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    fork: Mapped[str] = mapped_column(ForeignKey("forks.name"))
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    host_class: Mapped[str] = mapped_column(String(NAME_LENGTH))
    state: Mapped[str] = mapped_column(String(WORD_LENGTH))
    asked_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    via: Mapped[str] = mapped_column(String(WORD_LENGTH))
    order: Mapped[str] = mapped_column("order_json", Text)
    gates: Mapped[str] = mapped_column("gates_json", Text)
    run: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    attempts: Mapped[int]
    said: Mapped[str] = mapped_column(Text)
    host_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    fingerprint: Mapped[str] = mapped_column(String(NAME_LENGTH))
    results: Mapped[list[Any]]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    document_gzip: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
