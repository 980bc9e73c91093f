"""A change: a signed effect with its interval, its evidence and its warnings.

A change does not know good from bad, nor whether it matters: direction and gate belong to
`detectors.verdict`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A two-sided interval for an effect, in natural log units."""

    low: float
    high: float
    #: Coverage the interval is made for, such as 0.95.
    confidence: float


@dataclass(frozen=True, kw_only=True)
class Change:
    """The difference between two levels of one quantity.

    Effects are natural logarithms of ratios: candidate over baseline, or new level over old.
    """

    #: Log ratio; 0 is no difference.
    effect: float
    interval: Interval
    #: Two-sided p-value of "no difference".
    p_value: float
    #: Smallest |log ratio| these data would have shown with 80 % power at the stated confidence.
    detectable_effect: float
    #: Units of replication on each side: starts for a pair, runs for a stored baseline.
    n_baseline: int
    n_candidate: int
    #: Name and version of the rule that made this, so that a verdict can be replayed.
    method: str
    #: First point of the new level, for changes found in a history.
    index: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """New level over old level: 0.9 is ten percent less."""
        return math.exp(self.effect)
