"""What a client reported for one slice, whatever its program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from results.slice import Latency


@dataclass(frozen=True, kw_only=True)
class ClientRun:
    """What the client reported for one slice."""

    seconds: float
    operations: int
    per_second_ops_s: tuple[float, ...]
    latency_ms: Latency | None
    #: CPU time of the client itself; the sandbox around it does not hand it to its parent. For an
    #: engine that is a library it is the engine's as well.
    cpu_s: float = 0.0
    #: What else the program told, with units in the names: `write_amplification`, `stall_percent`.
    extra: Mapping[str, float] = field(default_factory=dict)
    #: Why its numbers must not be compared, although the client did not fail; empty where they may.
    unfit: str = ""

    @property
    def throughput_ops_s(self) -> float:
        """Operations per second over the whole slice."""
        return self.operations / self.seconds
