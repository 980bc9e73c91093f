"""What the first page shows: who is needed, where every workload stands, what is measured now.

A session and the time come in, frozen values go out. Nothing here is judged: alerts were raised
before, and how workloads stand is for `heat_views` to gather.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.sentence import sentence
from service.core.alert_actions import OPEN_STATES
from service.core.model import CommitState, JobKind
from service.store import alerts, commits, forks, verdicts
from service.store import overview as overview_store
from service.web.alert_lines import age, alert_line, most_urgent_first, who_is_needed
from service.web.commit_lines import CommitLine, commit_line
from service.web.heat_views import heat_map
from service.web.history_notes import fork_notes
from service.web.views import verdicts_by_workload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.model import Alert, CommitRecord, Fork
    from service.store.overview import RunningJob
    from service.web.alert_lines import AlertLine
    from service.web.heat_views import HeatMap

#: Commits of each fork on the first page: two or three weeks of a busy branch, on one or two
#: screens.
OVERVIEW_COMMITS: Final = 50
OVERVIEW_ALERTS: Final = 20


@dataclass(frozen=True, kw_only=True)
class RunningLine:
    """A job that is under way."""

    job: RunningJob
    what: str
    age: str


@dataclass(frozen=True, kw_only=True)
class ForkPart:
    """A fork on the first page."""

    fork: Fork
    heat: HeatMap | None
    running: tuple[RunningLine, ...]
    #: Commits whose turn has not come.
    waiting: int
    commits: tuple[CommitLine, ...]
    #: A line for what is being measured of the past.
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Everything on the first page."""

    #: What needs a person, and which, in one sentence.
    needed: str
    alerts: tuple[AlertLine, ...]
    forks: tuple[ForkPart, ...]


def overview(session: Session, *, now: datetime, against: str | None = None) -> Overview:
    """Return the first page: what needs a person, then how every fork stands.

    Args:
        session: To read with.
        now: The present time.
        against: Commit, or its first digits, that workloads are compared with; the first measured
            one where None, and for forks that have no such commit.
    """
    opened = alerts.newest(session, states=OPEN_STATES, limit=OVERVIEW_ALERTS)
    lines = most_urgent_first(alert_line(alert, _said(session, alert), now=now) for alert in opened)
    return Overview(
        needed=who_is_needed(lines),
        alerts=tuple(lines),
        forks=tuple(
            _fork_part(session, fork, now=now, against=against)
            for fork in forks.everything(session)
        ),
    )


def _said(session: Session, alert: Alert) -> str:
    """Return the sentence of the pair that showed the loss, as issue and chat have it."""
    confirmed = verdicts_by_workload(verdicts.of_run(session, alert.run))
    if confirmed:
        return sentence(confirmed, at=alert.sha)
    record = commits.find(session, alert.fork, alert.sha)
    return record.reason if record and record.reason else sentence({}, at=alert.sha)


def _fork_part(session: Session, fork: Fork, *, now: datetime, against: str | None) -> ForkPart:
    newest = commits.newest(session, fork.name, limit=OVERVIEW_COMMITS)
    return ForkPart(
        fork=fork,
        heat=heat_map(session, fork, against=against),
        running=tuple(
            _running_line(job, newest, now=now)
            for job in overview_store.running_jobs(session, fork.name)
        ),
        waiting=sum(record.state is CommitState.WAITING for record in newest),
        commits=tuple(commit_line(record) for record in newest),
        notes=fork_notes(session, fork.name),
    )


def _running_line(job: RunningJob, known: Sequence[CommitRecord], *, now: datetime) -> RunningLine:
    subject = next((record.subject for record in known if record.sha == job.sha), "")
    what = "is measured again beside its baseline" if job.kind is JobKind.CONFIRM else "is measured"
    return RunningLine(
        job=job,
        what=f"{what}: {subject}" if subject else what,
        age=age(now - job.created_at),
    )
