"""How even a stretch of seconds was: mean, spread, the worst seconds, stalls.

Operations of each second come in, one value goes out. An average hides a server that stands still
for a second and then catches up; these numbers do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A second below this share of the median is a stall: a judgement. What it has been held against
#: is in docs/oltp.md.
STALL_SHARE: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class Evenness:
    """What the seconds of one slice say beyond their average."""

    seconds: int
    mean_ops_s: float
    #: Standard deviation of a second, n - 1 in the denominator; 0 where there is one second.
    sd_ops_s: float
    p50_ops_s: float
    #: The rate that 99 % of the seconds reached: the worst second of a hundred.
    p99_worst_ops_s: float
    worst_ops_s: float
    #: Seconds below `STALL_SHARE` of the median.
    stalls: int
    #: Most stalled seconds in a row.
    longest_stall_s: int

    @property
    def spread(self) -> float:
        """The standard deviation as a share of the mean; 0 where nothing was done."""
        return self.sd_ops_s / self.mean_ops_s if self.mean_ops_s else 0.0


def evenness(per_second_ops_s: Sequence[float], *, stall_share: float = STALL_SHARE) -> Evenness:
    """Return how even these seconds were.

    Raises:
        ValueError: There is no second, or one is negative or not a number.
    """
    if not per_second_ops_s:
        raise ValueError("no second was measured")
    if any(not math.isfinite(value) or value < 0 for value in per_second_ops_s):
        raise ValueError("a rate is finite and not negative")
    best_first = sorted(per_second_ops_s, reverse=True)
    middle = median(best_first)
    stalled = [value < stall_share * middle for value in per_second_ops_s]
    runs = [sum(1 for _ in run) for is_stalled, run in groupby(stalled) if is_stalled]
    return Evenness(
        seconds=len(best_first),
        mean_ops_s=fmean(best_first),
        sd_ops_s=stdev(best_first) if len(best_first) > 1 else 0.0,
        p50_ops_s=middle,
        p99_worst_ops_s=best_first[_reached_by(0.99, len(best_first))],
        worst_ops_s=best_first[-1],
        stalls=sum(stalled),
        longest_stall_s=max(runs, default=0),
    )


def _reached_by(share: float, count: int) -> int:
    """Return the position, best first, of the rate that at least this share of seconds reached.

    Below a hundred seconds that is the worst one: fewer cannot show the worst of a hundred.
    """
    return max(0, math.ceil(share * count - 1e-9) - 1)
