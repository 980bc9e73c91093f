"""Queries for exporting samples: which runs there are, and the samples of a few of them as rows.

A choice of samples comes in, plain rows go out, a few runs at a time, so that an export of years is
never held in memory. Samples are append-only, so rows that were read once stay true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, case, exists, select

from results.metric import METRICS, SUPPORTING_METRICS
from results.slice import SideName
from service.store.tables import CommitRow, RunRow, SampleRow, SeriesRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session


@dataclass(frozen=True, kw_only=True)
class SampleChoice:
    """Which samples of a fork; what is None or empty chooses all."""

    fork: str
    workloads: tuple[str, ...] = ()
    metric: str | None = None
    branch: str | None = None
    host_class: str | None = None
    #: Of runs that were stored then or later, by the service's own clock.
    since: datetime | None = None


class SampleLine(NamedTuple):
    """One sample with all that says what it is; the names are those of the exported columns."""

    fork: str
    branch: str
    #: The version that was measured; of a pair, each side has its own.
    commit: str
    #: When it was committed, and its first line; None where that commit is not stored.
    committed_at: datetime | None
    subject: str | None
    run: str
    kind: str
    side: str
    measured_at: datetime
    stored_at: datetime
    host_class: str
    host: str
    build: str
    config: str
    dataset: str
    placement: str
    workload: str
    metric: str
    unit: str
    start: int
    sequence: int
    value: float


def run_ids(session: Session, choice: SampleChoice, *, limit: int) -> list[str]:
    """Return the runs that have such samples, in the order they were stored, `limit` at most."""
    query = (
        select(RunRow.id)
        .where(RunRow.fork == choice.fork, *_runs_chosen(choice))
        .order_by(RunRow.stored_at, RunRow.id)
        .limit(limit)
    )
    return list(session.scalars(query))


def lines(session: Session, choice: SampleChoice, runs: Sequence[str]) -> list[SampleLine]:
    """Return the chosen samples of these runs, in a fixed order."""
    measured = case((SampleRow.side == SideName.CANDIDATE, RunRow.sha), else_=RunRow.baseline_sha)
    query = (
        select(
            SeriesRow.fork,
            SeriesRow.branch,
            measured,
            CommitRow.committed_at,
            CommitRow.subject,
            RunRow.id,
            RunRow.kind,
            SampleRow.side,
            RunRow.created_at,
            RunRow.stored_at,
            SeriesRow.host_class,
            RunRow.host_name,
            SeriesRow.variant,
            SeriesRow.config,
            SeriesRow.dataset,
            SeriesRow.placement,
            SeriesRow.workload,
            SeriesRow.metric,
            SampleRow.start_index,
            SampleRow.sequence,
            SampleRow.value,
        )
        .join(RunRow, RunRow.id == SampleRow.run)
        .join(SeriesRow, SeriesRow.id == SampleRow.series)
        .outerjoin(CommitRow, and_(CommitRow.fork == RunRow.fork, CommitRow.sha == measured))
        .where(SampleRow.run.in_(runs), *_series_chosen(choice))
        .order_by(
            RunRow.stored_at,
            RunRow.id,
            SeriesRow.workload,
            SeriesRow.metric,
            SeriesRow.id,
            SampleRow.side,
            SampleRow.start_index,
            SampleRow.sequence,
        )
    )
    return [
        # Words and not enums; the unit is the metric's and not the store's.
        SampleLine._make(
            (*row[:6], row[6].value, row[7].value, *row[8:18], _unit(row[17]), *row[18:])
        )
        for row in session.execute(query)
    ]


def _runs_chosen(choice: SampleChoice) -> list[ColumnElement[bool]]:
    has_samples = (
        exists()
        .where(SampleRow.run == RunRow.id)
        .where(SeriesRow.id == SampleRow.series, *_series_chosen(choice))
    )
    if choice.since is None:
        return [has_samples]
    return [RunRow.stored_at >= choice.since, has_samples]


def _series_chosen(choice: SampleChoice) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if choice.workloads:
        conditions.append(SeriesRow.workload.in_(choice.workloads))
    if choice.metric is not None:
        conditions.append(SeriesRow.metric == choice.metric)
    if choice.branch is not None:
        conditions.append(SeriesRow.branch == choice.branch)
    if choice.host_class is not None:
        conditions.append(SeriesRow.host_class == choice.host_class)
    return conditions


def _unit(metric: str) -> str:
    """Return the unit of a metric; empty for one from another version."""
    known = METRICS.get(metric) or SUPPORTING_METRICS.get(metric)
    return known.unit if known else ""
