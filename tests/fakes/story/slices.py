"""Slices of the story: a workload's throughput comes in, a slice with its costs goes out.

Costs follow the throughput: one client keeps one server thread busy, so an operation that takes
longer costs more processor time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from results.slice import Counters, Latency, Slice

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from results.slice import SideName

#: Share of its time that the server works while one client waits for it.
_BUSY: Final = 0.88
#: Of one busy thread in eight, and the client beside it.
_MACHINE_PERCENT: Final = 14.0


@dataclass(frozen=True, kw_only=True)
class Habit:
    """How a workload behaves on the machine; sds are of logs."""

    level_ops_s: float
    #: Between runs, between starts of one, between slices of one start.
    run_sd: float
    start_sd: float
    slice_sd: float
    #: Of one operation.
    switches: float
    write_kib: float = 0.0


#: The pairs of starts that docs/measuring.md reports scatter by one to two percent, and these do.
HABITS: Final[Mapping[str, Habit]] = {
    "scan": Habit(level_ops_s=2.16, run_sd=0.004, start_sd=0.008, slice_sd=0.004, switches=180.0),
    "point-query": Habit(
        level_ops_s=18_400.0, run_sd=0.003, start_sd=0.005, slice_sd=0.003, switches=2.0
    ),
    "random-points(100)": Habit(
        level_ops_s=1_240.0, run_sd=0.004, start_sd=0.008, slice_sd=0.004, switches=2.1
    ),
    "update-index": Habit(
        level_ops_s=4_150.0,
        run_sd=0.005,
        start_sd=0.009,
        slice_sd=0.010,
        switches=4.6,
        write_kib=9.4,
    ),
    "update-nonindex": Habit(
        level_ops_s=6_720.0,
        run_sd=0.005,
        start_sd=0.008,
        slice_sd=0.008,
        switches=4.2,
        write_kib=5.1,
    ),
    "insert": Habit(
        level_ops_s=7_380.0,
        run_sd=0.004,
        start_sd=0.008,
        slice_sd=0.007,
        switches=4.1,
        write_kib=3.8,
    ),
}


def sliced(
    workload: str,
    side: SideName,
    throughput: float,
    *,
    sequence: int,
    at: datetime,
    seconds: float,
) -> Slice:
    """Return a slice of so many seconds at this throughput."""
    habit = HABITS[workload]
    operations = max(1, round(throughput * seconds))
    each_ms = 1_000 / throughput
    return Slice(
        workload=workload,
        side=side,
        sequence=sequence,
        started_at=at,
        seconds=seconds,
        operations=operations,
        throughput_ops_s=throughput,
        latency_ms=Latency(
            average=each_ms,
            minimum=0.8 * each_ms,
            maximum=6.0 * each_ms,
            p50=0.97 * each_ms,
            p95=1.2 * each_ms,
            p99=1.7 * each_ms,
        ),
        counters=Counters(
            server_cpu_us=_BUSY * 1e6 * operations / throughput,
            voluntary_switches=habit.switches * operations,
            involuntary_switches=0,
            server_read_bytes=0,
            server_write_bytes=1_024 * habit.write_kib * operations,
            machine_cpu_percent=_MACHINE_PERCENT,
            machine_switches=1.1 * habit.switches * operations,
            machine_steal_percent=0,
            device_reads=0,
            device_read_kib=0,
            device_write_kib=habit.write_kib * operations,
        ),
    )
