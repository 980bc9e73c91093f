"""Counts of what is in the store, for metrics: a session comes in, one frozen value goes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, text

from service.core.model import CommitState
from service.store.alert_tables import AuditRow
from service.store.delivery_tables import PullJobRow
from service.store.digest_tables import DigestRow
from service.store.tables import AlertRow, CommitRow, JobRow, RunRow, VerdictRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import InstrumentedAttribute, Session

#: Counts by words, such as `("single", "stored")`.
Counts = Mapping[tuple[str, ...], int]


@dataclass(frozen=True, kw_only=True)
class Census:
    """How many of everything there are."""

    #: By state.
    commits: Counts
    #: By kind and state.
    jobs: Counts
    pull_jobs: Counts
    #: By kind and outcome.
    runs: Counts
    #: By stage and decision.
    verdicts: Counts
    #: By state.
    alerts: Counts
    #: `sent` and `waiting`.
    digests: Counts
    #: Entries of the audit log that issue and chat have still to hear of.
    untold: int
    #: When the commit was seen that waits longest to be measured; None where none waits.
    waiting_since: datetime | None
    #: Of the database, free pages included.
    size_bytes: int


def take_census(session: Session) -> Census:
    """Count everything."""
    sent = session.scalar(select(func.count()).where(DigestRow.sent_at.is_not(None))) or 0
    waiting = session.scalar(select(func.count()).where(DigestRow.sent_at.is_(None))) or 0
    return Census(
        commits=_counted(session, CommitRow.state),
        jobs=_counted(session, JobRow.kind, JobRow.state),
        pull_jobs=_counted(session, PullJobRow.kind, PullJobRow.state),
        runs=_counted(session, RunRow.kind, RunRow.outcome),
        verdicts=_counted(session, VerdictRow.stage, VerdictRow.decision),
        alerts=_counted(session, AlertRow.state),
        digests={("sent",): sent, ("waiting",): waiting},
        untold=session.scalar(select(func.count()).where(AuditRow.told_at.is_(None))) or 0,
        waiting_since=session.scalar(
            select(func.min(CommitRow.seen_at)).where(CommitRow.state == CommitState.WAITING)
        ),
        size_bytes=_size(session),
    )


def _counted(session: Session, *columns: InstrumentedAttribute[Any]) -> Counts:
    rows = session.execute(select(*columns, func.count()).group_by(*columns)).all()
    return {tuple(str(word) for word in row[:-1]): row[-1] for row in rows}


def _size(session: Session) -> int:
    if session.get_bind().dialect.name == "sqlite":
        pages = session.execute(text("PRAGMA page_count")).scalar_one()
        return int(pages * session.execute(text("PRAGMA page_size")).scalar_one())
    return int(session.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
