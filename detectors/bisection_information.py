"""What one more measurement would tell about the answer, and about how many it will take.

Probabilities of answers, outcomes and sizes of step come in; information per commit or a number of
measurements goes out. It knows neither levels nor noise; those are in the probabilities already.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: By how much, in log odds, the last measurement passes the stop: on average 0.40 and 0.66 in 1,000
#: searches each at 2 and 3 sd.
OVERSHOOT = 0.5
#: Share of the greatest information about a step that a search reaches, which is that of equally
#: many measurements on both sides: 0.89, 0.92, 0.95 in 1,000 searches each at 1, 2, 3 sd.
BALANCE = 0.9


def information(
    posterior: NDArray[np.float64], below: NDArray[np.float64], above: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mutual information of answer and outcome for each commit (rows: answers; columns: nodes)."""
    share = posterior[:, None]

    def summed(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
        # Answer 0 lies on one level; answers 1 to i are above it from commit i on.
        below_i = low[1:].sum(axis=0) - np.cumsum(low[1:], axis=0)
        first = low[1:].sum(axis=0)[None]
        return np.asarray(low[0] + np.vstack([first, np.cumsum(high[1:], axis=0) + below_i]))

    mixed = np.maximum(summed(share * below, share * above), 1e-300)
    sure = summed(share * _plogp(below), share * _plogp(above))
    return np.asarray(np.maximum((sure - mixed * np.log(mixed)).sum(axis=1), 0.0))


def measurements_to_come(
    best: float, stop: float, sizes: Sequence[float], likely: NDArray[np.float64]
) -> float:
    """Measurements until the best answer, of probability `best` by now, has that of the stop.

    Equally many measurements on both sides of a step of d standard deviations add half
    log(1 + d^2 / 4) each to the log odds against one level with larger noise (the gain in Gaussian
    log likelihood from taking the step out of the variance). `likely` is the probability of each
    of the sizes, over which the rate is a geometric mean.
    """
    missing = _log_odds(stop) + OVERSHOOT - _log_odds(min(best, stop))
    rates = np.log(0.5 * np.log1p(np.square(sizes) / 4))
    return missing / (BALANCE * math.exp(float(likely @ rates)))


def _log_odds(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)


def _plogp(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(shares * np.log(np.maximum(shares, 1e-300)))
