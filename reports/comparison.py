"""The words of a comparison: two sides of stored runs come in, rows and tables go out.

Verdicts are carried, not made. Beside throughput and costs there are latency percentiles, what an
operation made the server do, and the summary of each group.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Final

from reports import matrix
from reports.numbers import NOT_KNOWN, relative
from reports.rows import level_of, rows_against
from reports.tables import Column, Line, Table
from results.slice import SliceState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from detectors.verdict import Verdict
    from reports.matrix import Summary
    from reports.rows import Level, Row, RunSide
    from results.slice import Counters, Slice

#: A counter that moves less often than once in a hundred operations explains no cost of one.
COUNTER_MIN: Final = 0.01
#: The field's colours begin at 5 %; what differs less is no explanation of what they mark.
COUNTER_RATIO: Final = 1.05
#: Lines of the table of counters: what explains a loss stands at the top.
COUNTERS_SHOWN: Final = 40
_WORKLOAD: Final = Column(heading="workload", meaning="Microbenchmark", numeric=False)


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Latency as the client saw it, in milliseconds: median over starts of the median slice."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, kw_only=True)
class CounterPair:
    """What one operation counted on both sides."""

    name: str
    baseline: float
    candidate: float

    @property
    def distance(self) -> float:
        """How far apart the sides are, as a log ratio; what is next to nothing counts as that."""
        return abs(math.log(max(self.candidate, COUNTER_MIN) / max(self.baseline, COUNTER_MIN)))


def rows_between(
    baseline: RunSide, candidate: RunSide, verdicts: Mapping[str, Verdict]
) -> tuple[Row, ...]:
    """Return the rows of two sides: the candidate's workloads, then those that it lacks."""
    old, new = baseline[0], candidate[0]
    lacking = set(old.workloads()) - set(new.workloads())
    rows = [
        *rows_against(new, {}, verdicts),
        *(row for row in rows_against(old, {}, {}) if row.workload in lacking),
    ]
    return tuple(
        replace(
            row,
            baseline=_level(baseline, row.workload),
            candidate=_level(candidate, row.workload),
        )
        for row in rows
    )


def group_summaries(rows: Sequence[Row]) -> list[Summary]:
    """Return min, max, average and median of relative throughput for each group."""
    return matrix.summaries(_as_matrix(rows))


def group_table(rows: Sequence[Row]) -> Table:
    """Return the same as a table, without the column that tells cells of a matrix apart."""
    table = matrix.summary_table(_as_matrix(rows))
    return replace(
        table,
        columns=(table.columns[0], *table.columns[2:]),
        lines=tuple(Line(cells=(line.cells[0], *line.cells[2:])) for line in table.lines),
    )


def percentiles_of(side: RunSide, workload: str) -> Percentiles | None:
    """Return the latency of one side, or None where no slice tells it."""
    by_start = [
        [piece.latency_ms for piece in pieces if piece.latency_ms is not None]
        for pieces in _usable(side, workload)
    ]
    starts = [found for found in by_start if found]
    if not starts:
        return None
    return Percentiles(
        p50=median(median(one.p50 for one in found) for found in starts),
        p95=median(median(one.p95 for one in found) for found in starts),
        p99=median(median(one.p99 for one in found) for found in starts),
    )


def latency_table(baseline: RunSide, candidate: RunSide, workloads: Sequence[str]) -> Table:
    """Return latency percentiles of both sides, for workloads of which both tell them."""
    lines = []
    for workload in workloads:
        before, after = percentiles_of(baseline, workload), percentiles_of(candidate, workload)
        if before is None or after is None:
            continue
        pairs = ((before.p50, after.p50), (before.p95, after.p95), (before.p99, after.p99))
        cells = [cell for pair in pairs for cell in (_ms(pair[0]), _ms(pair[1]))]
        lines.append(Line(cells=(workload, *cells, relative(after.p95, before.p95))))
    return Table(
        title="Latency, ms",
        columns=(
            _WORKLOAD,
            *(
                Column(heading=f"{name} {side}", meaning=f"{name} of the {side}, median of starts")
                for name in ("p50", "p95", "p99")
                for side in ("baseline", "candidate")
            ),
            Column(heading="p95 ratio", meaning="Candidate over baseline; above 1 is slower"),
        ),
        lines=tuple(lines),
    )


