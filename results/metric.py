"""Metrics: what one number of a slice is, in which unit, and which direction is good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named quantity with a unit and a direction."""

    #: Name used in tables, URLs and the store; the unit comes last.
    name: str
    #: Unit as printed beside a value.
    unit: str
    #: +1 where more is better, -1 where less is better.
    direction: int
    #: One sentence for people.
    description: str


THROUGHPUT: Final = Metric(
    name="throughput_ops_s",
    unit="ops/s",
    direction=1,
    description="Operations per second as the client counted them.",
)
SERVER_CPU: Final = Metric(
    name="server_cpu_us_per_op",
    unit="us/op",
    direction=-1,
    description="CPU microseconds of the server process per operation.",
)
CONTEXT_SWITCHES: Final = Metric(
    name="context_switches_per_op",
    unit="cs/op",
    direction=-1,
    description="Voluntary and involuntary context switches of the server per operation.",
)
LATENCY_P99: Final = Metric(
    name="latency_ms_p99",
    unit="ms",
    direction=-1,
    description="99th percentile of the latency the client saw, in milliseconds.",
)
INSTRUCTIONS: Final = Metric(
    name="instructions_per_op",
    unit="instructions/op",
    direction=-1,
    description="Instructions of the server in user code per operation, where the processor's "
    "counters were taken.",
)

#: Of full scans, shown beside their throughput: it is that times the rows of a table, which are
#: part of the series, so it is neither stored nor judged (docs/decisions/0008).
THROUGHPUT_ROWS: Final = Metric(
    name="throughput_rows_s",
    unit="rows/s",
    direction=1,
    description="Rows per second that full scans read.",
)

#: Every stored metric by name, in the order of the tables.
METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (THROUGHPUT, SERVER_CPU, CONTEXT_SWITCHES, LATENCY_P99, INSTRUCTIONS)
}

#: Facts of loads and servers (`results/server_facts.py`). They become series so that a slow rise of
#: memory or disk can be seen over commits; nothing is ever judged by them.
LOAD_ROWS: Final = Metric(
    name="load_rows_s",
    unit="rows/s",
    direction=1,
    description="Rows loaded per second, without secondary indexes where the loader tells them "
    "apart.",
)
INDEX_BUILD: Final = Metric(
    name="index_build_s",
    unit="s",
    direction=-1,
    description="Seconds of making the secondary indexes of the loaded tables.",
)
STARTUP: Final = Metric(
    name="startup_s",
    unit="s",
    direction=-1,
    description="Seconds from the start of a server on restored data to its first answer.",
)
SHUTDOWN: Final = Metric(
    name="shutdown_s",
    unit="s",
    direction=-1,
    description="Seconds of an ordinary shutdown after the last slice of a start.",
)
PEAK_MEMORY: Final = Metric(
    name="peak_memory_bytes",
    unit="bytes",
    direction=-1,
    description="Largest resident size of the server's processes in a start, added up.",
)
DISK: Final = Metric(
    name="disk_bytes",
    unit="bytes",
    direction=-1,
    description="Bytes that the data directory takes after a start, its redo log included.",
)

SUPPORTING_METRICS: Final[dict[str, Metric]] = {
    metric.name: metric for metric in (LOAD_ROWS, INDEX_BUILD, STARTUP, SHUTDOWN, PEAK_MEMORY, DISK)
}
#: Stands in the place of the workload in the series of a supporting metric.
SERVER: Final = "server"
