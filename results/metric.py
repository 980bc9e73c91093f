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

#: Every metric by name, in the order of the tables.
METRICS: Final[dict[str, Metric]] = {
    metric.name: metric for metric in (THROUGHPUT, SERVER_CPU, CONTEXT_SWITCHES, LATENCY_P99)
}
