"""The tables, explained one by one in docs/schema.md.

Only query modules in this package and Alembic read this. Samples and events are append-only;
states are enums kept as words, so that they can be read in any client.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    JSON,
    DateTime,
    Enum,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from detectors.verdict import Decision
from results.document import Outcome
from results.slice import SideName
from service.core.model import AlertState, CommitOutcome, CommitState, EventKind, JobKind, JobState

if TYPE_CHECKING:
    import enum

    from sqlalchemy.engine import Dialect

NAME_LENGTH: Final = 200
SHA_LENGTH: Final = 64
WORD_LENGTH: Final = 24

#: Constraints need names before a migration can change them.
NAMING: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """Aware times in UTC on both databases; SQLite forgets the zone by itself."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store the same instant in UTC; a naive time is a bug."""
        del dialect
        if value is None:
            return None
        assert value.tzinfo is not None, "times in the store are aware"
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the zone back."""
        del dialect
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def words(kind: type[enum.Enum]) -> Enum:
    """Return a column type that keeps an enum by its values, not its Python names."""
    return Enum(
        kind,
        native_enum=False,
        length=WORD_LENGTH,
        values_callable=lambda members: [member.value for member in members],
        validate_strings=True,
    )


class Row(DeclarativeBase):
    """What every table has."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012  SQLAlchemy reads this as a class attribute
        datetime: UtcDateTime(),
        CommitState: words(CommitState),
        CommitOutcome: words(CommitOutcome),
        JobKind: words(JobKind),
        JobState: words(JobState),
        AlertState: words(AlertState),
        EventKind: words(EventKind),
        Outcome: words(Outcome),
        SideName: words(SideName),
        Decision: words(Decision),
        dict[str, Any]: JSON(),
        list[Any]: JSON(),
    }


class ForkRow(Row):
    """Watched repositories."""

    __tablename__ = "forks"

    name: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    branch: Mapped[str] = mapped_column(String(NAME_LENGTH))
    first_seen_at: Mapped[datetime]


class CommitRow(Row):
    """Commits of a fork's branch and what became of them."""

    __tablename__ = "commits"
    __table_args__ = (
        UniqueConstraint("fork", "position"),
        # What waits or is measured, and counts by state for metrics.
        Index("ix_commits_state_fork_position", "state", "fork", "position"),
        # Weeks of a fork, for the digest.
        Index("ix_commits_fork_seen_at", "fork", "seen_at"),
        Index("ix_commits_fork_finished_at", "fork", "finished_at"),
    )

    fork: Mapped[str] = mapped_column(ForeignKey("forks.name"), primary_key=True)
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH), primary_key=True)
    tree: Mapped[str] = mapped_column(String(SHA_LENGTH))
    parent: Mapped[str | None] = mapped_column(String(SHA_LENGTH))
    author: Mapped[str] = mapped_column(Text)
    subject: Mapped[str] = mapped_column(Text)
    committed_at: Mapped[datetime]
    position: Mapped[int]
    state: Mapped[CommitState]
    outcome: Mapped[CommitOutcome | None]
    reason: Mapped[str] = mapped_column(Text)
    seen_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class JobRow(Row):
    """Measurements asked of runners."""

    __tablename__ = "jobs"
    __table_args__ = (
        ForeignKeyConstraint(["fork", "sha"], ["commits.fork", "commits.sha"]),
        UniqueConstraint("fork", "sha", "kind"),
        # Jobs under way are few, and rows have plans in them.
        Index("ix_jobs_fork_state", "fork", "state", "kind"),
    )

    id: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    fork: Mapped[str] = mapped_column(String(NAME_LENGTH))
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    kind: Mapped[JobKind]
    state: Mapped[JobState]
    host_class: Mapped[str] = mapped_column(String(NAME_LENGTH))
    run: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    baseline_sha: Mapped[str | None] = mapped_column(String(SHA_LENGTH))
    order: Mapped[str] = mapped_column("order_json", Text)
    attempts: Mapped[int]
    credential_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    credential_expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class RunRow(Row):
    """Run documents, whole, with the columns that queries need."""

    __tablename__ = "runs"
    __table_args__ = (
        ForeignKeyConstraint(["fork", "sha"], ["commits.fork", "commits.sha"]),
        Index("ix_runs_fork_sha", "fork", "sha"),
        Index("ix_runs_fork_stored_at", "fork", "stored_at"),
        # Counts by host, and by kind and outcome, read it alone: rows have documents in them.
        Index("ix_runs_host_class_host_name", "host_class", "host_name", "outcome", "kind"),
    )

    id: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id"), unique=True)
    fork: Mapped[str] = mapped_column(String(NAME_LENGTH))
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    kind: Mapped[JobKind]
    branch: Mapped[str] = mapped_column(String(NAME_LENGTH))
    suite: Mapped[str] = mapped_column(String(NAME_LENGTH))
    config: Mapped[str] = mapped_column(String(NAME_LENGTH))
    variant: Mapped[str] = mapped_column(String(NAME_LENGTH))
    host_class: Mapped[str] = mapped_column(String(NAME_LENGTH))
    host_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    outcome: Mapped[Outcome]
    baseline_sha: Mapped[str | None] = mapped_column(String(SHA_LENGTH))
    content_hash: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    starts: Mapped[int]
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime]
    stored_at: Mapped[datetime]
    digest: Mapped[str] = mapped_column(String(64))
    document_gzip: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)


