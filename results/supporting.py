"""Supporting samples: what a run document tells of loads and servers, as numbers of series.

A document comes in, samples go out. They are for charts and questions, never for a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from results.metric import (
    DISK,
    INDEX_BUILD,
    LOAD_ROWS,
    PEAK_MEMORY,
    SERVER,
    SHUTDOWN,
    STARTUP,
)
from results.slice import SideName

if TYPE_CHECKING:
    from results.document import RunDocument
    from results.series import SeriesKey
    from results.server_facts import Load


@dataclass(frozen=True, kw_only=True)
class SupportingSample:
    """One number of one supporting metric."""

    series: SeriesKey
    start_index: int
    value: float


def supporting_samples(document: RunDocument) -> tuple[SupportingSample, ...]:
    """Return the supporting samples of a commit's own job.

    A pair has none: it measures fewer and fewer workloads as they are decided, and servers that do
    less take less. Of the servers of a start, those of the first leg count, for the same reason: it
    is the one that every start of a suite has.
    """
    if document.paired:
        return ()
    found = [
        (life.value(metric.name), metric, start.index)
        for start in document.starts
        for life in start.servers
        if life.leg == 0 and life.side is SideName.CANDIDATE
        for metric in (STARTUP, SHUTDOWN, PEAK_MEMORY, DISK)
    ]
    load = document.candidate.load
    if load is not None and load.own:
        found += [(load.rows_per_s, LOAD_ROWS, 0), (_indexes_s(load), INDEX_BUILD, 0)]
    return tuple(
        SupportingSample(
            series=document.series(SERVER, metric.name), start_index=index, value=value
        )
        for value, metric, index in found
        if value is not None
    )


def _indexes_s(load: Load) -> float | None:
    """Return the seconds of index builds; a loader that made none has nothing to tell."""
    return load.indexes_s or None
