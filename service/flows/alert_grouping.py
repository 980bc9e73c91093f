"""One alert for one cause: a confirmed loss comes in, the alert that it belongs to goes out.

A commit whose range overlaps that of an alert and that slows the same workloads joins it; a loss
that was fixed and came back opens its alert again; anything else is a new alert. Who is told, and
how, is not decided here.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from service.core.alert_actions import (
    OPEN_STATES,
    SERVICE_ACTOR,
    AlertAction,
    AlertOrder,
    OrderVia,
)
from service.core.alert_records import AlertCommit, AlertPart
from service.core.model import AlertState, EventKind
from service.flows.alert_actions import carry_out
from service.store import alerts, commits, events

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.model import Alert, AlertWorkload

#: A loss of the same size on the same workloads is the old one come back for as long as people
#: remember its fix: about a release. After that another cause is likelier, and gets its own alert.
RETURNS_WITHIN: Final = timedelta(days=90)


def raise_once(session: Session, alert: Alert, *, at: datetime) -> Alert:
    """Return the alert for a confirmed loss, opened, joined or opened again; done once a commit.

    Args:
        session: Of the transaction that judges the commit.
        alert: The alert as it is when the commit has its own.
        at: When.
    """
    known = alerts.of_commit(session, alert.fork, alert.sha)
    if known is not None:
        return known
    older = [commit.sha for commit in commits.first_parents(session, alert.fork, alert.sha)]
    accepted = overlapping(alert, _in(session, alert, AlertState.ACCEPTED), older)
    open_ = overlapping(alert, _in(session, alert, *OPEN_STATES), older)
    # What somebody took as intended is not raised again; what else became slower is.
    alert = _without(alert, accepted)
    if open_:
        return _join(session, open_[0], alert, at=at)
    if not alert.workloads:
        return _join(session, accepted[0], alert, at=at)
    back = came_back(alert, _in(session, alert, AlertState.FIXED), older, at=at)
    # Somebody may have said something else about it in the meantime; from here on nobody can.
    if back is not None and alerts.locked(session, back.id).state is AlertState.FIXED:
        return _open_again(session, back, alert, at=at)
    return alerts.open_once(session, alert)


def overlapping(alert: Alert, others: Sequence[Alert], older: Sequence[str]) -> list[Alert]:
    """Return the alerts that the same commit may be to blame for, the nearest first.

    Ranges are half-open, `(baseline, commit]`. As commits are judged in order, two of them overlap
    if the earlier alert's commit lies in the later one's range.

    Args:
        alert: The loss in question.
        others: Alerts that it may belong to.
        older: The first-parent ancestors of its commit, nearest first.
    """
    if alert.baseline_sha not in older:
        return []
    inside = older[: older.index(alert.baseline_sha)]
    near = [other for other in others if other.sha in inside and _names(other) & _names(alert)]
    return sorted(near, key=lambda other: inside.index(other.sha))


def came_back(
    alert: Alert, fixed: Sequence[Alert], older: Sequence[str], *, at: datetime
) -> Alert | None:
    """Return the fixed alert whose loss this is again, if there is one; the newest first.

    It is the same loss if every workload of then is slower again, each by about as much: the two
    intervals overlap.
    """
    now = {item.workload: item for item in alert.workloads}
    for other in fixed:
        remembered = other.closed_at is not None and at - other.closed_at <= RETURNS_WITHIN
        alike = all(
            then.workload in now and _overlap(then, now[then.workload]) for then in other.workloads
        )
        if remembered and alike and other.workloads and other.sha in older:
            return other
    return None


def _join(session: Session, other: Alert, alert: Alert, *, at: datetime) -> Alert:
    """Add a commit, and the workloads that only it showed, to an alert with the same cause."""
    # As it is now, and as nobody else can change it: what people said about it stays.
    other = alerts.locked(session, other.id)
    new = [item for item in alert.workloads if item.workload not in _names(other)]
    if new:
        other = alerts.keep(session, replace(other, workloads=(*other.workloads, *new)))
    commit = AlertCommit(
        fork=alert.fork, sha=alert.sha, part=AlertPart.JOINED, run=alert.run, at=at
    )
    alerts.add_commit_once(session, other.id, commit)
    events.append_once(
        session,
        alert.fork,
        alert.sha,
        EventKind.ALERT_CHANGED,
        f"belongs to alert {other.id}: its range overlaps, and so do its workloads",
        at=at,
        about=other.id,
    )
    return other


def _open_again(session: Session, back: Alert, alert: Alert, *, at: datetime) -> Alert:
    """Open a fixed alert again; it is now about the commit with which the loss came back."""
    alerts.keep(
        session,
        replace(
            back,
            sha=alert.sha,
            baseline_sha=alert.baseline_sha,
            run=alert.run,
            workloads=alert.workloads,
        ),
    )
    commit = AlertCommit(
        fork=alert.fork, sha=alert.sha, part=AlertPart.REOPENED, run=alert.run, at=at
    )
    alerts.add_commit_once(session, back.id, commit)
    order = AlertOrder(
        alert=back.id,
        action=AlertAction.REOPEN,
        actor=SERVICE_ACTOR,
        via=OrderVia.FLOW,
        note="the same loss came back",
        key=f"returned:{alert.sha}",
    )
    return carry_out(session, order, at=at, details={"commit": alert.sha}).alert


def _in(session: Session, alert: Alert, *states: AlertState) -> list[Alert]:
    return alerts.in_states(session, alert.fork, states)


def _names(alert: Alert) -> set[str]:
    return {item.workload for item in alert.workloads}


def _without(alert: Alert, others: Sequence[Alert]) -> Alert:
    """Return an alert without the workloads that others name."""
    theirs = {name for other in others for name in _names(other)}
    rest = tuple(item for item in alert.workloads if item.workload not in theirs)
    return replace(alert, workloads=rest)


def _overlap(one: AlertWorkload, other: AlertWorkload) -> bool:
    return one.low <= other.high and other.low <= one.high
