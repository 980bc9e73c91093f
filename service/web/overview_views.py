"""What the first page shows: who is needed, where every workload stands, what is measured now.

A session and the time come in, frozen values go out. Nothing here is judged: ratios are of medians,
and alerts were raised before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.numbers import rate
from reports.sentence import sentence
from results.metric import THROUGHPUT
from service.core.alert_actions import OPEN_STATES
from service.core.model import CommitState, JobKind
from service.flows.digest_trends import settings_of
from service.store import alerts, commits, forks, series, verdicts
from service.store import overview as overview_store
from service.web.addresses import workload_path
from service.web.alert_lines import age, alert_line, most_urgent_first
from service.web.commit_lines import CommitLine, commit_line
from service.web.sparklines import sparkline
from service.web.views import verdicts_by_workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from results.series import SeriesKey
    from service.core.model import Alert, CommitRecord, Fork
    from service.store.overview import MeasuredRun, RunningJob
    from service.web.alert_lines import AlertLine
    from service.web.sparklines import Sparkline

#: Commits of each fork on the first page: two or three weeks of a busy branch, on one or two
#: screens.
OVERVIEW_COMMITS: Final = 50
OVERVIEW_ALERTS: Final = 20
#: Columns of the heat map: what a desktop shows without scrolling.
HEAT_COLUMNS: Final = 8
#: Rows of it: the microbenchmarks of two configurations. The rest is counted.
HEAT_ROWS_MAX: Final = 100


@dataclass(frozen=True, kw_only=True)
class HeatRow:
    """One series: where it stood at the newest commits, over the reference."""

    workload: str
    #: What tells it from other series of the workload; empty where it is alone.
    setting: str
    link: str
    #: One for each column; None where that commit has no samples of it, or the reference has none.
    ratios: tuple[float | None, ...]
    line: Sparkline | None


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """Newest commits x series of a fork, as throughput over that of one commit."""

    reference: MeasuredRun
    #: Whether somebody chose it; else it is the first measured one.
    chosen: bool
    #: Newest first.
    columns: tuple[MeasuredRun, ...]
    rows: tuple[HeatRow, ...]
    #: Series that did not fit.
    more: int


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


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Everything on the first page."""

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
    lines = (alert_line(alert, _said(session, alert), now=now) for alert in opened)
    return Overview(
        alerts=tuple(most_urgent_first(lines)),
        forks=tuple(
            _fork_part(session, fork, now=now, against=against)
            for fork in forks.everything(session)
        ),
    )


def _said(session: Session, alert: Alert) -> str:
    """Return the sentence of an alert's commit, which names the unharmed workloads too."""
    record = commits.find(session, alert.fork, alert.sha)
    if record and record.reason:
        return record.reason
    confirmed = verdicts_by_workload(verdicts.of_run(session, alert.run))
    return sentence(confirmed, at=alert.sha)


def _fork_part(session: Session, fork: Fork, *, now: datetime, against: str | None) -> ForkPart:
    newest = commits.newest(session, fork.name, limit=OVERVIEW_COMMITS)
    return ForkPart(
        fork=fork,
        heat=_heat_map(session, fork.name, against=against),
        running=tuple(
            _running_line(job, newest, now=now)
            for job in overview_store.running_jobs(session, fork.name)
        ),
        waiting=sum(record.state is CommitState.WAITING for record in newest),
        commits=tuple(commit_line(record) for record in newest),
    )


def _running_line(job: RunningJob, known: Sequence[CommitRecord], *, now: datetime) -> RunningLine:
    subject = next((record.subject for record in known if record.sha == job.sha), "")
    what = "is measured again beside its baseline" if job.kind is JobKind.CONFIRM else "is measured"
    return RunningLine(
        job=job,
        what=f"{what}: {subject}" if subject else what,
        age=age(now - job.created_at),
    )


def _heat_map(session: Session, fork: str, *, against: str | None) -> HeatMap | None:
    """Return how every series stands, None where none was measured lately."""
    newest = overview_store.newest_runs(session, fork)
    chosen = overview_store.reference_run(session, fork, chosen=against) if against else None
    reference = chosen or overview_store.reference_run(session, fork)
    if reference is None:
        return None
    keys = series.of_fork(session, fork, metric=THROUGHPUT.name)
    levels = overview_store.levels(
        session, [key.id for key in keys], [reference.id, *(run.id for run in newest)]
    )
    # What the newest runs no longer measure is history, and has its own pages.
    alive = [key for key in keys if any(run.id in levels.get(key.id, {}) for run in newest)]
    if not alive:
        return None
    settings = settings_of(alive)
    return HeatMap(
        reference=reference,
        chosen=chosen is not None,
        columns=tuple(newest[:HEAT_COLUMNS]),
        rows=tuple(
            _heat_row(key, levels[key.id], newest, reference, setting=settings[key.id])
            for key in alive[:HEAT_ROWS_MAX]
        ),
        more=max(0, len(alive) - HEAT_ROWS_MAX),
    )


def _heat_row(
    key: SeriesKey,
    levels: Mapping[str, float],
    newest: Sequence[MeasuredRun],
    reference: MeasuredRun,
    *,
    setting: str,
) -> HeatRow:
    base = levels.get(reference.id)
    seen = [levels[run.id] for run in reversed(newest) if run.id in levels]
    return HeatRow(
        workload=key.workload,
        setting=setting,
        link=workload_path(key.fork, key.workload),
        ratios=tuple(
            levels[run.id] / base if base and run.id in levels else None
            for run in newest[:HEAT_COLUMNS]
        ),
        line=sparkline(
            seen, label=f"{len(seen)} commits, from {rate(seen[0])} to {rate(seen[-1])} o/s"
        ),
    )
