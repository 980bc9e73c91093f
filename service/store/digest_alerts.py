"""Queries about the alerts of a week of a fork: still open, closed in it, and judged by people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from service.core.alert_actions import CLOSED_STATES
from service.store import alerts
from service.store.tables import AlertRow

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

    from service.core.digests import Window
    from service.core.model import Alert

#: Alerts of one list. Whoever has more open has stopped looking at them.
ALERTS_MAX: Final = 100


def still_open(session: Session, window: Window) -> list[Alert]:
    """Return the alerts that were open when the window ended, oldest first."""
    return _read(
        session,
        AlertRow.fork == window.fork,
        AlertRow.opened_at < window.until,
        AlertRow.closed_at.is_(None) | (AlertRow.closed_at >= window.until),
    )


def closed(session: Session, window: Window) -> list[Alert]:
    """Return the alerts that were closed in the window, by whatever, the oldest first."""
    return _read(
        session,
        AlertRow.fork == window.fork,
        AlertRow.state.in_(CLOSED_STATES),
        AlertRow.closed_at >= window.begins,
        AlertRow.closed_at < window.until,
    )


def judged(session: Session, window: Window) -> tuple[int, int]:
    """Return how many alerts people called true, and how many false, of all before its end."""
    query = (
        select(AlertRow.true_alarm, func.count())
        .where(
            AlertRow.fork == window.fork,
            AlertRow.opened_at < window.until,
            AlertRow.true_alarm.is_not(None),
        )
        .group_by(AlertRow.true_alarm)
    )
    counts = {bool(true): count for true, count in session.execute(query)}
    return counts.get(True, 0), counts.get(False, 0)


def _read(session: Session, *conditions: ColumnElement[bool]) -> list[Alert]:
    query = select(AlertRow.id).where(*conditions).order_by(AlertRow.opened_at, AlertRow.id)
    found = (alerts.find(session, one) for one in session.scalars(query.limit(ALERTS_MAX)).all())
    return [alert for alert in found if alert is not None]
