"""Queries about samples: raw numbers per slice and metric, append-only."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import exists, insert, select

from results.document import Outcome
from results.metric import METRICS
from results.slice import SideName
from results.supporting import supporting_samples
from service.core.model import JobKind, SampleSet
from service.store import series
from service.store.names import one_of
from service.store.tables import RunRow, SampleRow

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

    from results.document import RunDocument


def append(session: Session, document: RunDocument) -> int:
    """Write down every sample of a new run, of both sides; return how many.

    Supporting samples, of loads and servers, are written down beside them.

    Numbers of an unstable host stay in the document alone: a series holds what may be judged.
    """
    if document.outcome is not Outcome.MEASURED:
        return 0
    keys = {
        (workload, metric): document.series(workload, metric)
        for workload in document.workloads()
        for metric in METRICS
    }
    # An id is a digest, and is asked for with every sample.
    ids = {place: key.id for place, key in keys.items()}
    supporting = supporting_samples(document)
    series.ensure(session, (*keys.values(), *(one.series for one in supporting)))
    rows = [
        {
            "run": document.id,
            "series": ids[piece.workload, metric],
            "side": piece.side,
            "start_index": start.index,
            "sequence": piece.sequence,
            "value": value,
        }
        for start in document.starts
        for piece in start.slices
        if piece.reported
        for metric in METRICS
        if (value := piece.value(metric)) is not None
    ]
    rows += [
        {
            "run": document.id,
            "series": one.series.id,
            "side": SideName.CANDIDATE,
            "start_index": one.start_index,
            "sequence": 0,
            "value": one.value,
        }
        for one in supporting
    ]
    if rows:
        session.execute(insert(SampleRow), rows)
    return len(rows)


def of_runs(
    session: Session, series_id: str, run_ids: Sequence[str]
) -> dict[tuple[str, SideName], SampleSet]:
    """Return the samples of one series in these runs, by run and side."""
    return of_series(session, {series_id: run_ids})[series_id]


def of_series(
    session: Session, wanted: Mapping[str, Collection[str]]
) -> dict[str, dict[tuple[str, SideName], SampleSet]]:
    """Return, by series, what `of_runs` returns of it; two questions for all.

    Args:
        session: To read with.
        wanted: Runs by the id of a series; series of one suite share most of theirs.
    """
    run_ids = {run for several in wanted.values() for run in several}
    runs = _measured_runs(session, run_ids)
    query = (
        select(
            SampleRow.series,
            SampleRow.run,
            SampleRow.side,
            SampleRow.start_index,
            SampleRow.value,
        )
        .where(one_of(SampleRow.series, wanted), one_of(SampleRow.run, run_ids))
        # They are told apart below: to sort them by their names takes longer than to read them.
        .order_by(SampleRow.start_index, SampleRow.sequence)
    )
    asked = {series_id: set(several) for series_id, several in wanted.items()}
    values: dict[tuple[str, str, SideName], dict[int, list[float]]] = defaultdict(dict)
    for series_id, run_id, side, start, value in session.execute(query):
        if run_id in asked[series_id]:
            values[series_id, run_id, side].setdefault(start, []).append(value)
    found: dict[str, dict[tuple[str, SideName], SampleSet]] = {one: {} for one in wanted}
    for (series_id, run_id, side), starts in values.items():
        run = runs[run_id]
        found[series_id][run_id, side] = SampleSet(
            run=run_id,
            side=side,
            sha=run.measured_sha(side),
            kind=run.kind,
            starts=_all_starts(starts, count=run.starts),
        )
    return found


def has_samples(series_id: str) -> ColumnElement[bool]:
    """Return the condition that a run has samples in a series."""
    return exists().where(SampleRow.run == RunRow.id, SampleRow.series == series_id)


class _MeasuredRun(NamedTuple):
    """What a set of samples says of its run."""

    id: str
    sha: str
    baseline_sha: str | None
    kind: JobKind
    starts: int

    def measured_sha(self, side: SideName) -> str:
        """Return the commit that one side measured."""
        if side is SideName.CANDIDATE:
            return self.sha
        assert self.baseline_sha is not None, "samples of a baseline come from a paired run"
        return self.baseline_sha


def _measured_runs(session: Session, run_ids: Collection[str]) -> dict[str, _MeasuredRun]:
    query = select(RunRow.id, RunRow.sha, RunRow.baseline_sha, RunRow.kind, RunRow.starts)
    rows = session.execute(query.where(one_of(RunRow.id, run_ids)))
    return {row.id: _MeasuredRun(*row) for row in rows}


def _all_starts(starts: dict[int, list[float]], *, count: int) -> tuple[tuple[float, ...], ...]:
    """Return a row for every start, empty where nothing was usable, so that pairs stay pairs."""
    rows = max(count, max(starts) + 1)
    return tuple(tuple(starts.get(index, ())) for index in range(rows))
