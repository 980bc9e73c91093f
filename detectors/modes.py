"""Whether numbers fall into two groups rather than scatter about one level.

Levels of runs come in, the two modes or nothing go out. Two modes are common in benchmarks (code
layout, cache residency), and the mean of two modes describes neither. The order of the numbers is
not looked at, so that a step in time has two modes too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: With fewer numbers no pattern can be told from luck.
NUMBERS_MIN = 10
#: A mode has at least this share of the numbers, and three of them; less are outliers.
SHARE_MIN = 0.1
MEMBERS_MIN = 3
#: Two means this many standard deviations apart, plus so much over n, are called modes. The line
#: goes through the 99th percentiles of uniform numbers, the least clustered that have no mode, at
#: n = 10 to 100; of Gaussian, t(3) and AR(1) .5 numbers fewer than 1 % are beyond it (simulated,
#: 4,000 each). Of two even modes 4 sds apart it sees 6, 25, 54 % at n = 20, 50, 100, of 80:20 modes
#: 6 sds apart 54, 99, 100 %. Hartigan's dip at 5 % sees 10, 39, 75 % and 3, 9, 26 %.
DISTANCE = 3.7
DISTANCE_TIMES_N = 40.0


@dataclass(frozen=True, kw_only=True)
class Modes:
    """Two groups of numbers."""

    low: float
    high: float
    #: Share of the numbers in the high one.
    share_high: float


def find_modes(values: NDArray[np.float64]) -> Modes | None:
    """The two modes, or None where one level is enough.

    The split with the smallest sum of squares within the groups (Fisher 1958), judged by the
    distance of the two means in pooled standard deviations: the likelihood ratio of Engelman &
    Hartigan, Percentage points of a test for clusters (1969).
    """
    n = values.size
    if n < NUMBERS_MIN:
        return None
    x = np.sort(values) - np.median(values)
    n_low = np.arange(1, n)
    n_high = n - n_low
    sums = np.cumsum(x)[:-1]
    low, high = sums / n_low, (np.sum(x) - sums) / n_high
    within = np.sum(x**2) - n_low * low**2 - n_high * high**2
    members = max(MEMBERS_MIN, math.ceil(SHARE_MIN * n))
    within[np.minimum(n_low, n_high) < members] = np.inf
    best = int(np.argmin(within))
    distance = high[best] - low[best]
    spread = math.sqrt(max(float(within[best]), 0.0) / (n - 2))
    if not distance > (DISTANCE + DISTANCE_TIMES_N / n) * spread:
        return None
    centre = float(np.median(values))
    return Modes(
        low=centre + float(low[best]),
        high=centre + float(high[best]),
        share_high=float(n_high[best]) / n,
    )
