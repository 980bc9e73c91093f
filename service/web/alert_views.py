"""What the page of an alert shows: the loss, who has it, and everything that was done about it.

A session and the time come in, frozen values go out. Which orders are possible is for the table of
`core.alert_actions` to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.alert import alert_title
from reports.numbers import short
from reports.rows import rows_of_pair
from service.core.alert_actions import AlertAction, allowed_actions
from service.core.alert_records import AlertPart, AuditSubject
from service.core.errors import NotFoundError
from service.store import alerts, audit, events, runs, verdicts
from service.web.alert_lines import alert_line
from service.web.views import run_part, verdicts_by_workload

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.alert_records import AlertCommit, AuditEntry
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
class AlertPage:
    """Everything on the page of an alert."""

    alert: Alert
    title: str
    line: AlertLine
    run: RunPart
    #: Oldest first.
    timeline: tuple[Step, ...]
    possible: tuple[PossibleAction, ...]
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
    judged = verdicts.of_run(session, run.id)
    rows = rows_of_pair(runs.document(session, run.id), verdicts_by_workload(judged))
    part = run_part(session, run, judged)
    return AlertPage(
        alert=alert,
        title=alert_title(rows, fork=alert.fork, branch=run.branch, bad=alert.sha),
        line=alert_line(alert, part.sentence, now=now),
        run=part,
        timeline=_timeline(session, alert_id),
        possible=tuple(
            PossibleAction(action=action, meaning=MEANINGS[action])
            for action in allowed_actions(alert.state)
        ),
        events=tuple(events.of_commit(session, alert.fork, alert.sha)),
    )


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
