"""Queries of the first page: where every series stands, and what is being measured now.

They read a bounded number of newest runs, whatever the length of the history, and ask the same
number of questions however many workloads there are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

from results.document import Outcome
from results.slice import SideName
from service.core.alert_records import MarkKind
from service.core.model import CommitOutcome, JobKind, JobState
from service.store.alert_tables import BaselineMarkRow
from service.store.own_runs import along_branch, first_of
from service.store.tables import CommitRow, JobRow, RunRow, SampleRow, VerdictRow
from service.store.verdicts import CHANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

#: Newest runs of a fork on the first page: a line of thirty can be read, and a suite of 42
#: workloads stays at some ten thousand samples.
RUNS_MAX: Final = 30
#: Jobs under way; a host measures one at a time, so more are a backlog.
JOBS_MAX: Final = 100
#: Confirmed changes of series, the newest: so many are years of a bad branch.
CHANGES_MAX: Final = 10_000
#: Words of people about baselines, the newest: each alert that is accepted leaves a few.
MARKS_MAX: Final = 5_000
#: Branches of one table; a fork with more has a page for each comparison.
BRANCHES_MAX: Final = 12
#: What a commit came to where a paired job confirmed a change of one of its workloads.
_MOVED: Final = (CommitOutcome.REGRESSION, CommitOutcome.IMPROVEMENT)
#: What is read of a measured run.
_MEASURED: Final = (RunRow.id, CommitRow.sha, CommitRow.subject, CommitRow.position)


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A commit's own run that may be judged."""

    id: str
    sha: str
    subject: str
    #: Of its commit; grows along the branch.
    position: int


@dataclass(frozen=True, kw_only=True)
class ConfirmedChange:
    """A change of a series that a paired job confirmed."""

    #: Of its commit.
    position: int
    #: Log ratio.
    effect: float


@dataclass(frozen=True, kw_only=True)
class RunningJob:
    """A job that was asked of a runner and is not back."""

    sha: str
    kind: JobKind
    host_class: str
    created_at: datetime


def newest_runs(
    session: Session, fork: str, *, limit: int = RUNS_MAX, branch: str | None = None
) -> list[MeasuredRun]:
    """Return the newest measured runs of a fork, of one branch where given, newest commit first."""
    query = along_branch(*_MEASURED, fork=fork, measured=True, branch=branch)
    query = query.order_by(CommitRow.position.desc()).limit(min(limit, RUNS_MAX))
    return [_measured(row) for row in session.execute(query)]


def reference_run(session: Session, fork: str, *, chosen: str | None = None) -> MeasuredRun | None:
    """Return the run of the chosen commit, or of the first measured one that the service saw come.

    Backfills measure commits that came before, and move nothing.

    Args:
        session: To read with.
        fork: Which fork.
        chosen: A commit, or the first digits of one.
    """
    found = first_of(session, along_branch(*_MEASURED, fork=fork, measured=True), chosen=chosen)
    return None if found is None else _measured(found)


def beginnings(session: Session, fork: str, *, after: int) -> dict[str, MeasuredRun]:
    """Return, by series, the newest measured commit at which somebody had its baseline begin.

    Whoever accepts a change, or resets a baseline, says that later commits are compared with that
    one. A change that nobody has accepted begins nothing here.

    Args:
        session: To read with.
        fork: Which fork.
        after: Position of a commit; marks at it and before it are left out.
    """
    marks = (
        select(BaselineMarkRow.series, BaselineMarkRow.sha)
        .where(
            BaselineMarkRow.fork == fork,
            BaselineMarkRow.kind.in_((MarkKind.ACCEPTED, MarkKind.RESET)),
        )
        .order_by(BaselineMarkRow.at.desc())
        .limit(MARKS_MAX)
    )
    marked = session.execute(marks).all()
    runs = (
        select(*_MEASURED)
        .join(CommitRow, (CommitRow.fork == RunRow.fork) & (CommitRow.sha == RunRow.sha))
        .where(
            RunRow.fork == fork,
            RunRow.sha.in_({sha for _, sha in marked}),
            RunRow.kind == JobKind.SINGLE,
            RunRow.outcome == Outcome.MEASURED,
            CommitRow.position > after,
        )
    )
    measured = {run.sha: run for run in map(_measured, session.execute(runs))}
    found: dict[str, MeasuredRun] = {}
    for series, sha in marked:
        run = measured.get(sha)
        if run and (series not in found or found[series].position < run.position):
            found[series] = run
    return found


def levels(
    session: Session, series: Sequence[str], runs: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return, by series and run, the median over starts of the median over slices."""
    query = select(SampleRow.series, SampleRow.run, SampleRow.start_index, SampleRow.value).where(
        SampleRow.series.in_(series),
        SampleRow.run.in_(runs),
        SampleRow.side == SideName.CANDIDATE,
    )
    starts: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(dict)
    for one, run, start, value in session.execute(query):
        starts[one, run].setdefault(start, []).append(value)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for (one, run), slices in starts.items():
        found[one][run] = median(median(values) for values in slices.values())
    return dict(found)


def confirmed_changes(session: Session, fork: str) -> dict[str, list[ConfirmedChange]]:
    """Return, by series, the changes that a paired job confirmed and nobody called false."""
    marked = select(BaselineMarkRow.series, BaselineMarkRow.sha).where(
        BaselineMarkRow.fork == fork, BaselineMarkRow.kind == MarkKind.VOID
    )
    void = {(series, sha) for series, sha in session.execute(marked)}
    # Few verdicts of many thousands are of pairs and say so; an index has them together.
    judged = (
        select(VerdictRow.series, VerdictRow.sha, VerdictRow.effect, CommitRow.position)
        .join(CommitRow, (CommitRow.fork == VerdictRow.fork) & (CommitRow.sha == VerdictRow.sha))
        .where(
            VerdictRow.stage == JobKind.CONFIRM,
            VerdictRow.decision.in_(CHANGES),
            VerdictRow.fork == fork,
            CommitRow.outcome.in_(_MOVED),
        )
        .order_by(VerdictRow.id.desc())
        .limit(CHANGES_MAX)
    )
    found: dict[str, list[ConfirmedChange]] = defaultdict(list)
    for series, sha, effect, position in session.execute(judged):
        if (series, sha) not in void:
            found[series].append(ConfirmedChange(position=position, effect=effect))
    return dict(found)


def branch_heads(session: Session, fork: str, branches: Iterable[str]) -> dict[str, MeasuredRun]:
    """Return the newest measured run of each of these branches, by its name."""
    names = sorted(branches)[:BRANCHES_MAX]
    heads = {name: newest_runs(session, fork, limit=1, branch=name) for name in names}
    return {name: found[0] for name, found in heads.items() if found}


def running_jobs(session: Session, fork: str) -> list[RunningJob]:
    """Return the jobs of a fork that are under way, oldest first."""
    query = (
        select(JobRow.sha, JobRow.kind, JobRow.host_class, JobRow.created_at)
        .where(JobRow.fork == fork, JobRow.state.in_((JobState.CREATED, JobState.DISPATCHED)))
        .order_by(JobRow.created_at, JobRow.id)
        .limit(JOBS_MAX)
    )
    return [
        RunningJob(sha=sha, kind=kind, host_class=host_class, created_at=created_at)
        for sha, kind, host_class, created_at in session.execute(query)
    ]


def _measured(row: Sequence[Any]) -> MeasuredRun:
    run, sha, subject, position = row
    return MeasuredRun(id=run, sha=sha, subject=subject, position=position)
