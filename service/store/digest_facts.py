"""Queries about one week of a fork: what the weekly digest is made of, and never more than fits.

A window of time comes in, values of `core.digests` go out. The service's own times decide what
belongs to a week, because a runner's clock may be wrong; so the same week gives the same facts
whenever it is asked for, as long as nothing of it is judged later.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from sqlalchemy import Integer, func, select
from sqlalchemy.sql.expression import cast

from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.digests import (
    Disturbance,
    FinishedCommit,
    FinishedRun,
    HistoryPoint,
    HostWeek,
    ReferenceRun,
    Sensitivity,
    SeriesHistory,
)
from service.core.model import JobKind
from service.store import baseline_marks
from service.store.host_tables import CanaryRow, HostNoiseRow, HostRow
from service.store.own_runs import along_branch, first_of
from service.store.series import key_of
from service.store.tables import (
    CommitRow,
    RunRow,
    SampleRow,
    SeriesRow,
    VerdictRow,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import InstrumentedAttribute, Session

    from service.core.digests import Window

    Starts = tuple[tuple[float, ...], ...]

#: Commits, and runs, of one week: one every two minutes, day and night.
WEEK_ROWS_MAX: Final = 5_000
#: Verdicts of one week whose sensitivity is read: 2,000 commits of 42 workloads, and some.
SENSITIVITIES_MAX: Final = 100_000
#: Commits of a history; a slope is looked for from 30 on (`detectors.drift`), and 120 are some
#: months of a slow branch or a week of a busy one.
HISTORY_RUNS_MAX: Final = 120
_DISTURBANCE: Final = (
    func.sum(HostNoiseRow.slices),
    func.sum(HostNoiseRow.disturbed),
    func.max(HostNoiseRow.steal_percent_max),
)
_NOTHING: Final = Disturbance(slices=0, disturbed=0, steal_percent_max=0.0)


def commits_seen(session: Session, window: Window) -> int:
    """Return how many commits came to the branch."""
    query = select(func.count()).where(
        CommitRow.fork == window.fork,
        # Before the first one seen lies the past, which came long ago.
        CommitRow.position >= 0,
        *_within(CommitRow.seen_at, window),
    )
    return session.scalar(query) or 0


def finished_commits(session: Session, window: Window) -> list[FinishedCommit]:
    """Return the commits that were finished, in branch order."""
    query = (
        select(CommitRow)
        .where(
            CommitRow.fork == window.fork,
            CommitRow.outcome.is_not(None),
            CommitRow.finished_at >= window.begins,
            CommitRow.finished_at < window.until,
        )
        .order_by(CommitRow.position)
        .limit(WEEK_ROWS_MAX)
    )
    return [
        FinishedCommit(
            sha=row.sha,
            subject=row.subject,
            author=row.author,
            outcome=row.outcome,
            reason=row.reason,
        )
        for row in session.scalars(query)
        if row.outcome is not None
    ]


def finished_runs(session: Session, window: Window) -> list[FinishedRun]:
    """Return the runs that were stored, oldest first."""
    query = (
        select(RunRow)
        .where(RunRow.fork == window.fork, *_within(RunRow.stored_at, window))
        .order_by(RunRow.stored_at, RunRow.id)
        .limit(WEEK_ROWS_MAX)
    )
    return [
        FinishedRun(
            id=row.id,
            sha=row.sha,
            kind=row.kind,
            outcome=row.outcome,
            host_class=row.host_class,
            host_name=row.host_name,
            duration=row.finished_at - row.created_at,
        )
        for row in session.scalars(query)
    ]


def sensitivities(session: Session, window: Window) -> list[Sensitivity]:
    """Return what each verdict on a single commit's throughput could have shown."""
    query = (
        select(
            VerdictRow.series,
            VerdictRow.detectable_effect,
            VerdictRow.gate,
            VerdictRow.n_baseline,
        )
        .join(SeriesRow, SeriesRow.id == VerdictRow.series)
        .where(
            VerdictRow.fork == window.fork,
            VerdictRow.stage == JobKind.SINGLE,
            SeriesRow.metric == THROUGHPUT.name,
            *_within(VerdictRow.created_at, window),
        )
        .order_by(VerdictRow.id.desc())
        .limit(SENSITIVITIES_MAX)
    )
    return [
        Sensitivity(series=series, detectable_effect=effect, gate=gate, n_baseline=runs)
        for series, effect, gate, runs in session.execute(query)
    ]


def histories(session: Session, window: Window) -> list[SeriesHistory]:
    """Return the newest points of every throughput series, up to the end of the window.

    Samples of paired runs are left out: they exist for suspicious commits only.
    """
    query = (
        along_branch(
            RunRow.id,
            CommitRow.sha,
            RunRow.stored_at,
            fork=window.fork,
            measured=True,
            until=window.until,
        )
        .order_by(CommitRow.position.desc())
        .limit(HISTORY_RUNS_MAX)
    )
    found = [(run, sha, at) for run, sha, at in session.execute(query)][::-1]
    by_series = _samples(session, [run for run, _, _ in found])
    keys = {
        row.id: key_of(row)
        for row in session.scalars(select(SeriesRow).where(SeriesRow.id.in_(by_series)))
    }
    begins = baseline_marks.beginnings_by_series(
        session, window.fork, by_series, [sha for _, sha, _ in found]
    )
    return [
        SeriesHistory(
            series=keys[series],
            points=tuple(
                HistoryPoint(sha=sha, stored_at=at, starts=by_run[run])
                for run, sha, at in found
                if run in by_run
            ),
            accepted=frozenset(begins[series]),
        )
        for series, by_run in sorted(by_series.items(), key=lambda item: keys[item[0]])
    ]


