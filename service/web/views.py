"""What each page shows, gathered from the store in one reading transaction.

A session comes in, frozen values go out; the templates only lay them out. Numbers and words are
made by `reports`, so that a page says the same as an alert or the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from detectors.verdict import Decision
from reports.alert import alert_title
from reports.charts import TrendPoint, starts_chart, trend_chart
from reports.numbers import ratio_of
from reports.rows import rows_against, rows_of_pair
from reports.sentence import outcome_sentence, sentence
from reports.tables import absolute_table, relative_table, throughput_table
from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.alert_actions import OPEN_STATES
from service.core.errors import NotFoundError
from service.core.model import CommitState, JobKind
from service.store import alerts, commits, events, forks, runs, series, verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from detectors.verdict import Verdict
    from reports.rows import Row, RunSide
    from reports.tables import Table
    from results.document import Failure, Host, Placement, RunDocument
    from results.series import SeriesKey
    from service.core.model import (
        Alert,
        CommitRecord,
        Event,
        Fork,
        SeriesPoint,
        StoredRun,
        VerdictRecord,
    )

#: Commits of each fork on the overview: two or three weeks of a busy branch, on one screen or two.
OVERVIEW_COMMITS: Final = 50
OVERVIEW_ALERTS: Final = 20
#: Baseline runs whose documents are read for the costs per operation; the newest say enough, and
#: each costs some milliseconds.
BASELINE_DOCUMENTS_MAX: Final = 8
#: Decisions of a commit's own job that stay a suspicion until a paired job has confirmed them.
SUSPICIONS: Final = (Decision.REGRESSION, Decision.IMPROVEMENT)


@dataclass(frozen=True, kw_only=True)
class CommitLine:
    """A commit on the overview."""

    commit: CommitRecord
    #: The outcome, or the state while there is none.
    status: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class ForkPart:
    """A fork on the overview."""

    fork: Fork
    workloads: tuple[str, ...]
    commits: tuple[CommitLine, ...]


@dataclass(frozen=True, kw_only=True)
class AlertLine:
    """An alert on the overview."""

    alert: Alert
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Everything on the first page."""

    alerts: tuple[AlertLine, ...]
    forks: tuple[ForkPart, ...]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart with the heading and the address of its workload's page."""

    workload: str
    link: str
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class RunPart:
    """One run of a commit: its verdicts, its costs, its charts."""

    run: StoredRun
    sentence: str
    #: Verdicts, absolute and relative costs; empty where nothing was measured.
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    failure: Failure | None
    host: Host
    placement: Placement
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CommitPage:
    """Everything on the page of a commit."""

    line: CommitLine
    alert: Alert | None
    #: The paired run first: it is what people are told.
    runs: tuple[RunPart, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class TrendPart:
    """One series of a workload."""

    key: SeriesKey
    #: Oldest first.
    points: tuple[TrendPoint, ...]
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TrendPage:
    """Everything on the page of a workload."""

    fork: str
    workload: str
    trends: tuple[TrendPart, ...]


@dataclass(frozen=True, kw_only=True)
class AlertPage:
    """Everything on the page of an alert."""

    alert: Alert
    title: str
    run: RunPart
    events: tuple[Event, ...]


def overview(session: Session) -> Overview:
    """Return the first page: what needs a person, then every fork's newest commits."""
    opened = alerts.newest(session, states=OPEN_STATES, limit=OVERVIEW_ALERTS)
    return Overview(
        alerts=tuple(_alert_line(session, alert) for alert in opened),
        forks=tuple(_fork_part(session, fork) for fork in forks.everything(session)),
    )


def commit_page(session: Session, fork: str, sha: str) -> CommitPage:
    """Return the page of a commit.

    Raises:
        NotFoundError: The fork has no such commit.
    """
    record = commits.find(session, fork, sha)
    if record is None:
        raise NotFoundError(f"Fork {fork} has no commit {sha}.")
    judged = verdicts.of_commit(session, fork, sha)
    stored = runs.of_commit(session, fork, sha)
    newest_first = sorted(stored, key=lambda run: run.kind is not JobKind.CONFIRM)
    parts = [
        _run_part(session, run, [verdict for verdict in judged if verdict.run == run.id])
        for run in newest_first
    ]
    return CommitPage(
        line=_commit_line(record),
        alert=alerts.of_commit(session, fork, sha),
        runs=tuple(parts),
        events=tuple(events.of_commit(session, fork, sha)),
    )


def trend_page(session: Session, fork: str, workload: str) -> TrendPage:
    """Return the page of a workload: one chart for each of its series.

    Raises:
        NotFoundError: The fork never measured such a workload.
    """
    keys = series.of_fork(session, fork, workload=workload, metric=THROUGHPUT.name)
    if not keys:
        raise NotFoundError(f"Fork {fork} has no measurements of a workload called {workload}.")
    return TrendPage(
        fork=fork,
        workload=workload,
        trends=tuple(_trend_part(session, key) for key in keys),
    )


def alert_page(session: Session, alert_id: str) -> AlertPage:
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
    rows = rows_of_pair(runs.document(session, run.id), _by_workload(judged))
    return AlertPage(
        alert=alert,
        title=alert_title(rows, fork=alert.fork, branch=run.branch, bad=alert.sha),
        run=_run_part(session, run, judged),
        events=tuple(events.of_commit(session, alert.fork, alert.sha)),
    )


def commit_path(fork: str, sha: str) -> str:
    """Return the address of a commit's page."""
    return f"/forks/{quote(fork, safe='')}/commits/{quote(sha, safe='')}"


def workload_path(fork: str, workload: str) -> str:
    """Return the address of a workload's page."""
    return f"/forks/{quote(fork, safe='')}/workloads/{quote(workload, safe='')}"


def _alert_line(session: Session, alert: Alert) -> AlertLine:
    """Return an alert with its commit's sentence, which names the unharmed workloads too."""
    record = commits.find(session, alert.fork, alert.sha)
    if record and record.reason:
        return AlertLine(alert=alert, sentence=record.reason)
    confirmed = _by_workload(verdicts.of_run(session, alert.run))
    return AlertLine(alert=alert, sentence=sentence(confirmed, at=alert.sha))


def _fork_part(session: Session, fork: Fork) -> ForkPart:
    keys = series.of_fork(session, fork.name, metric=THROUGHPUT.name)
    newest = commits.newest(session, fork.name, limit=OVERVIEW_COMMITS)
    return ForkPart(
        fork=fork,
        workloads=tuple(dict.fromkeys(key.workload for key in keys)),
        commits=tuple(_commit_line(record) for record in newest),
    )


def _commit_line(record: CommitRecord) -> CommitLine:
    status = record.outcome.value if record.outcome else record.state.value
    waiting = {
        CommitState.WAITING: "Waits for the commits before it.",
        CommitState.MEASURING: "Is being built and measured.",
        CommitState.CONFIRMING: "Looks different; a paired job is confirming it.",
        CommitState.FINISHED: "",
    }
    return CommitLine(commit=record, status=status, sentence=record.reason or waiting[record.state])


def _by_workload(records: Sequence[VerdictRecord]) -> dict[str, Verdict]:
    """Return the verdicts on throughput, by workload."""
    return {
        record.series.workload: record.verdict
        for record in records
        if record.series.metric == THROUGHPUT.name
    }


def _run_part(session: Session, run: StoredRun, judged: Sequence[VerdictRecord]) -> RunPart:
    """Return a run with its tables and charts."""
    document = runs.document(session, run.id)
    by_workload = _by_workload(judged)
    if document.paired:
        rows = rows_of_pair(document, by_workload)
    else:
        rows = rows_against(document, _baselines(session, judged), by_workload)
    if by_workload:
        words = sentence(by_workload, at=run.sha, confirmed=run.kind is JobKind.CONFIRM)
    else:
        words = outcome_sentence(document.outcome, at=run.sha, failure=document.failure)
    return RunPart(
        run=run,
        sentence=words,
        tables=_tables(rows),
        charts=tuple(_starts_chart(document, row) for row in rows if row.candidate),
        failure=document.failure,
        host=document.host,
        placement=document.placement,
        warnings=(*document.host.warnings, *document.warnings),
    )


def _baselines(session: Session, judged: Sequence[VerdictRecord]) -> dict[str, list[RunSide]]:
    """Return, by workload, the newest runs that a verdict was compared with."""
    wanted = {
        record.series.workload: record.baseline_inputs[-BASELINE_DOCUMENTS_MAX:]
        for record in judged
        if record.series.metric == THROUGHPUT.name
    }
    ids = dict.fromkeys(run_id for inputs in wanted.values() for run_id, _ in inputs)
    documents = {run_id: runs.document(session, run_id) for run_id in ids}
    return {
        workload: [(documents[run_id], SideName(side)) for run_id, side in inputs]
        for workload, inputs in wanted.items()
    }


def _tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    tables = (throughput_table(rows), relative_table(rows), absolute_table(rows))
    return tuple(table for table in tables if table.lines)


def _starts_chart(document: RunDocument, row: Row) -> Chart:
    return Chart(
        workload=row.workload,
        link=workload_path(document.fork, row.workload),
        spec=starts_chart(
            document, row.workload, baseline=None if document.paired else row.baseline
        ),
    )


def _trend_part(session: Session, key: SeriesKey) -> TrendPart:
    """Return one series with its chart."""
    found = series.points(session, key.id)
    judged = verdicts.of_series(session, key.id)
    single = {record.sha: record for record in judged if record.stage is JobKind.SINGLE}
    confirm = {record.sha: record for record in judged if record.stage is JobKind.CONFIRM}
    points = tuple(
        _trend_point(key, point, single=single.get(point.sha), confirm=confirm.get(point.sha))
        for point in found
    )
    return TrendPart(key=key, points=points, spec=trend_chart(points, workload=key.workload))


def _trend_point(
    key: SeriesKey,
    point: SeriesPoint,
    *,
    single: VerdictRecord | None,
    confirm: VerdictRecord | None,
) -> TrendPoint:
    """Return a commit's mark; a suspicion counts only once a paired job has spoken."""
    starts = [median(start) for start in point.samples.usable_starts]
    level = median(starts)
    spoken = confirm or single
    decision = "not judged"
    if spoken and (confirm or spoken.decision not in SUSPICIONS):
        decision = spoken.decision.value
    before = level / ratio_of(single.effect) if single else None
    return TrendPoint(
        sha=point.sha,
        subject=point.subject,
        committed_at=point.committed_at,
        throughput_ops_s=level,
        lowest_ops_s=min(starts),
        highest_ops_s=max(starts),
        decision=decision,
        ratio=ratio_of(spoken.effect) if spoken else None,
        band_low_ops_s=before * ratio_of(-single.detectable_effect) if before and single else None,
        band_high_ops_s=before * ratio_of(single.detectable_effect) if before and single else None,
        link=commit_path(key.fork, point.sha),
    )
