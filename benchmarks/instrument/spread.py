"""Spreads and medians with intervals: numbers in, what is printed of them out.

It knows no workload and no unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its interval; NaN where there is too little to say."""

    value: float
    low: float
    high: float

    def text(self, form: str = ".2f") -> str:
        """The number with its interval in brackets."""
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]"


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A standard deviation with its degrees of freedom."""

    sd: float
    df: int


def spread(values: Sequence[float]) -> Spread:
    """The sd about the mean (ddof 1); NaN with fewer than two values."""
    if len(values) < 2:  # noqa: PLR2004  one value has no spread
        return Spread(sd=math.nan, df=0)
    return Spread(sd=float(np.std(values, ddof=1)), df=len(values) - 1)


def pooled(spreads: Sequence[Spread]) -> Spread:
    """One sd for several groups, each about its own mean: weighted by degrees of freedom."""
    known = [one for one in spreads if one.df > 0]
    df = sum(one.df for one in known)
    if df == 0:
        return Spread(sd=math.nan, df=0)
    return Spread(sd=math.sqrt(sum(one.df * one.sd**2 for one in known) / df), df=df)


def sd_ratio(ours: Spread, theirs: Spread, *, confidence: float = 0.95) -> Estimate:
    """Our sd over theirs, with the interval that the F distribution gives for normal values.

    Snedecor & Cochran, Statistical Methods, 8th edition 1989, section 6.12, on two variances.
    """
    if ours.df == 0 or theirs.df == 0 or not theirs.sd > 0:
        return Estimate(value=math.nan, low=math.nan, high=math.nan)
    ratio = ours.sd / theirs.sd
    tail = (1 - confidence) / 2
    low, high = (float(stats.f.ppf(q, ours.df, theirs.df)) for q in (tail, 1 - tail))
    return Estimate(value=ratio, low=ratio / math.sqrt(high), high=ratio / math.sqrt(low))


def median_of(values: Sequence[float], *, confidence: float = 0.95) -> Estimate:
    """The median with its interval from order statistics (exact, no distribution assumed).

    Fewer than six values cannot give 95 %: then the interval is from the least to the largest.
    """
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        return Estimate(value=math.nan, low=math.nan, high=math.nan)
    # The number of values below the median is binomial with one half.
    cut = max(0, int(stats.binom.ppf((1 - confidence) / 2, n, 0.5)) - 1)
    return Estimate(value=median(ordered), low=ordered[cut], high=ordered[n - 1 - cut])


def pooled_effect(
    effects: Sequence[float], starts: Sequence[int], *, confidence: float = 0.95
) -> Estimate:
    """The mean difference per start over pairs that stopped when they had seen enough.

    The mean over pairs would be too large, since pairs that look different stop early. By Wald's
    identity the sum over all starts divided by their number is not (Wald, Sequential Analysis,
    1947, appendix A.3); its error is that of a ratio of sums over pairs (Cochran, Sampling
    Techniques, 3rd edition 1977, section 2.11), with Student's t.
    """
    weights = np.asarray(starts, dtype=np.float64)
    sums = np.asarray(effects, dtype=np.float64) * weights
    if weights.size == 0:
        return Estimate(value=math.nan, low=math.nan, high=math.nan)
    value = float(sums.sum() / weights.sum())
    if weights.size < 2:  # noqa: PLR2004  one pair has no spread
        return Estimate(value=value, low=-math.inf, high=math.inf)
    n = weights.size
    scatter = float(np.sum((sums - value * weights) ** 2)) * n / (n - 1)
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * math.sqrt(scatter) / weights.sum()
    return Estimate(value=value, low=value - half, high=value + half)


def percent(effect: float, low: float, high: float) -> str:
    """A log ratio with its interval, as relative differences."""
    value, least, most = (100 * math.expm1(number) for number in (effect, low, high))
    return f"{value:+.2f} % [{least:+.2f}, {most:+.2f}]"
