"""Drift: a slope through a history, told apart from a staircase of changes.

Logs and the places of changes come in; the slope and the changes that it does not explain go out.
It knows one slope for the whole history: a ramp in one part of it stays a staircase.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from detectors.change import Interval
from detectors.history import Drift
from detectors.spread import clipped_noise, median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

#: With fewer points a slope and a step cannot be told apart.
POINTS_MIN = 30
#: A history with more points or changes than this is not one host's slow slope.
POINTS_MAX = 20_000
CHANGES_MAX = 12
#: Below this p-value a slope is reported. Looked at after every commit, like the changes.
ALPHA = 1e-4
#: The Bayesian information criterion (Schwarz 1978) has to fall by this much ("strong" in Kass &
#: Raftery 1995) before a slope replaces changes.
BIC_GAIN = 6.0
CLIP = 3.0


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A history explained by changes and at most one slope."""

    places: tuple[int, ...]
    drift: Drift | None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    places: tuple[int, ...]
    coefficients: Array
    residuals: Array
    covariance: Array

    @property
    def bic(self) -> float:
        """Two parameters for a change, its place and its level; one for the slope."""
        n = self.residuals.size
        n_parameters = 2 * len(self.places) + int(self.coefficients.size > len(self.places) + 1)
        scatter = max(float(np.sum(self.residuals**2)), 1e-300)
        return n * math.log(scatter / n) + (n_parameters + 1) * math.log(n)


def explain(logs: Array, places: Sequence[int], *, confidence: float) -> Explained:
    """Changes and drift together: a change that one slope explains better is dropped."""
    steps = Explained(places=tuple(places), drift=None)
    if not POINTS_MIN <= logs.size <= POINTS_MAX or len(places) > CHANGES_MAX:
        return steps
    cut = _cut(logs, places)
    flat = _fit(cut, steps.places, slope=False)
    sloped = _fit(cut, steps.places, slope=True)
    best = sloped
    while sloped.places:
        variances = np.diag(sloped.covariance)[1 : len(sloped.places) + 1]
        strengths = sloped.coefficients[1 : len(sloped.places) + 1] ** 2 / variances
        weakest = int(np.argmin(strengths))
        rest = tuple(p for at, p in enumerate(sloped.places) if at != weakest)
        # Where a slope is the truth the cut about its steps was wrong.
        sloped = _fit(_cut_about(logs, cut, rest), rest, slope=True)
        if sloped.bic < best.bic:
            best = sloped
    drift = _drift(best, confidence=confidence)
    if drift is None:
        return steps
    if len(best.places) < len(steps.places) and best.bic > flat.bic - BIC_GAIN:
        kept = _drift(_fit(cut, steps.places, slope=True), confidence=confidence)
        return Explained(places=steps.places, drift=kept)
    return Explained(places=best.places, drift=drift)


def _cut(logs: Array, places: Sequence[int]) -> Array:
    """The logs with outliers pulled in to their level."""
    cut = logs.copy()
    edges = [0, *places, logs.size]
    levels = np.concatenate(
        [np.full(stop - start, median(logs[start:stop])) for start, stop in pairwise(edges)]
    )
    return _pulled(cut, levels)


def _cut_about(logs: Array, cut: Array, places: tuple[int, ...]) -> Array:
    fit = _fit(cut, places, slope=True)
    return _pulled(logs, cut - fit.residuals)


def _pulled(logs: Array, fitted: Array) -> Array:
    off = logs - fitted
    sd = 1.4826 * median(np.abs(off - median(off)))
    if not sd:
        return logs
    return np.asarray(fitted + np.clip(off, -CLIP * sd, CLIP * sd), dtype=np.float64)


def _fit(logs: Array, places: tuple[int, ...], *, slope: bool) -> _Fit:
    n = logs.size
    time = np.arange(n, dtype=np.float64)
    columns = [np.ones(n), *((time >= place).astype(np.float64) for place in places)]
    if slope:
        columns.append((time - (n - 1) / 2) / n)
    design = np.column_stack(columns)
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ logs)
    return _Fit(
        places=places,
        coefficients=coefficients,
        residuals=logs - design @ coefficients,
        covariance=inverse,
    )


def _drift(fit: _Fit, *, confidence: float) -> Drift | None:
    n = fit.residuals.size
    _, rho = clipped_noise(fit.residuals)
    # Every estimated parameter pulls the estimate down (Marriott & Pope 1954).
    rho = min((rho * n + 2 + len(fit.places)) / n, 0.9)
    inflation = (1 + rho) / (1 - rho)
    df = max(n * (1 - rho) / (1 + rho) - 2 - len(fit.places), 2.0)
    scatter = float(np.sum(fit.residuals**2)) / (n - 2 - len(fit.places))
    error = math.sqrt(max(scatter * inflation * float(fit.covariance[-1, -1]), 1e-300))
    total = float(fit.coefficients[-1])
    p_value = float(2 * special.stdtr(df, -abs(total) / error))
    if p_value > ALPHA:
        return None
    reach = -float(special.stdtrit(df, (1 - confidence) / 2)) * error
    return Drift(
        slope=total / n,
        interval=Interval(low=(total - reach) / n, high=(total + reach) / n, confidence=confidence),
        p_value=p_value,
        total=total,
        n=n,
    )
