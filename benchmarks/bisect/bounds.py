"""What no search can be better than on average: a bound from information.

Commits and size of step come in, a number of measurements goes out. For two levels that are known,
so that it bounds searches that have to learn them all the more.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate, stats


def measurements(commits: int, size: float, *, stop: float) -> float:
    """Return the leading terms of the expected number of measurements.

    Finding the place takes the range's bits over the capacity of the channel whose output is a
    measurement and whose input is the side (Burnashev and Zigangirov 1974), being sure of it the
    log odds against wrong answers over the divergence of the two levels (Gu and Xu, STOC 2023).
    """
    sure = 2 * math.log(1 / (1 - stop)) / (size**2 / 2)
    return stop * math.log2(commits - 1) / _capacity(size) + sure


def _capacity(size: float) -> float:
    """Return the bits that one Gaussian measurement of one of two levels `size` sds apart tells."""
    half = size / 2

    def surprise(value: float) -> float:
        density = 0.5 * (stats.norm.pdf(value - half) + stats.norm.pdf(value + half))
        return float(-density * np.log2(density)) if density > 0 else 0.0

    mixed, _ = integrate.quad(surprise, -half - 9, half + 9, limit=200)
    return float(mixed - 0.5 * math.log2(2 * math.pi * math.e))
