"""Warm-up: a workload runs until it is no longer getting faster or slower, within a limit.

Two runs in a row that agree are taken for a steady state. A fixed sleep would be too long for a
small table and too short for a large one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.client_run import ClientRun

#: Log ratio within which two runs agree: twice the noise of neighbouring slices on a quiet host
#: (1 % and less), far below what filling a cache does.
AGREE: Final = 0.03
#: After so many runs it is measured as it is, and marked.
RUNS_MAX: Final = 6


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """How a workload was warmed up."""

    seconds: float
    steady: bool
    #: Throughput of each run, in the order of running.
    throughput_ops_s: tuple[float, ...]


#: For a suite without warm-up.
NONE: Final = WarmUp(seconds=0.0, steady=True, throughput_ops_s=())


def warm_up(run: Callable[[int], ClientRun]) -> WarmUp:
    """Repeat a run, given its number, until two in a row agree.

    Raises:
        ClientError: The client failed or did nothing.
    """
    rates: list[float] = []
    seconds = 0.0
    while len(rates) < RUNS_MAX and not is_steady(rates):
        done = run(len(rates))
        rates.append(done.throughput_ops_s)
        seconds += done.seconds
    return WarmUp(seconds=round(seconds, 3), steady=is_steady(rates), throughput_ops_s=tuple(rates))


def is_steady(rates: list[float]) -> bool:
    """Whether the last two rates agree."""
    return len(rates) > 1 and abs(math.log(rates[-1] / rates[-2])) <= AGREE
