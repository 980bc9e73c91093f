"""Rows: what the tables of one commit, or one pair, are made from.

Run documents and verdicts come in; one frozen row for each workload goes out, with both sides'
throughput and the cost of an operation. Nothing is judged here: a verdict is carried, not made.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from results.metric import THROUGHPUT
from results.slice import SideName, Slice, SliceState
from workloads.catalog import find_workload
from workloads.errors import UnknownWorkloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from detectors.verdict import Verdict
    from results.document import RunDocument

    _LevelOf = Callable[[str], "Level | None"]
    #: A stored run, and which of its sides is meant.
    RunSide = tuple[RunDocument, SideName]


@dataclass(frozen=True, kw_only=True)
class Efficiency:
    """What one operation cost, over all usable slices of a side."""

    #: Busy percent of the whole machine (user + system) over operations per second; the field's
    #: `cpu/o`. It counts the client and everything else on the machine.
    machine_cpu_percent_s: float
    #: CPU microseconds of the server process alone.
    server_cpu_us: float
    #: Context switches of the whole machine, as vmstat counts them.
    switches: float
    device_reads: float
    device_read_kib: float
    device_write_kib: float


@dataclass(frozen=True, kw_only=True)
class Level:
    """Where one side stands on one workload."""

    #: Median over starts of the median over slices; over several runs, the median of those.
    throughput_ops_s: float
    #: Lowest and highest start (for several runs: run).
    lowest_ops_s: float
    highest_ops_s: float
    starts: int
    #: None where no slice has counters.
    efficiency: Efficiency | None
    #: Rows per second where an operation reads a whole table; `results.metric.THROUGHPUT_ROWS`.
    throughput_rows_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One workload of a commit or a pair."""

    workload: str
    group: str
    #: None where that side has no usable sample.
    baseline: Level | None
    candidate: Level | None
    #: None where nothing was judged.
    verdict: Verdict | None

    @property
    def ratio(self) -> float | None:
        """Relative throughput: the judged one, or that of the medians where nothing was judged."""
        if self.verdict is not None:
            return self.verdict.change.ratio
        if self.baseline is None or self.candidate is None:
            return None
        return self.candidate.throughput_ops_s / self.baseline.throughput_ops_s


def rows_of_pair(document: RunDocument, verdicts: Mapping[str, Verdict]) -> tuple[Row, ...]:
    """Return the rows of a paired run, both sides from the one document."""
    return _rows(
        document.workloads(),
        baseline=lambda workload: level_of(document, workload, SideName.BASELINE),
        candidate=lambda workload: level_of(document, workload),
        verdicts=verdicts,
    )


def rows_against(
    candidate: RunDocument,
    baseline: Mapping[str, Sequence[RunSide]],
    verdicts: Mapping[str, Verdict],
) -> tuple[Row, ...]:
    """Return the rows of a single run against the stored runs it is compared with.

    Args:
        candidate: The run.
        baseline: By workload, because each one's baseline begins at its own last change.
        verdicts: By workload.
    """
    return _rows(
        candidate.workloads(),
        baseline=lambda workload: level_of_runs(baseline.get(workload, ()), workload),
        candidate=lambda workload: level_of(candidate, workload),
        verdicts=verdicts,
    )


def level_of(
    document: RunDocument, workload: str, side: SideName = SideName.CANDIDATE
) -> Level | None:
    """Return the level of one side of a run, or None where it has no usable sample."""
    starts = [median(start) for start in document.samples(workload, THROUGHPUT.name, side) if start]
    if not starts:
        return None
    middle = median(starts)
    return Level(
        throughput_ops_s=middle,
        lowest_ops_s=min(starts),
        highest_ops_s=max(starts),
        starts=len(starts),
        efficiency=_efficiency(_usable(document, workload, side)),
        throughput_rows_s=_rows_s(document, workload, middle),
    )


def level_of_runs(runs: Sequence[RunSide], workload: str) -> Level | None:
    """Return the level over one side of each of several runs, or None where none has a sample."""
    levels = [level for run, side in runs if (level := level_of(run, workload, side))]
    if not levels:
        return None
    middles = [level.throughput_ops_s for level in levels]
    pieces = [piece for run, side in runs for piece in _usable(run, workload, side)]
    rows_s = [level.throughput_rows_s for level in levels if level.throughput_rows_s is not None]
    return Level(
        throughput_ops_s=median(middles),
        lowest_ops_s=min(middles),
        highest_ops_s=max(middles),
        starts=sum(level.starts for level in levels),
        efficiency=_efficiency(pieces),
        throughput_rows_s=median(rows_s) if rows_s else None,
    )


def _rows(
    workloads: Sequence[str],
    *,
    baseline: _LevelOf,
    candidate: _LevelOf,
    verdicts: Mapping[str, Verdict],
) -> tuple[Row, ...]:
    return tuple(
        Row(
            workload=workload,
            group=_group(workload),
            baseline=baseline(workload),
            candidate=candidate(workload),
            verdict=verdicts.get(workload),
        )
        for workload in workloads
    )


def _group(workload: str) -> str:
    """Return the group of the field's tables; `other` for a workload from another version."""
    try:
        return find_workload(workload).group.value
    except UnknownWorkloadError:
        return "other"


def _rows_s(document: RunDocument, workload: str, throughput_ops_s: float) -> float | None:
    """Return the throughput in rows, or None where operations are not whole tables."""
    try:
        scans_table = find_workload(workload).scans_table
    except UnknownWorkloadError:
        return None
    if not scans_table or document.dataset is None:
        return None
    return throughput_ops_s * document.dataset.rows_per_table


def _usable(document: RunDocument, workload: str, side: SideName) -> list[Slice]:
    return [
        piece
        for start in document.starts
        for piece in start.slices
        if piece.workload == workload
        and piece.side is side
        and piece.state is SliceState.OK
        and piece.operations > 0
    ]


def _efficiency(pieces: Sequence[Slice]) -> Efficiency | None:
    """Return the costs per operation: sums of counters over the sum of operations."""
    counted = [
        (piece, piece.counters) for piece in pieces if piece.counters and piece.operations > 0
    ]
    if not counted:
        return None
    operations = sum(piece.operations for piece, _ in counted)
    # Percent times seconds over operations is percent over operations per second, weighted by time.
    busy = sum(counters.machine_cpu_percent * piece.seconds for piece, counters in counted)
    return Efficiency(
        machine_cpu_percent_s=busy / operations,
        server_cpu_us=sum(counters.server_cpu_us for _, counters in counted) / operations,
        switches=sum(counters.machine_switches for _, counters in counted) / operations,
        device_reads=sum(counters.device_reads for _, counters in counted) / operations,
        device_read_kib=sum(counters.device_read_kib for _, counters in counted) / operations,
        device_write_kib=sum(counters.device_write_kib for _, counters in counted) / operations,
    )
