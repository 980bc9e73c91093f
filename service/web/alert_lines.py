"""An alert in words for whoever has to act: how old, whose, until when, and what to do next.

An alert and the time come in, words go out. It gives no orders, and asks no database.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from service.core.model import AlertState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from service.core.model import Alert

_UNITS: Final = (
    ("week", timedelta(weeks=1)),
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
)
#: Below two weeks days are counted, and so on: "9 days" says more than "1 week".
_COUNTED_FROM: Final = 2
#: Names in the sentence about all alerts; each alert below it names its own.
_NAMES_MAX: Final = 3
_SETTLE: Final = "fix or revert it, accept the loss, or say that it is a false alarm"
_NEXT: Final = {
    AlertState.SUSPECTED: "A paired job has still to confirm it.",
    AlertState.BISECTING: "Its range is being measured; wait for the commit to be named.",
    AlertState.CULPRIT_FOUND: f"The commit is named: {_SETTLE}.",
    AlertState.ACCEPTED: "Nothing; later commits are compared with the new level.",
    AlertState.FIXED: "Nothing; the loss is gone.",
    AlertState.FALSE: "Nothing; there was no loss.",
}


@dataclass(frozen=True, kw_only=True)
class AlertLine:
    """An open alert on a list."""

    alert: Alert
    sentence: str
    age: str
    #: Who should act.
    who: str
    #: The day by which it should be settled; empty where nobody said one.
    due: str
    overdue: bool
    muted: bool
    next_step: str


def alert_line(alert: Alert, said: str, *, now: datetime) -> AlertLine:
    """Return an alert as a line of a list; `said` is its one sentence."""
    overdue = alert.due_on is not None and alert.due_on < now.date()
    return AlertLine(
        alert=alert,
        sentence=said,
        age=age(now - alert.opened_at),
        who=_who(alert),
        due=alert.due_on.isoformat() if alert.due_on else "",
        overdue=overdue,
        muted=alert.muted(now),
        next_step=next_step(alert, now=now),
    )


def most_urgent_first(lines: Iterable[AlertLine]) -> list[AlertLine]:
    """Return lines with what is overdue first, then what nobody owns; what is quiet last."""
    return sorted(lines, key=lambda one: (one.muted, not one.overdue, one.alert.owner is not None))


def who_is_needed(lines: Sequence[AlertLine]) -> str:
    """Return in one sentence how many alerts are open, and whom they wait for."""
    if not lines:
        return "Nothing. No alert is open."
    loud = [line for line in lines if not line.muted]
    late = [line for line in loud if line.overdue]
    rest = [line for line in loud if not line.overdue]
    nobodys = [line for line in rest if line.alert.owner is None]
    owned = [line for line in rest if line.alert.owner is not None]
    quiet = len(lines) - len(loud)
    parts = [
        f"{len(late)} overdue{_with(late)}" if late else "",
        f"{len(nobodys)} taken by nobody yet" if nobodys else "",
        f"{len(owned)}{_with(owned)}" if owned else "",
        f"{quiet} quiet for now" if quiet else "",
    ]
    are = "alert is" if len(lines) == 1 else "alerts are"
    return f"{len(lines)} {are} open: {', '.join(part for part in parts if part)}."


def next_step(alert: Alert, *, now: datetime) -> str:
    """Return what should be done next about an alert, in a sentence."""
    if alert.state in _NEXT:
        return _NEXT[alert.state]
    if alert.owner is None:
        return "Nobody looks after it: acknowledge it, or assign it to somebody."
    late = "Overdue: " if alert.due_on is not None and alert.due_on < now.date() else ""
    return f"{late}{alert.owner} looks after it: {_SETTLE}."


def age(span: timedelta) -> str:
    """Return a span of time in the largest unit of which there are two, such as `9 days`."""
    for name, unit in _UNITS:
        count = span // unit
        if count >= _COUNTED_FROM:
            return f"{count} {name}s"
    return "1 minute" if span >= timedelta(minutes=1) else "less than a minute"


def _who(alert: Alert) -> str:
    if alert.owner is not None:
        return alert.owner
    return f"nobody yet; the commit is by {alert.author}" if alert.author else "nobody yet"


def _with(lines: Sequence[AlertLine]) -> str:
    """Return whose alerts these are, such as ` with Ada and Grace`; nothing where they are none's.

    What is overdue may have nobody: whoever gave it away said a day and no name.
    """
    names = list(dict.fromkeys(line.alert.owner for line in lines if line.alert.owner))
    if not names:
        return ""
    shown = names[:_NAMES_MAX]
    more = len(names) - len(shown)
    return f" with {' and '.join(shown)}{f' and {more} more' if more else ''}"
