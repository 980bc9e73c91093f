"""Queries about alerts: one per cause, with all its workloads and the commits that had a part."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from sqlalchemy import ColumnElement, Select, and_, or_, select

from service.core.alert_records import RAISED, AlertCommit, AlertPart
from service.core.errors import UnknownAlertError
from service.core.model import Alert, AlertState, AlertWorkload
from service.store.alert_tables import AlertCommitRow
from service.store.tables import AlertRow, CommitRow

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy.orm import Session

#: Rows of one page of a list.
PAGE_ROWS_MAX: Final = 200
#: Alerts that are looked through for one with the same cause. A fork with more open ones has other
#: worries than one alert too many.
LOOKED_AT_MAX: Final = 1_000


def open_once(session: Session, alert: Alert) -> Alert:
    """Store an alert, or return the one that its commit has a part in already."""
    known = of_commit(session, alert.fork, alert.sha)
    if known is not None:
        return known
    row = AlertRow(id=alert.id, fork=alert.fork, opened_at=alert.opened_at)
    _fill(row, alert)
    session.add(row)
    session.flush()
    add_commit_once(session, alert.id, _commit_of(alert, AlertPart.OPENED, at=alert.opened_at))
    return alert


def keep(session: Session, alert: Alert) -> Alert:
    """Write down an alert that is there already as it is now, and return it as it reads."""
    row = session.get(AlertRow, alert.id)
    assert row is not None, "an alert is opened before it changes"
    _fill(row, alert)
    session.flush()
    changed = find(session, alert.id)
    assert changed is not None, "the alert was there a moment ago"
    return changed


def locked(session: Session, alert_id: str) -> Alert:
    """Return an alert that nobody else can change before this transaction ends.

    Raises:
        UnknownAlertError: There is none of that id.
    """
    # SQLite has one writer at a time and knows no such lock; PostgreSQL waits for the row here.
    session.get(AlertRow, alert_id, with_for_update=True)
    alert = find(session, alert_id)
    if alert is None:
        raise UnknownAlertError(f"there is no alert {alert_id!r}")
    return alert


def find(session: Session, alert_id: str) -> Alert | None:
    """Return an alert, if there is one of that id."""
    return _one(session, _query().where(AlertRow.id == alert_id))


def of_commit(session: Session, fork: str, sha: str) -> Alert | None:
    """Return the alert about a loss that was seen at this commit, if there is one."""
    raised = (
        select(AlertCommitRow.alert)
        .where(
            AlertCommitRow.fork == fork,
            AlertCommitRow.sha == sha,
            AlertCommitRow.part.in_(RAISED),
        )
        .order_by(AlertCommitRow.id)
        .limit(1)
    )
    return _one(session, _query().where(AlertRow.id == raised.scalar_subquery()))


def newest(
    session: Session,
    fork: str | None = None,
    *,
    states: Collection[AlertState] = (),
    before: str | None = None,
    limit: int = 100,
) -> list[Alert]:
    """Return alerts, newest first.

    Args:
        session: To read with.
        fork: Of this fork alone, where given.
        states: In one of these, where given.
        before: Id of the alert to page on from, the last one of the page before.
        limit: At most so many.
    """
    query = _query().order_by(AlertRow.opened_at.desc(), AlertRow.id)
    if fork is not None:
        query = query.where(AlertRow.fork == fork)
    if states:
        query = query.where(AlertRow.state.in_(states))
    if before is not None:
        query = query.where(_after_on_the_list(session, before))
    rows = session.execute(query.limit(min(limit, PAGE_ROWS_MAX)))
    return [_value(row, commit) for row, commit in rows]


def in_states(session: Session, fork: str, states: Collection[AlertState]) -> list[Alert]:
    """Return the alerts of a fork that are in one of these states, newest first."""
    query = _query().where(AlertRow.fork == fork, AlertRow.state.in_(states))
    query = query.order_by(AlertRow.opened_at.desc(), AlertRow.id).limit(LOOKED_AT_MAX)
    return [_value(row, commit) for row, commit in session.execute(query)]


def add_commit_once(session: Session, alert_id: str, commit: AlertCommit) -> None:
    """Note that a commit has this part in an alert, unless that is noted already."""
    found = session.scalar(
        select(AlertCommitRow.id).where(
            AlertCommitRow.alert == alert_id,
            AlertCommitRow.sha == commit.sha,
            AlertCommitRow.part == commit.part,
        )
    )
    if found is None:
        session.add(
            AlertCommitRow(
                alert=alert_id,
                fork=commit.fork,
                sha=commit.sha,
                part=commit.part,
                run=commit.run,
                at=commit.at,
            )
        )
        session.flush()


def commits_of(session: Session, alert_id: str) -> list[AlertCommit]:
    """Return the commits that had a part in an alert, in the order in which they did."""
    query = (
        select(AlertCommitRow)
        .where(AlertCommitRow.alert == alert_id)
        .order_by(AlertCommitRow.id)
        .limit(LOOKED_AT_MAX)
    )
    return [
        AlertCommit(fork=row.fork, sha=row.sha, part=row.part, run=row.run, at=row.at)
        for row in session.scalars(query)
    ]


def _commit_of(alert: Alert, part: AlertPart, *, at: datetime) -> AlertCommit:
    return AlertCommit(fork=alert.fork, sha=alert.sha, part=part, run=alert.run, at=at)


def _after_on_the_list(session: Session, before: str) -> ColumnElement[bool]:
    """Return the condition to come later on the list than an alert; an unknown one ends it."""
    last = session.get(AlertRow, before)
    if last is None:
        return AlertRow.id.is_(None)
    return or_(
        AlertRow.opened_at < last.opened_at,
        and_(AlertRow.opened_at == last.opened_at, AlertRow.id > last.id),
    )


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


def _fill(row: AlertRow, alert: Alert) -> None:
    """Set what may change about an alert."""
    row.sha = alert.sha
    row.baseline_sha = alert.baseline_sha
    row.state = alert.state
    row.workloads = [asdict(workload) for workload in alert.workloads]
    row.run = alert.run
    row.owner = alert.owner
    row.due_on = alert.due_on
    row.muted_until = alert.muted_until
    row.true_alarm = alert.true_alarm
    row.closed_at = alert.closed_at


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
        owner=row.owner,
        due_on=row.due_on,
        muted_until=row.muted_until,
        true_alarm=row.true_alarm,
        closed_at=row.closed_at,
    )
