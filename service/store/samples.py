"""Queries about samples: raw numbers per slice and metric, append-only."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import exists, insert, select

from results.document import Outcome
from results.metric import METRICS
from results.slice import SideName
from results.supporting import supporting_samples
from service.core.model import SampleSet
from service.store import series
from service.store.tables import RunRow, SampleRow

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    supporting = supporting_samples(document)
    series.ensure(session, (*keys.values(), *(one.series for one in supporting)))
    rows = [
        {
            "run": document.id,
            "series": keys[piece.workload, metric].id,
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
    query = (
        select(SampleRow, RunRow)
        .join(RunRow, RunRow.id == SampleRow.run)
        .where(SampleRow.series == series_id, SampleRow.run.in_(run_ids))
        .order_by(SampleRow.run, SampleRow.start_index, SampleRow.sequence)
    )
    values: dict[tuple[str, SideName], dict[int, list[float]]] = defaultdict(dict)
    runs: dict[str, RunRow] = {}
    for sample, run in session.execute(query):
        runs[run.id] = run
        values[run.id, sample.side].setdefault(sample.start_index, []).append(sample.value)
    return {
        (run_id, side): SampleSet(
            run=run_id,
            side=side,
            sha=_measured_sha(runs[run_id], side),
            kind=runs[run_id].kind,
            starts=_all_starts(starts, count=runs[run_id].starts),
        )
        for (run_id, side), starts in values.items()
    }


def has_samples(series_id: str) -> ColumnElement[bool]:
    """Return the condition that a run has samples in a series."""
    return exists().where(SampleRow.run == RunRow.id, SampleRow.series == series_id)


def _all_starts(starts: dict[int, list[float]], *, count: int) -> tuple[tuple[float, ...], ...]:
    """Return a row for every start, empty where nothing was usable, so that pairs stay pairs."""
    rows = max(count, max(starts) + 1)
    return tuple(tuple(starts.get(index, ())) for index in range(rows))


def _measured_sha(run: RunRow, side: SideName) -> str:
    if side is SideName.CANDIDATE:
        return run.sha
    assert run.baseline_sha is not None, "samples of a baseline come from a paired run"
    return run.baseline_sha
