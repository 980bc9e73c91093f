"""Queries about the trend of a series: tens of thousands of points with as little as a chart needs.

What `series.points` reads row by row for some hundred points is read here in bulk: first numbers of
all points, then words of those alone that are shown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from results.slice import SideName
from service.core.alert_records import RAISED
from service.core.model import JobKind
from service.store import baseline_marks
from service.store.alert_tables import AlertCommitRow, BaselineMarkRow
from service.store.host_tables import HostNoiseRow
from service.store.names import one_of
from service.store.own_runs import along_branch
from service.store.tables import (
    AlertRow,
    CommitRow,
    RunRow,
    SampleRow,
    VerdictRow,
)
from service.store.verdicts import CHANGES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from detectors.verdict import Decision
    from results.series import SeriesKey
    from service.core.model import AlertState

#: Points of one page at most: ten commits a day for more than ten years.
POINTS_MAX: Final = 50_000
#: Alerts of a fork that are looked through for those about a series, the newest.
ALERTS_MAX: Final = 1_000
#: Names of one question.
_BATCH: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class TrendRun:
    """What a commit's own job measured of a series."""

    run: str
    sha: str
    position: int
    host: str
    #: Starts x slices; starts without a usable slice are left out.
    starts: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class TrendVerdict:
    """What was decided about a commit of a series."""

    sha: str
    stage: JobKind
    decision: Decision
    effect: float
    detectable_effect: float


@dataclass(frozen=True, kw_only=True)
class TrendWords:
    """What people call a commit."""

    subject: str
    committed_at: datetime


@dataclass(frozen=True, kw_only=True)
class TrendAlert:
    """An alert at a commit at which its loss was seen."""

    id: str
    sha: str
    state: AlertState


def runs_of(
    session: Session,
    key: SeriesKey,
    *,
    first: int | None = None,
    last: int | None = None,
    limit: int = POINTS_MAX,
) -> list[TrendRun]:
    """Return the newest runs of commits by themselves in a series, oldest first.

    Args:
        session: To read with.
        key: The series.
        first: Position of the first commit, where not all.
        last: Position of the last commit, where not all.
        limit: At most so many.
    """
    query = along_branch(
        RunRow.id,
        CommitRow.sha,
        CommitRow.position,
        RunRow.host_name,
        fork=key.fork,
        series=[key.id],
    )
    if first is not None:
        query = query.where(CommitRow.position >= first)
    if last is not None:
        query = query.where(CommitRow.position <= last)
    query = query.order_by(CommitRow.position.desc()).limit(min(limit, POINTS_MAX))
    found = session.execute(query).all()[::-1]
    starts = _starts(session, key.id, [run for run, *_ in found])
    return [
        TrendRun(run=run, sha=sha, position=position, host=host, starts=starts[run])
        for run, sha, position, host in found
        if run in starts
    ]


def verdicts_of(session: Session, series_id: str, shas: Collection[str]) -> list[TrendVerdict]:
    """Return the verdicts of a series on these commits, of both stages, newest first.

    A page draws a thousand commits of many thousands; only theirs are read.
    """
    found: list[tuple[int, TrendVerdict]] = []
    for batch in _batches(list(shas)):
        query = select(
            VerdictRow.id,
            VerdictRow.sha,
            VerdictRow.stage,
            VerdictRow.decision,
            VerdictRow.effect,
            VerdictRow.detectable_effect,
        ).where(
            VerdictRow.series == series_id,
            # Both, so that the index over series, stage and commit serves.
            VerdictRow.stage.in_(list(JobKind)),
            one_of(VerdictRow.sha, batch),
        )
        found += [
            (
                number,
                TrendVerdict(
                    sha=sha,
                    stage=stage,
                    decision=decision,
                    effect=effect,
                    detectable_effect=detectable,
                ),
            )
            for number, sha, stage, decision, effect, detectable in session.execute(query)
        ]
    return [verdict for _, verdict in sorted(found, key=lambda one: -one[0])]


def beginnings_of(session: Session, series_id: str) -> frozenset[str]:
    """Return the commits that begin a level of a series, by its verdicts and people's marks."""
    changes = (
        select(VerdictRow.sha)
        .where(
            VerdictRow.series == series_id,
            VerdictRow.stage == JobKind.CONFIRM,
            VerdictRow.decision.in_(CHANGES),
        )
        # As the index over series, stage and commit has them: by id, every verdict of the series
        # would be read.
        .order_by(VerdictRow.sha)
        .limit(POINTS_MAX)
    )
    marks = select(BaselineMarkRow.sha).where(BaselineMarkRow.series == series_id)
    asked = [*session.scalars(changes), *session.scalars(marks.limit(_BATCH))]
    found: set[str] = set()
    for batch in _batches(asked):
        found |= baseline_marks.beginnings(session, series_id, batch)
    return frozenset(found)


def fingerprints_of(session: Session, workload: str, runs: Sequence[str]) -> dict[str, str]:
    """Return the fingerprint of the host by run, for those of `runs` that have a record of it."""
    found: dict[str, str] = {}
    for batch in _batches(runs):
        query = select(HostNoiseRow.run, HostNoiseRow.fingerprint).where(
            HostNoiseRow.workload == workload, one_of(HostNoiseRow.run, batch)
        )
        found.update(session.execute(query).all())
    return found


def alerts_on(session: Session, fork: str, workload: str) -> list[TrendAlert]:
    """Return the newest alerts that name a workload, at each commit at which they were raised."""
    query = (
        select(AlertRow.id, AlertCommitRow.sha, AlertRow.state, AlertRow.workloads)
        .join(AlertCommitRow, AlertCommitRow.alert == AlertRow.id)
        .where(AlertCommitRow.fork == fork, AlertCommitRow.part.in_(RAISED))
        .order_by(AlertCommitRow.id.desc())
        .limit(ALERTS_MAX)
    )
    return [
        TrendAlert(id=alert, sha=sha, state=state)
        for alert, sha, state, named in session.execute(query)
        if any(one["workload"] == workload for one in named)
    ]


def words_of(session: Session, fork: str, shas: Collection[str]) -> dict[str, TrendWords]:
    """Return subject and time of commits."""
    found: dict[str, TrendWords] = {}
    for batch in _batches(list(shas)):
        query = select(CommitRow.sha, CommitRow.subject, CommitRow.committed_at).where(
            CommitRow.fork == fork, one_of(CommitRow.sha, batch)
        )
        for sha, subject, committed_at in session.execute(query):
            found[sha] = TrendWords(subject=subject, committed_at=committed_at)
    return found


def _starts(
    session: Session, series_id: str, runs: Sequence[str]
) -> dict[str, tuple[tuple[float, ...], ...]]:
    """Return starts x slices by run."""
    values: dict[str, dict[int, list[float]]] = defaultdict(dict)
    for batch in _batches(runs):
        query = select(SampleRow.run, SampleRow.start_index, SampleRow.value).where(
            SampleRow.series == series_id,
            one_of(SampleRow.run, batch),
            SampleRow.side == SideName.CANDIDATE,
        )
        for run, start, value in session.execute(query):
            values[run].setdefault(start, []).append(value)
    return {
        run: tuple(tuple(slices) for slices in starts.values()) for run, starts in values.items()
    }


def _batches(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(values), _BATCH):
        yield values[begin : begin + _BATCH]
