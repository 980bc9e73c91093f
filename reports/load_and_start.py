"""Load and start: what loading took, and what servers took to come, to go, in memory and on disk.

A run document comes in, a small table goes out; it is there to be looked at, and nothing in it was
judged. A load in brackets belongs to no commit of this run.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from reports.numbers import NOT_KNOWN, rate, relative
from reports.tables import Column, Line, Table
from results.metric import DISK, INDEX_BUILD, LOAD_ROWS, PEAK_MEMORY, SHUTDOWN, STARTUP
from results.slice import SideName

if TYPE_CHECKING:
    from collections.abc import Callable

    from results.document import RunDocument, Side
    from results.metric import Metric
    from results.server_facts import Load

TITLE: Final = "Load and start"
LEGEND: Final = (
    "Nothing here was judged. Servers: median of the starts, on the first data directory of each. "
    "(In brackets): loaded by the other side or before this run, so that it says nothing of this "
    "commit."
)
_MB: Final = 1e6
#: What is told of a load, and of servers, in the order of the table.
_LOADS: Final = (LOAD_ROWS, INDEX_BUILD)
_SERVERS: Final = (STARTUP, SHUTDOWN, PEAK_MEMORY, DISK)
_WORDS: Final = {
    LOAD_ROWS.name: "rows loaded per second",
    INDEX_BUILD.name: "secondary indexes, s",
    STARTUP.name: "start-up, s",
    SHUTDOWN.name: "shutdown, s",
    PEAK_MEMORY.name: "peak memory, MB",
    DISK.name: "data directory, MB",
}


def load_and_start_table(document: RunDocument) -> Table:
    """Return the table; without lines where a document tells nothing of it."""
    sides = (SideName.BASELINE, SideName.CANDIDATE) if document.baseline else (SideName.CANDIDATE,)
    ratio = (Column(heading="ratio", meaning="Candidate over baseline"),) if len(sides) > 1 else ()
    lines = [
        *_lines(sides, _LOADS, lambda side, metric: _loaded(document, side, metric)),
        *_lines(sides, _SERVERS, lambda side, metric: _served(document, side, metric)),
    ]
    return Table(
        title=TITLE,
        columns=(
            Column(heading="what", meaning="Never judged", numeric=False),
            *(Column(heading=side.value, meaning="Side of the run") for side in sides),
            *ratio,
        ),
        lines=tuple(lines),
    )


#: A number, and whether it says something of its side's commit.
_Told = tuple[float, bool]


def _lines(
    sides: tuple[SideName, ...],
    metrics: tuple[Metric, ...],
    told: Callable[[SideName, Metric], _Told | None],
) -> list[Line]:
    """Return a line for each metric that a side has a number of."""
    lines = []
    for metric in metrics:
        found = [told(side, metric) for side in sides]
        if not any(found):
            continue
        cells = [_WORDS[metric.name], *(_cell(metric, one) for one in found)]
        if len(sides) > 1:
            cells.append(_ratio(found))
        lines.append(Line(cells=tuple(cells)))
    return lines


def _loaded(document: RunDocument, side: SideName, metric: Metric) -> _Told | None:
    of_side: Side | None = document.baseline if side is SideName.BASELINE else document.candidate
    load = of_side.load if of_side else None
    value = _load_value(load, metric) if load else None
    return None if load is None or not value else (value, load.own)


def _load_value(load: Load, metric: Metric) -> float | None:
    return load.rows_per_s if metric is LOAD_ROWS else load.indexes_s


def _served(document: RunDocument, side: SideName, metric: Metric) -> _Told | None:
    """Return the median over starts of a side's first server in each."""
    values = [
        value
        for start in document.starts
        for life in start.servers
        if life.side is side and life.leg == 0 and (value := life.value(metric.name)) is not None
    ]
    return (median(values), True) if values else None


def _cell(metric: Metric, told: _Told | None) -> str:
    if told is None:
        return NOT_KNOWN
    value, is_own = told
    shown = rate(value / _MB if metric.unit == "bytes" else value)
    return shown if is_own else f"({shown})"


def _ratio(found: list[_Told | None]) -> str:
    """Return candidate over baseline where both are their own."""
    if any(one is None or not one[1] for one in found):
        return NOT_KNOWN
    (baseline, _), (candidate, _) = (one for one in found if one is not None)
    return relative(candidate, baseline)