def reference(
    session: Session, window: Window, series: Collection[str], *, chosen: str | None
) -> ReferenceRun | None:
    """Return the run of the chosen commit, or of the first that was measured in any of the series.

    The first of those that were seen on the branch: a backfill measures commits before them, and
    what is compared with would move with each.

    Args:
        session: An open transaction.
        window: Only what was stored before its end.
        series: Ids of the series that are measured now.
        chosen: A commit, or the first digits of one.
    """
    query = along_branch(
        RunRow.id,
        CommitRow.sha,
        CommitRow.subject,
        fork=window.fork,
        series=() if chosen is not None else series,
        measured=True,
        until=window.until,
    )
    found = first_of(session, query, chosen=chosen)
    if found is None:
        return None
    run, sha, subject = found
    starts = {one: by_run[run] for one, by_run in _samples(session, [run]).items()}
    return ReferenceRun(sha=sha, subject=subject, starts=starts)


def disturbances(session: Session, window: Window) -> dict[str, Disturbance]:
    """Return what got in the way of each workload, by its name."""
    query = (
        select(HostNoiseRow.workload, *_DISTURBANCE)
        .join(RunRow, RunRow.id == HostNoiseRow.run)
        .where(
            RunRow.fork == window.fork,
            # What a run says of its host is written down with it: the week's runs are looked for,
            # and not all of the fork.
            *_within(RunRow.stored_at, window),
            *_within(HostNoiseRow.at, window),
        )
        .group_by(HostNoiseRow.workload)
        .order_by(HostNoiseRow.workload)
    )
    return {
        workload: _disturbance(slices, disturbed, steal)
        for workload, slices, disturbed, steal in session.execute(query)
    }


def hosts(session: Session, window: Window, *, since: datetime) -> list[HostWeek]:
    """Return the machines that worked for the fork since then, as the window shows them."""
    last_runs = {
        (host_class, name): last
        for host_class, name, last in session.execute(
            select(RunRow.host_class, RunRow.host_name, func.max(RunRow.stored_at))
            .where(
                RunRow.fork == window.fork,
                RunRow.stored_at >= since,
                RunRow.stored_at < window.until,
            )
            .group_by(RunRow.host_class, RunRow.host_name)
        )
    }
    noise = {
        (host_class, name): _disturbance(slices, disturbed, steal)
        for host_class, name, slices, disturbed, steal in session.execute(
            select(HostNoiseRow.host_class, HostNoiseRow.host_name, *_DISTURBANCE)
            .where(*_within(HostNoiseRow.at, window))
            .group_by(HostNoiseRow.host_class, HostNoiseRow.host_name)
        )
    }
    canary = {
        (host_class, name): (readings, suspicious or 0)
        for host_class, name, readings, suspicious in session.execute(
            select(
                CanaryRow.host_class,
                CanaryRow.host_name,
                func.count(),
                func.sum(cast(CanaryRow.suspicious, Integer)),
            )
            .where(*_within(CanaryRow.at, window))
            .group_by(CanaryRow.host_class, CanaryRow.host_name)
        )
    }
    # An operator adds hosts one by one, so there are few.
    return [
        _host_week(
            row,
            last_runs[row.host_class, row.name],
            noise.get((row.host_class, row.name), _NOTHING),
            canary.get((row.host_class, row.name), (0, 0)),
        )
        for row in session.scalars(select(HostRow).order_by(HostRow.host_class, HostRow.name))
        if (row.host_class, row.name) in last_runs
    ]


def _within(
    column: InstrumentedAttribute[datetime], window: Window
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return column >= window.begins, column < window.until


def _samples(session: Session, runs: Sequence[str]) -> dict[str, dict[str, Starts]]:
    """Return the candidate's throughputs by series and run, as starts x slices."""
    query = (
        select(SampleRow.series, SampleRow.run, SampleRow.start_index, SampleRow.value)
        .join(SeriesRow, SeriesRow.id == SampleRow.series)
        .where(
            SampleRow.run.in_(runs),
            SampleRow.side == SideName.CANDIDATE,
            SeriesRow.metric == THROUGHPUT.name,
            # A throughput of zero has no logarithm; a stranger's runner may send one.
            SampleRow.value > 0,
        )
        .order_by(SampleRow.series, SampleRow.run, SampleRow.start_index, SampleRow.sequence)
    )
    found: dict[str, dict[str, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    for series, run, start, value in session.execute(query):
        found[series][run].setdefault(start, []).append(value)
    return {
        series: {run: _rows(starts.values()) for run, starts in by_run.items()}
        for series, by_run in found.items()
    }


def _rows(starts: Iterable[list[float]]) -> Starts:
    return tuple(tuple(slices) for slices in starts)


def _disturbance(slices: int | None, disturbed: int | None, steal: float | None) -> Disturbance:
    # PostgreSQL's sum of integers is a big integer, which comes as it is; of nothing it is null.
    return Disturbance(
        slices=int(slices or 0), disturbed=int(disturbed or 0), steal_percent_max=steal or 0.0
    )


def _host_week(
    row: HostRow, last_run_at: datetime, disturbance: Disturbance, canary: tuple[int, int]
) -> HostWeek:
    readings, suspicious = canary
    return HostWeek(
        host_class=row.host_class,
        name=row.name,
        last_run_at=last_run_at,
        fingerprint_since=row.fingerprint_since,
        first_seen_at=row.first_seen_at,
        disturbance=disturbance,
        canary_readings=readings,
        canary_suspicious=suspicious,
    )
