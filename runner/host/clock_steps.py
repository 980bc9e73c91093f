"""Clock steps: whether somebody set this machine's clock while a slice ran.

A client may time its work by the time of day. The clock that only counts on cannot be set, and a
clock that is slewed drags both along, so their distance changes at a step and at nothing else.
"""

from __future__ import annotations

import time
from typing import Final

#: A step that ntpd or chrony makes by itself is larger than 0.1 s: smaller offsets are slewed
#: (ntpd's step threshold is 0.128 s). Half of that is far above what reading two clocks costs.
STEP_MIN_S: Final = 0.05
#: Between two looks at one clock we may lose the processor; then the distance is read again.
_GAP_MAX_S: Final = 0.001
_TRIES: Final = 20


def distance_s() -> float:
    """Return how far the time of day is ahead of the clock that nobody can set."""
    best_s, found_s = float("inf"), 0.0
    for _ in range(_TRIES):
        before_s = time.monotonic()
        of_day_s = time.time()
        gap_s = time.monotonic() - before_s
        if gap_s < best_s:
            best_s, found_s = gap_s, of_day_s - before_s - gap_s / 2
        if gap_s < _GAP_MAX_S:
            break
    return found_s


def step(before_s: float, after_s: float) -> str:
    """Return how the clock was set between two readings of the distance; empty where it was not."""
    stepped_s = after_s - before_s
    if abs(stepped_s) < STEP_MIN_S:
        return ""
    return f"the clock of this machine was set by {stepped_s:+.3f} s"