def counters_between(
    baseline: RunSide, candidate: RunSide, workload: str
) -> tuple[CounterPair, ...]:
    """Return what one operation counted on both sides, the largest differences first.

    Nothing where a side has no counters.
    """
    before, after = _counted(baseline, workload), _counted(candidate, workload)
    if not before or not after:
        return ()
    pairs = (
        CounterPair(name=name, baseline=before.get(name, 0.0), candidate=after.get(name, 0.0))
        for name in dict.fromkeys((*before, *after))
    )
    return tuple(sorted(pairs, key=lambda pair: -pair.distance))


def counters_table(baseline: RunSide, candidate: RunSide, workloads: Sequence[str]) -> Table:
    """Return the counters that differ most over all workloads."""
    found = [
        (workload, pair)
        for workload in workloads
        for pair in counters_between(baseline, candidate, workload)
        if pair.distance >= math.log(COUNTER_RATIO)
    ]
    loudest = sorted(found, key=lambda item: -item[1].distance)[:COUNTERS_SHOWN]
    return Table(
        title="Counters per operation that differ most",
        columns=(
            _WORKLOAD,
            Column(heading="counter", meaning="As server or kernel call it", numeric=False),
            Column(heading="baseline", meaning="Per operation"),
            Column(heading="candidate", meaning="Per operation"),
            Column(heading="times", meaning="Candidate over baseline"),
        ),
        lines=tuple(
            Line(
                cells=(
                    workload,
                    pair.name,
                    _count(pair.baseline),
                    _count(pair.candidate),
                    relative(pair.candidate, pair.baseline),
                )
            )
            for workload, pair in loudest
        ),
    )


def _level(side: RunSide, workload: str) -> Level | None:
    """Return where a side stands; a level of zero is none, because nothing is relative to it."""
    document, name = side
    level = level_of(document, workload, name)
    return level if level and level.throughput_ops_s else None


def _as_matrix(rows: Sequence[Row]) -> matrix.Matrix:
    return matrix.Matrix(
        base="baseline", cells=(matrix.Cell(name="candidate", rows=rows),), base_levels={}
    )


def _usable(side: RunSide, workload: str) -> list[list[Slice]]:
    """Return the slices by start whose numbers may be used."""
    document, name = side
    return [
        [
            piece
            for piece in start.slices
            if piece.workload == workload
            and piece.side is name
            and piece.state is SliceState.OK
            and piece.operations > 0
        ]
        for start in document.starts
    ]


def _counted(side: RunSide, workload: str) -> dict[str, float]:
    """Return counters per operation by name: sums of counters over the sum of operations."""
    totals: dict[str, float] = defaultdict(float)
    operations = 0
    for pieces in _usable(side, workload):
        for piece in pieces:
            if piece.counters is None:
                continue
            operations += piece.operations
            for name, value in _by_name(piece.counters).items():
                totals[name] += value
    return {name: value / operations for name, value in totals.items()} if operations else {}


def _by_name(counters: Counters) -> dict[str, float]:
    """Return what a slice counted of the server, the engine's own names last."""
    return {
        "server CPU, us": counters.server_cpu_us,
        "voluntary switches": counters.voluntary_switches,
        "involuntary switches": counters.involuntary_switches,
        "read calls": counters.server_read_calls,
        "write calls": counters.server_write_calls,
        "bytes read": counters.server_read_bytes,
        "bytes written": counters.server_write_bytes,
        "minor faults": counters.minor_faults,
        "major faults": counters.major_faults,
        **counters.hardware,
        **counters.engine,
    }


def _ms(value: float) -> str:
    """Return milliseconds with three digits that count."""
    if not math.isfinite(value):
        return NOT_KNOWN
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004  as a table prints it


def _count(value: float) -> str:
    """Return a count with four digits that count, and never with an exponent above one."""
    return f"{value:.4g}" if value < 10_000 else f"{value:,.0f}"  # noqa: PLR2004  where .4g begins it
