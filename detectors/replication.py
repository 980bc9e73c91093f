"""How many starts and slices it takes to see an effect, and the smallest effect a number can show.

A noise model and an effect or a plan come in, numbers go out. For a pair the unit of replication is
the start; for a single run against a baseline it is the run, so that starts help only so far. It
plans; what was found afterwards is in `Change.detectable_effect`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy import special, stats

from detectors.errors import DataError
from detectors.evidence import POWER, check_confidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from detectors.noise import NoiseModel

#: More starts of one job are no plan.
STARTS_MAX = 200


@dataclass(frozen=True, kw_only=True)
class Replication:
    """Starts of each side, and slices of one workload in each start."""

    starts: int
    slices: int

    def __post_init__(self) -> None:
        """Refuse a plan that measures nothing."""
        if not (self.starts >= 1 and self.slices >= 1):
            raise DataError(f"{self.starts} starts of {self.slices} slices measure nothing")


def pair_detects(
    noise: NoiseModel, plan: Replication, *, confidence: float = 0.95, power: float = POWER
) -> float:
    """Smallest |log ratio| that `compare` shows significant with this power; inf for one start.

    The noise of a pair is that of starts and slices, on both sides; runs cancel in alternation.
    """
    if plan.starts < 2:  # noqa: PLR2004  a spread needs two
        return math.inf
    variance = 2 * (noise.start_sd**2 + noise.slice_sd**2 / plan.slices) / plan.starts
    return _detects(variance, plan.starts - 1, confidence=confidence, power=power)


def run_detects(
    noise: NoiseModel, plan: Replication, *, confidence: float = 0.95, power: float = POWER
) -> float:
    """Smallest |log ratio| that `predict` shows significant with this power, for one new run."""
    runs = len(noise.used)
    variance, df = noise.variance(
        runs=1 + noise.mean_share,
        starts=1 / plan.starts + noise.shares.start_in_run / runs,
        slices=1 / (plan.starts * plan.slices) + noise.shares.slice_in_run / runs,
    )
    return _detects(variance, df, confidence=confidence, power=power)


def starts_for_pair(
    effect: float,
    noise: NoiseModel,
    *,
    slices: int,
    confidence: float = 0.95,
    power: float = POWER,
) -> int | None:
    """Fewest starts of each side with which `compare` sees the effect; None past two hundred.

    Args:
        effect: Log ratio, of either sign; a loss of 5 % is -0.0513.
        noise: Of the series.
        slices: Of each start.
        confidence: Of the interval.
        power: Chance that the effect is seen.

    Raises:
        DataError: the effect is zero or not finite, or confidence or power is outside (0, 1).
    """
    return _fewest(
        effect,
        lambda starts: pair_detects(
            noise, Replication(starts=starts, slices=slices), confidence=confidence, power=power
        ),
    )


def starts_for_run(
    effect: float,
    noise: NoiseModel,
    *,
    slices: int,
    confidence: float = 0.95,
    power: float = POWER,
) -> int | None:
    """Fewest starts of one new run with which `predict` sees the effect.

    None where no number of starts does, because the noise between runs hides it: then it takes a
    pair. Arguments and errors are those of `starts_for_pair`.
    """
    return _fewest(
        effect,
        lambda starts: run_detects(
            noise, Replication(starts=starts, slices=slices), confidence=confidence, power=power
        ),
    )


def slices_per_start(noise: NoiseModel, *, start_cost: float, slice_cost: float) -> int:
    """Slices of each start that make the most of a given time.

    With a start that costs c1 before its first slice, and c2 for each, the variance for a given
    time is smallest at sqrt(c1 / c2) * slice_sd / start_sd slices (Cochran, Sampling Techniques,
    1977, section 10.6).

    Raises:
        DataError: a cost is not positive.
    """
    if not (start_cost > 0 and slice_cost > 0):
        raise DataError(f"costs {start_cost} and {slice_cost} have to be positive")
    best = math.sqrt(start_cost / slice_cost) * noise.slice_sd / noise.start_sd
    return max(1, round(best))


def _fewest(effect: float, detects: Callable[[int], float]) -> int | None:
    """The smallest number of starts that detects the effect.

    All are tried: with more starts in one run fewer degrees of freedom lie behind what is left of
    the variance, so that more is not always better.
    """
    size = abs(effect)
    if not (math.isfinite(size) and size > 0):
        raise DataError(f"the effect is {effect}; it has to be a number other than zero")
    return next((n for n in range(1, STARTS_MAX + 1) if detects(n) <= size), None)


def _detects(variance: float, df: float, *, confidence: float, power: float) -> float:
    check_confidence(confidence)
    if not 0 < power < 1:
        raise DataError(f"power is {power}; it has to lie inside (0, 1)")
    critical = float(stats.t.isf((1 - confidence) / 2, df))
    return float(special.nctdtrinc(df, 1 - power, critical)) * math.sqrt(variance)