class SeriesRow(Row):
    """Which samples may be compared with which."""

    __tablename__ = "series"
    __table_args__ = (Index("ix_series_fork_workload", "fork", "workload"),)

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    fork: Mapped[str] = mapped_column(ForeignKey("forks.name"))
    branch: Mapped[str] = mapped_column(String(NAME_LENGTH))
    host_class: Mapped[str] = mapped_column(String(NAME_LENGTH))
    variant: Mapped[str] = mapped_column(String(NAME_LENGTH))
    config: Mapped[str] = mapped_column(String(NAME_LENGTH))
    workload: Mapped[str] = mapped_column(String(NAME_LENGTH))
    metric: Mapped[str] = mapped_column(String(NAME_LENGTH))
    dataset: Mapped[str] = mapped_column(String(NAME_LENGTH))
    placement: Mapped[str] = mapped_column(String(NAME_LENGTH))


class SampleRow(Row):
    """One number from one slice; append-only."""

    __tablename__ = "samples"
    __table_args__ = (
        UniqueConstraint("run", "series", "side", "start_index", "sequence"),
        Index("ix_samples_series_run", "series", "run"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    run: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    series: Mapped[str] = mapped_column(ForeignKey("series.id"))
    side: Mapped[SideName]
    start_index: Mapped[int]
    sequence: Mapped[int]
    value: Mapped[float]


class VerdictRow(Row):
    """Verdicts with all that is needed to make them again."""

    __tablename__ = "verdicts"
    __table_args__ = (
        UniqueConstraint("run", "series"),
        Index("ix_verdicts_series_id", "series", "id"),
        # Changes of a series, and counts by stage and decision, are read from it alone.
        Index("ix_verdicts_series_stage_sha", "series", "stage", "sha", "decision"),
        Index("ix_verdicts_fork_sha", "fork", "sha"),
        Index("ix_verdicts_fork_created_at", "fork", "created_at"),
        # Confirmed changes of all series are few of many thousands; counts, for metrics.
        Index("ix_verdicts_stage_decision_fork", "stage", "decision", "fork"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    run: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    series: Mapped[str] = mapped_column(ForeignKey("series.id"))
    stage: Mapped[JobKind]
    fork: Mapped[str] = mapped_column(String(NAME_LENGTH))
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    decision: Mapped[Decision]
    effect: Mapped[float]
    low: Mapped[float]
    high: Mapped[float]
    confidence: Mapped[float]
    p_value: Mapped[float]
    detectable_effect: Mapped[float]
    n_baseline: Mapped[int]
    n_candidate: Mapped[int]
    method: Mapped[str] = mapped_column(String(NAME_LENGTH))
    warnings: Mapped[list[Any]]
    direction: Mapped[int]
    gate: Mapped[float]
    alpha: Mapped[float]
    significant: Mapped[bool]
    relevant: Mapped[bool]
    suspicious: Mapped[bool]
    reason: Mapped[str] = mapped_column(Text)
    baseline_inputs: Mapped[list[Any]]
    parameters: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class AlertRow(Row):
    """Confirmed regressions: one per cause, whatever the number of workloads."""

    __tablename__ = "alerts"
    __table_args__ = (
        ForeignKeyConstraint(["fork", "sha"], ["commits.fork", "commits.sha"]),
        UniqueConstraint("fork", "sha"),
        Index("ix_alerts_opened_at", "opened_at"),
    )

    id: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    fork: Mapped[str] = mapped_column(String(NAME_LENGTH))
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    baseline_sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    state: Mapped[AlertState]
    workloads: Mapped[list[Any]]
    run: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    opened_at: Mapped[datetime]
    owner: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    due_on: Mapped[date | None]
    muted_until: Mapped[datetime | None]
    true_alarm: Mapped[bool | None]
    closed_at: Mapped[datetime | None]


class EventRow(Row):
    """What happened to a commit, in order; append-only."""

    __tablename__ = "events"
    __table_args__ = (
        ForeignKeyConstraint(["fork", "sha"], ["commits.fork", "commits.sha"]),
        # A step of a flow that is done again after a crash says nothing twice.
        UniqueConstraint("fork", "sha", "topic"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    at: Mapped[datetime]
    fork: Mapped[str] = mapped_column(String(NAME_LENGTH))
    sha: Mapped[str] = mapped_column(String(SHA_LENGTH))
    kind: Mapped[EventKind]
    topic: Mapped[str] = mapped_column(String(NAME_LENGTH))
    message: Mapped[str] = mapped_column(Text)
