"""Queries of the first page: where every series stands, and what is being measured now.

They read a bounded number of newest runs, whatever the length of the history, and ask the same
number of questions however many workloads there are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from results.document import Outcome
from results.slice import SideName
from service.core.alert_records import MarkKind
from service.core.model import CommitOutcome, JobKind, JobState
from service.store.alert_tables import BaselineMarkRow
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
#: Commits with a confirmed change, the newest: so many are years of a bad branch.
CHANGES_MAX: Final = 2_000
#: Branches of one table; a fork with more has a page for each comparison.
BRANCHES_MAX: Final = 12
#: What a commit came to where a paired job confirmed a change of one of its workloads.
_MOVED: Final = (CommitOutcome.REGRESSION, CommitOutcome.IMPROVEMENT)


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
    return _measured(session, fork, newest_first=True, limit=min(limit, RUNS_MAX), branch=branch)


def reference_run(session: Session, fork: str, *, chosen: str | None = None) -> MeasuredRun | None:
    """Return the run of the chosen commit, or of the first that was measured.

    Args:
        session: To read with.
        fork: Which fork.
        chosen: A commit, or the first digits of one.
    """
    return next(iter(_measured(session, fork, newest_first=False, limit=1, chosen=chosen)), None)


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
    # A commit with a confirmed change has an outcome that says so: few of many thousands.
    query = (
        select(CommitRow.sha, CommitRow.position)
        .where(CommitRow.fork == fork, CommitRow.outcome.in_(_MOVED))
        .order_by(CommitRow.position.desc())
        .limit(CHANGES_MAX)
    )
    moved = dict(session.execute(query).all())
    marked = select(BaselineMarkRow.series, BaselineMarkRow.sha).where(
        BaselineMarkRow.fork == fork, BaselineMarkRow.kind == MarkKind.VOID
    )
    void = {(series, sha) for series, sha in session.execute(marked)}
    judged = select(VerdictRow.series, VerdictRow.sha, VerdictRow.effect).where(
        VerdictRow.fork == fork,
        VerdictRow.sha.in_(moved),
        VerdictRow.stage == JobKind.CONFIRM,
        VerdictRow.decision.in_(CHANGES),
    )
    found: dict[str, list[ConfirmedChange]] = defaultdict(list)
    for series, sha, effect in session.execute(judged):
        if (series, sha) not in void:
            found[series].append(ConfirmedChange(position=moved[sha], effect=effect))
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


def _measured(
    session: Session,
    fork: str,
    *,
    newest_first: bool,
    limit: int,
    chosen: str | None = None,
    branch: str | None = None,
) -> list[MeasuredRun]:
    query = (
        select(RunRow.id, RunRow.sha, CommitRow.subject, CommitRow.position)
        .join(CommitRow, (CommitRow.fork == RunRow.fork) & (CommitRow.sha == RunRow.sha))
        .where(
            CommitRow.fork == fork,
            RunRow.kind == JobKind.SINGLE,
            RunRow.outcome == Outcome.MEASURED,
        )
        .order_by(CommitRow.position.desc() if newest_first else CommitRow.position)
        .limit(limit)
    )
    if chosen is not None:
        query = query.where(CommitRow.sha.startswith(chosen, autoescape=True))
    if branch is not None:
        query = query.where(RunRow.branch == branch)
    return [
        MeasuredRun(id=run, sha=sha, subject=subject, position=position)
        for run, sha, subject, position in session.execute(query)
    ]
