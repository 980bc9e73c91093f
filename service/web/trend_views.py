"""What the page of a workload shows: each of its series as a chart, a summary and a table.

A session and a range come in, frozen values go out. All points of the range are read; a chart draws
those that stand out of many neighbours, and a table lists the newest.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from reports.numbers import rate, ratio_of, short
from reports.thinning import Span, kept
from reports.trend_chart import TrendPoint, trend_chart
from results.metric import THROUGHPUT
from service.core.errors import NotFoundError
from service.core.model import JobKind
from service.store import commits, series, trends
from service.web.addresses import alert_path, commit_path
from service.web.history_notes import relation_lines
from service.web.stretches import host_changes, stretches
from service.web.views import SUSPICIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.orm import Session

    from results.series import SeriesKey
    from service.store.trends import TrendRun, TrendVerdict, TrendWords
    from service.web.stretches import Stretch

#: Points of a page that asks for nothing else: a chart draws each of them.
LAST_USUAL: Final = 1_000
LAST_MIN: Final = 10
LAST_MAX: Final = trends.POINTS_MAX
#: What a page offers beside its own number.
LAST_OFFERED: Final = (100, LAST_USUAL, LAST_MAX)
#: Commits of the table below a chart; the rest is reached by narrowing the range.
LISTED_MAX: Final = 100


@dataclass(frozen=True, kw_only=True)
class TrendRange:
    """Which commits a page is about."""

    #: The newest so many.
    last: int | None = None
    #: From this commit to that one, both included.
    first_sha: str | None = None
    last_sha: str | None = None

    @property
    def count(self) -> int:
        """How many commits there are at most."""
        if self.last is not None:
            return self.last
        return LAST_MAX if self.first_sha else LAST_USUAL


@dataclass(frozen=True, kw_only=True)
class TrendPart:
    """One series of a workload."""

    key: SeriesKey
    #: The newest of the range, oldest first.
    points: tuple[TrendPoint, ...]
    #: Commits of the range, and how many of them are drawn.
    count: int
    drawn: int
    #: What the chart says, in words.
    summary: str
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TrendPage:
    """Everything on the page of a workload."""

    fork: str
    workload: str
    range: TrendRange
    trends: tuple[TrendPart, ...]
    #: Where a series began anew under other conditions, and how old and new relate.
    notes: tuple[str, ...]
    offered: tuple[int, ...] = LAST_OFFERED


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What the store knows about a series, by commit."""

    single: Mapping[str, TrendVerdict]
    confirm: Mapping[str, TrendVerdict]
    stretches: Sequence[Stretch]
    hosts: Mapping[int, str]
    alerts: Mapping[str, trends.TrendAlert]
    words: Mapping[str, TrendWords]


def trend_page(session: Session, fork: str, workload: str, chosen: TrendRange) -> TrendPage:
    """Return the page of a workload: one chart for each of its series.

    Raises:
        NotFoundError: The fork never measured such a workload, or has no commit of that name.
    """
    keys = series.of_fork(session, fork, workload=workload, metric=THROUGHPUT.name)
    if not keys:
        raise NotFoundError(f"Fork {fork} has no measurements of a workload called {workload}.")
    first = _position(session, fork, chosen.first_sha)
    last = _position(session, fork, chosen.last_sha)
    return TrendPage(
        fork=fork,
        workload=workload,
        range=chosen,
        notes=relation_lines(session, fork, workload),
        trends=tuple(
            _trend_part(
                session,
                key,
                trends.runs_of(session, key, first=first, last=last, limit=chosen.count),
            )
            for key in keys
        ),
    )


def _position(session: Session, fork: str, sha: str | None) -> int | None:
    if sha is None:
        return None
    record = commits.find(session, fork, sha)
    if record is None:
        raise NotFoundError(f"Fork {fork} has no commit {sha}.")
    return record.position


