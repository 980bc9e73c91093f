"""What the page of an alert shows: the loss, who has it, and everything that was done about it.

A session and the time come in, frozen values go out. Which orders are possible is for the table of
`core.alert_actions` to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reports.alert import alert_title
from reports.bisect_chart import bisect_chart
from reports.numbers import short
from service.core.alert_actions import AlertAction, allowed_actions
from service.core.alert_records import AlertPart, AuditSubject
from service.core.errors import NotFoundError
from service.store import alerts, audit, bisects, events, runs, verdicts
from service.web.alert_lines import alert_line
from service.web.views import run_part

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.alert_records import AlertCommit, AuditEntry
    from service.core.bisections import Bisect
    from service.core.model import Alert, Event
    from service.web.alert_lines import AlertLine
    from service.web.views import RunPart

#: What an order does, for whoever has not given one yet.
MEANINGS: Final = {
    AlertAction.ACKNOWLEDGE: "I have seen it and look after it",
    AlertAction.ACCEPT: "it is real and intended: compare later commits with the new level",
    AlertAction.FALSE_ALARM: "there is no loss",
    AlertAction.TRUE_ALARM: "the loss is real; nothing else changes",
    AlertAction.MUTE: "no news about it for a while",
    AlertAction.ASSIGN: "somebody shall look after it",
    AlertAction.NOTE: "words for whoever reads it next",
    AlertAction.FIXED: "the loss is gone",
    AlertAction.REOPEN: "it is not settled after all",
}
_PARTS: Final = {
    AlertPart.OPENED: "a paired job showed the loss",
    AlertPart.JOINED: "a paired job showed the same loss",
    AlertPart.REOPENED: "the same loss was back",
    AlertPart.FIXED: "the loss was gone",
}


@dataclass(frozen=True, kw_only=True)
class AlertRequest:
    """What somebody asks for with the form of the page."""

    #: Makes it one order, however often the form is sent.
    key: str
    action: str = ""
    note: str = ""
    owner: str = ""
    due_on: str = ""
    days: str = ""
    #: Why it was not done.
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something that happened to an alert."""

    at: datetime
    who: str
    what: str
    #: As somebody wrote it.
    note: str = ""
    #: Commit that it is about, if it is about one.
    sha: str | None = None


@dataclass(frozen=True, kw_only=True)
class PossibleAction:
    """An order that can be given now."""

    action: AlertAction
    meaning: str


@dataclass(frozen=True, kw_only=True)
class BisectPart:
    """A search of an alert's range, as far as it has come."""

    bisect: Bisect
    #: Probability of each commit; None before the first measurement.
    chart: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class AlertPage:
    """Everything on the page of an alert."""

    alert: Alert
    title: str
    line: AlertLine
    run: RunPart
    #: Oldest first.
    timeline: tuple[Step, ...]
    possible: tuple[PossibleAction, ...]
    #: The newest search of its range; None where there was none.
    bisect: BisectPart | None
    events: tuple[Event, ...]


def alert_page(session: Session, alert_id: str, *, now: datetime) -> AlertPage:
    """Return the page of an alert.

    Raises:
        NotFoundError: There is no such alert.
    """
    alert = alerts.find(session, alert_id)
    if alert is None:
        raise NotFoundError(f"There is no alert {alert_id}.")
    run = runs.find(session, alert.run)
    if run is None:
        raise NotFoundError(f"The run of alert {alert_id} is no longer stored.")
    part = run_part(session, run, verdicts.of_run(session, run.id))
    return AlertPage(
        alert=alert,
        title=alert_title(part.rows, fork=alert.fork, branch=run.branch, bad=alert.sha),
        line=alert_line(alert, part.sentence, now=now),
        run=part,
        timeline=_timeline(session, alert_id),
        possible=tuple(
            PossibleAction(action=action, meaning=MEANINGS[action])
            for action in allowed_actions(alert.state)
        ),
        bisect=_bisect(session, alert_id),
        events=tuple(events.of_commit(session, alert.fork, alert.sha)),
    )


def _bisect(session: Session, alert_id: str) -> BisectPart | None:
    """Return the newest bisect of an alert with what it knows."""
    newest = bisects.newest(session, alert=alert_id, limit=1)
    if not newest:
        return None
    found = bisects.document(session, newest[0].id)
    return BisectPart(bisect=newest[0], chart=bisect_chart(found) if found else None)


def _timeline(session: Session, alert_id: str) -> tuple[Step, ...]:
    """Return what commits and people did, in the order in which they did."""
    seen = [_commit_step(commit) for commit in alerts.commits_of(session, alert_id)]
    done = [_step(entry) for entry in audit.history(session, AuditSubject.ALERT, alert_id)]
    return tuple(sorted((*seen, *done), key=lambda step: step.at))


def _commit_step(commit: AlertCommit) -> Step:
    return Step(
        at=commit.at,
        who="forkwatch",
        what=f"{_PARTS[commit.part]} at {short(commit.sha)}",
        sha=commit.sha,
    )


def _step(entry: AuditEntry) -> Step:
    turned = f", {entry.before} to {entry.after}" if entry.before != entry.after else ""
    details = ", ".join(f"{name} {value}" for name, value in entry.details.items() if value)
    return Step(
        at=entry.at,
        who=f"{entry.actor} ({entry.via})",
        what=f"{entry.what}{turned}{f' ({details})' if details else ''}",
        note=entry.note,
    )
