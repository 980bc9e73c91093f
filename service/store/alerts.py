"""Queries about alerts: one per commit, with all its workloads."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from sqlalchemy import Select, select

from service.core.model import Alert, AlertWorkload
from service.store.tables import AlertRow, CommitRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

#: Rows of one page of a list.
PAGE_ROWS_MAX: Final = 200


def open_once(session: Session, alert: Alert) -> Alert:
    """Store an alert, or return the one that is already open for its commit."""
    known = of_commit(session, alert.fork, alert.sha)
    if known is not None:
        return known
    session.add(
        AlertRow(
            id=alert.id,
            fork=alert.fork,
            sha=alert.sha,
            baseline_sha=alert.baseline_sha,
            state=alert.state,
            workloads=[asdict(workload) for workload in alert.workloads],
            run=alert.run,
            opened_at=alert.opened_at,
        )
    )
    session.flush()
    return alert


def find(session: Session, alert_id: str) -> Alert | None:
    """Return an alert, if there is one of that id."""
    return _one(session, _query().where(AlertRow.id == alert_id))


def of_commit(session: Session, fork: str, sha: str) -> Alert | None:
    """Return the alert of a commit, if there is one."""
    return _one(session, _query().where(AlertRow.fork == fork, AlertRow.sha == sha))


def newest(session: Session, fork: str | None = None, *, limit: int = 100) -> list[Alert]:
    """Return alerts, newest first, of one fork where given."""
    query = _query().order_by(AlertRow.opened_at.desc(), AlertRow.id)
    if fork is not None:
        query = query.where(AlertRow.fork == fork)
    rows = session.execute(query.limit(min(limit, PAGE_ROWS_MAX)))
    return [_value(row, commit) for row, commit in rows]


def _query() -> Select[AlertRow, CommitRow]:
    return select(AlertRow, CommitRow).join(
        CommitRow, (CommitRow.fork == AlertRow.fork) & (CommitRow.sha == AlertRow.sha)
    )


def _one(session: Session, query: Select[AlertRow, CommitRow]) -> Alert | None:
    found = session.execute(query).one_or_none()
    if found is None:
        return None
    row, commit = found
    return _value(row, commit)


def _value(row: AlertRow, commit: CommitRow) -> Alert:
    return Alert(
        id=row.id,
        fork=row.fork,
        sha=row.sha,
        subject=commit.subject,
        author=commit.author,
        baseline_sha=row.baseline_sha,
        state=row.state,
        workloads=tuple(AlertWorkload(**workload) for workload in row.workloads),
        run=row.run,
        opened_at=row.opened_at,
    )
