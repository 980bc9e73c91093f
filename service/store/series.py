"""Queries about series: which there are, and their points in branch order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from results.series import SeriesKey
from results.slice import SideName
from service.core.model import SeriesPoint
from service.store import samples
from service.store.own_runs import along_branch
from service.store.tables import CommitRow, RunRow, SeriesRow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.orm import Session

#: Points of one chart; more cannot be told apart on a screen.
POINTS_MAX: Final = 500


def ensure(session: Session, keys: Iterable[SeriesKey]) -> None:
    """Write down the series that are not there yet."""
    wanted = {key.id: key for key in keys}
    known = set(session.scalars(select(SeriesRow.id).where(SeriesRow.id.in_(wanted))))
    session.add_all(_new_row(key) for key_id, key in wanted.items() if key_id not in known)
    session.flush()


def find(session: Session, series_id: str) -> SeriesKey | None:
    """Return the series of that id, if there is one."""
    row = session.get(SeriesRow, series_id)
    return key_of(row) if row else None


def of_fork(
    session: Session, fork: str, *, workload: str | None = None, metric: str | None = None
) -> list[SeriesKey]:
    """Return the series of a fork, of one workload or metric where given, in a fixed order."""
    query = select(SeriesRow).where(SeriesRow.fork == fork)
    if workload is not None:
        query = query.where(SeriesRow.workload == workload)
    if metric is not None:
        query = query.where(SeriesRow.metric == metric)
    query = query.order_by(SeriesRow.workload, SeriesRow.metric, SeriesRow.id)
    return [key_of(row) for row in session.scalars(query)]


def points(session: Session, series_id: str, *, limit: int = POINTS_MAX) -> list[SeriesPoint]:
    """Return the newest points of a series in branch order, oldest first.

    A point is what one commit's own job measured; samples of confirm jobs are left out, since
    they exist for suspicious commits only.
    """
    # Of one fork, so that the newest commits are found from their positions and no others are read.
    fork = select(SeriesRow.fork).where(SeriesRow.id == series_id).scalar_subquery()
    query = (
        along_branch(RunRow.id, CommitRow, fork=fork, series=[series_id])
        .order_by(CommitRow.position.desc())
        .limit(min(limit, POINTS_MAX))
    )
    found = [(run_id, commit) for run_id, commit in session.execute(query)]
    sets = samples.of_runs(session, series_id, [run_id for run_id, _ in found])
    return [
        SeriesPoint(
            sha=commit.sha,
            position=commit.position,
            subject=commit.subject,
            committed_at=commit.committed_at,
            samples=sets[run_id, SideName.CANDIDATE],
        )
        for run_id, commit in reversed(found)
        if (run_id, SideName.CANDIDATE) in sets
    ]


def key_of(row: SeriesRow) -> SeriesKey:
    """Return a row's identity as a value."""
    return SeriesKey(
        fork=row.fork,
        branch=row.branch,
        host_class=row.host_class,
        variant=row.variant,
        config=row.config,
        workload=row.workload,
        metric=row.metric,
        dataset=row.dataset,
        placement=row.placement,
    )


def _new_row(key: SeriesKey) -> SeriesRow:
    return SeriesRow(
        id=key.id,
        fork=key.fork,
        branch=key.branch,
        host_class=key.host_class,
        variant=key.variant,
        config=key.config,
        workload=key.workload,
        metric=key.metric,
        dataset=key.dataset,
        placement=key.placement,
    )
