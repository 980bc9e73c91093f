"""A slice: a few seconds of one workload on one side, with its numbers and what they cost.

It is the smallest part of a run document that carries a sample.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime, Field

from results.metric import CONTEXT_SWITCHES, INSTRUCTIONS, LATENCY_P99, SERVER_CPU, THROUGHPUT
from results.values import Name, NonNegative, Part, Text

PER_SECOND_MAX: Final = 7_200
ENGINE_COUNTERS_MAX: Final = 100


class SideName(StrEnum):
    """Which of the two versions a start measured."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"


class SliceState(StrEnum):
    """Whether the numbers of a slice may be used."""

    OK = "ok"
    #: The host was disturbed while the slice ran.
    DISTURBED = "disturbed"
    #: The client or the server failed; the slice has no numbers.
    FAILED = "failed"


class Latency(Part):
    """Latency of one slice as the client saw it, in milliseconds."""

    average: NonNegative
    minimum: NonNegative
    #: None where a client was stopped in between, which would be the longest.
    maximum: NonNegative | None
    p50: NonNegative
    p95: NonNegative
    p99: NonNegative


class Counters(Part):
    """What the slice cost: the server's own counters, and the whole machine's and device's."""

    server_cpu_us: NonNegative
    voluntary_switches: NonNegative
    involuntary_switches: NonNegative
    server_read_bytes: NonNegative
    server_write_bytes: NonNegative
    #: Busy share of the whole machine in percent (user + system), as vmstat prints it.
    machine_cpu_percent: NonNegative
    machine_switches: NonNegative
    machine_steal_percent: NonNegative
    device_reads: NonNegative
    device_read_kib: NonNegative
    device_write_kib: NonNegative
    machine_cpu_us: NonNegative = 0
    #: Share of the server's CPU time in threads whose switches were counted; the others had ended.
    switches_seen_percent: NonNegative | None = None
    server_read_calls: NonNegative = 0
    server_write_calls: NonNegative = 0
    minor_faults: NonNegative = 0
    major_faults: NonNegative = 0
    #: Status counters and processor events that grew, by name; docs/counters.md.
    engine: dict[Name, NonNegative] = Field(default_factory=dict, max_length=ENGINE_COUNTERS_MAX)
    hardware: dict[Name, NonNegative] = Field(default_factory=dict, max_length=20)


class Slice(Part):
    """A few seconds of one workload inside a start."""

    workload: Name
    side: SideName
    #: Position in the start; slices of a pair alternate by it.
    sequence: int = Field(ge=0)
    started_at: AwareDatetime
    seconds: NonNegative
    operations: int = Field(ge=0)
    throughput_ops_s: NonNegative
    #: Throughput of each second, where the client reports it.
    per_second_ops_s: tuple[NonNegative, ...] = Field(default=(), max_length=PER_SECOND_MAX)
    latency_ms: Latency | None = None
    counters: Counters | None = None
    state: SliceState = SliceState.OK
    #: Why the state is not ok.
    reason: Text = ""
    #: In how many turns it was measured, the other side's turns between them; 0 in one piece.
    turns: int = Field(default=0, ge=0)
    #: False for a step that prepares the next one: its numbers are kept, and nobody judges them.
    reported: bool = True

    def value(self, metric: str) -> float | None:
        """Return the sample of `metric`, or None where this slice has none or is not ok."""
        if self.state is not SliceState.OK or self.operations == 0:
            return None
        if metric == THROUGHPUT.name:
            return self.throughput_ops_s
        if metric == LATENCY_P99.name:
            return self.latency_ms.p99 if self.latency_ms else None
        total = _total(self.counters, metric) if self.counters else None
        return None if total is None else total / self.operations


def _total(counters: Counters, metric: str) -> float | None:
    """Return what all operations of a slice cost together, or None where nobody counted."""
    if metric == SERVER_CPU.name:
        return counters.server_cpu_us
    if metric == CONTEXT_SWITCHES.name:
        return counters.voluntary_switches + counters.involuntary_switches
    if metric == INSTRUCTIONS.name:
        # No server does an operation in none at all.
        return counters.hardware.get("instructions") or None
    raise KeyError(metric)
