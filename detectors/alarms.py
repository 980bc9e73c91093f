"""Alarms on a history: logs in commit order come in, places where the level moved go out.

The scan looks at every commit once, as if it were the newest, and never back: what it says of a
prefix does not depend on what follows. At each commit the newest 3, 4, 5, ... points are compared
with the rest of the current stretch. It knows nothing of missing commits, ratios or drift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from detectors.splits import WINDOWS, Borrowed, Splits
from detectors.spread import BORROWED_WEIGHT, SD_FLOOR, clipped_noise, core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

#: Log of the weighted sum of likelihood ratios at which a commit alarms: 0.9 % of Gaussian streams
#: of 100 commits do (0.2 more: 0.7 %; 0.2 less: 1.05 %). Simulated, see docs/statistics.md.
THRESHOLD = 5.3
#: Added to it between LATER_POINTS of a stretch: by then noise is known and every commit a chance,
#: and 1,000 Gaussian commits would alarm 17 % of streams instead of 11 %.
LATER = 0.7
LATER_POINTS = (100, 200)
#: Residuals are cut here, in robust sds: two spikes never pass for a level, three points may.
CLIP = 3.0
#: Nothing is said before this many points, nor against fewer old points than OLD_MIN.
FIRST = 11
OLD_MIN = 8
#: After a change the noise is known from the stretch before; fewer points make a level.
OLD_MIN_LATER = 5
#: Longer stretches are remembered this far back; it bounds the cost of one more commit.
MEMORY = 4096


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Where the scan stands: everything that decides about the commits to come."""

    #: First point of the current stretch.
    start: int = 0
    #: The points before this one set the cut of residuals until `block_end`.
    checkpoint: int = FIRST
    block_end: int = 2 * FIRST
    #: The next commit to look at.
    due: int = FIRST
    borrowed: Borrowed | None = None
    #: First points of the new levels, in the order of their alarms.
    alarms: tuple[int, ...] = ()


def scan(logs: Array, state: Scan) -> Scan:
    """Look at all commits from `state.due` on, one by one."""
    while state.due < logs.size:
        stop = min(state.block_end, logs.size)
        found = _first_alarm(logs, state, stop)
        if found is not None:
            state = _restart(logs, state, *found)
        elif stop == state.block_end:
            state = _next_block(state, stop)
        else:
            state = replace(state, due=stop)
    return state


def _next_block(state: Scan, due: int) -> Scan:
    length = min(max(due - state.start, 8), MEMORY)
    return replace(state, checkpoint=due, block_end=due + length, due=due)


def _restart(logs: Array, state: Scan, alarmed: int, window: int) -> Scan:
    """Begin a new stretch at the likeliest place of the change."""
    start = max(state.start, alarmed - MEMORY)
    stretch = logs[start : alarmed + 1]
    centre, sd = core(stretch, state.borrowed.sd if state.borrowed else None)
    scores = np.clip((stretch - centre) / sd, -CLIP - 1, CLIP + 1)
    size = scores.size
    first = np.arange(max(3, size - 2 * window - 2), size - 2)
    sums = np.cumsum(scores)
    before = sums[first - 1]
    gap = before / first - (sums[-1] - before) / (size - first)
    found = start + int(first[np.argmax(gap**2 * first * (size - first))])
    sd, rho = clipped_noise(logs[start:found])
    if state.borrowed is not None:
        share = (found - start) / (found - start + BORROWED_WEIGHT)
        sd = float(np.sqrt(share * sd**2 + (1 - share) * state.borrowed.sd**2))
        rho = share * rho + (1 - share) * state.borrowed.rho
    fresh = replace(
        state,
        start=found,
        borrowed=Borrowed(sd=max(sd, SD_FLOOR), rho=rho),
        alarms=(*state.alarms, found),
    )
    return _next_block(fresh, alarmed + 1)


def _first_alarm(logs: Array, state: Scan, stop: int) -> tuple[int, int] | None:
    """The first commit of [due, stop) that alarms, and the window that weighs most in it."""
    start = max(state.start, state.checkpoint - MEMORY)
    old_min = OLD_MIN if state.borrowed is None else OLD_MIN_LATER
    windows = int(np.searchsorted(WINDOWS, stop - start - old_min, side="right"))
    if not windows:
        return None
    borrowed = state.borrowed
    centre, sd = core(logs[start : state.checkpoint], borrowed.sd if borrowed else None)
    sums = Splits(np.clip((logs[start:stop] - centre) / sd, -CLIP, CLIP), borrowed, sd)
    ends = np.arange(state.due - start + 1, stop - start + 1)[:, None]
    # Independent noise gives the most evidence: where that does not alarm nothing will, and the
    # dear part is left out.
    bound = _total(sums.evidence(ends, windows, old_min, strict=False))
    asked = THRESHOLD + LATER * np.interp(ends[:, 0], LATER_POINTS, (0.0, 1.0))
    rows = np.flatnonzero(bound > asked)
    if not rows.size:
        return None
    evidence = sums.evidence(ends[rows], windows, old_min, strict=True)
    hits = np.flatnonzero(_total(evidence) > asked[rows])
    if not hits.size:
        return None
    hit = int(hits[0])
    return state.due + int(rows[hit]), int(WINDOWS[np.argmax(evidence[hit])])


def _total(evidence: Array) -> Array:
    # The cut keeps the exponential finite where a step is beyond any doubt.
    evidence = np.minimum(evidence, 600.0)
    return np.asarray(np.log(np.exp(evidence).sum(axis=1) + 1e-9), dtype=np.float64)