def _trend_part(session: Session, key: SeriesKey, runs: Sequence[TrendRun]) -> TrendPart:
    """Return one series with its chart."""
    spans = [_span(run) for run in runs]
    begins = trends.beginnings_of(session, key.id)
    alerts = {alert.sha: alert for alert in trends.alerts_on(session, key.fork, key.workload)}
    found = stretches([run.sha for run in runs], [span.level for span in spans], begins)
    prints = trends.fingerprints_of(session, key.workload, [run.run for run in runs])
    hosts = host_changes([(run.host, prints.get(run.run, "")) for run in runs])
    ends = {place for one in found for place in (one.begin, one.end - 1)}
    alarmed = {place for place, run in enumerate(runs) if run.sha in alerts}
    drawn = kept(spans, always=ends | alarmed | hosts.keys())
    listed = range(max(0, len(runs) - LISTED_MAX), len(runs))
    shown = {runs[place].sha for place in (*drawn, *listed)}
    verdicts = trends.verdicts_of(session, key.id, shown)
    known = _Known(
        single=_newest(verdicts, JobKind.SINGLE),
        confirm=_newest(verdicts, JobKind.CONFIRM),
        stretches=found,
        hosts=hosts,
        alerts=alerts,
        words=trends.words_of(session, key.fork, shown),
    )
    points = _points(key, runs, spans, sorted({*drawn, *listed}), known)
    return TrendPart(
        key=key,
        points=tuple(points[place] for place in listed),
        count=len(runs),
        drawn=len(drawn),
        summary=_summary(runs, spans, found),
        spec=trend_chart([points[place] for place in drawn], workload=key.workload),
    )


def _newest(verdicts: Sequence[TrendVerdict], stage: JobKind) -> dict[str, TrendVerdict]:
    """Return the newest verdict of a stage by commit; they come newest first."""
    return {one.sha: one for one in reversed(verdicts) if one.stage is stage}


def _span(run: TrendRun) -> Span:
    starts = [median(start) for start in run.starts]
    return Span(low=min(starts), level=median(starts), high=max(starts))


def _points(
    key: SeriesKey,
    runs: Sequence[TrendRun],
    spans: Sequence[Span],
    places: Sequence[int],
    known: _Known,
) -> dict[int, TrendPoint]:
    """Return the points at these places, which rise."""
    points = {}
    number = 0
    for place in places:
        while place >= known.stretches[number].end:
            number += 1
        points[place] = _point(
            key, runs[place].sha, spans[place], place=place, number=number, known=known
        )
    return points


def _point(
    key: SeriesKey, sha: str, span: Span, *, place: int, number: int, known: _Known
) -> TrendPoint:
    """Return a commit's mark; a suspicion counts only once a paired job has spoken."""
    single, confirm = known.single.get(sha), known.confirm.get(sha)
    spoken = confirm or single
    decision = "not judged"
    if spoken and (confirm or spoken.decision not in SUSPICIONS):
        decision = spoken.decision.value
    before = span.level / ratio_of(single.effect) if single else None
    stretch, words = known.stretches[number], known.words[sha]
    alert = known.alerts.get(sha)
    return TrendPoint(
        place=place,
        sha=sha,
        subject=words.subject,
        committed_at=words.committed_at,
        throughput_ops_s=span.level,
        lowest_ops_s=span.low,
        highest_ops_s=span.high,
        decision=decision,
        ratio=ratio_of(spoken.effect) if spoken else None,
        band_low_ops_s=before * ratio_of(-single.detectable_effect) if before and single else None,
        band_high_ops_s=before * ratio_of(single.detectable_effect) if before and single else None,
        stretch=number,
        level_ops_s=stretch.level,
        baseline=stretch.newest,
        begins=stretch.begins and place == stretch.begin,
        host=known.hosts.get(place, ""),
        alert=alert.state.value if alert else "",
        alert_link=alert_path(alert.id) if alert else None,
        link=commit_path(key.fork, sha),
    )


def _summary(runs: Sequence[TrendRun], spans: Sequence[Span], found: Sequence[Stretch]) -> str:
    """Return what the chart says to whoever does not see it."""
    if not runs:
        return ""
    newest = f"Newest: {rate(spans[-1].level)} o/s at {short(runs[-1].sha)}."
    last = found[-1]
    length = last.end - last.begin
    since = f" since {short(runs[last.begin].sha)}" if last.begins else ""
    return (
        f"{newest} The next commit is compared with the stretch{since}: "
        f"{length} {'commit' if length == 1 else 'commits'}, median {rate(last.level)} o/s."
    )
