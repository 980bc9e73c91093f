"""The noise of the other workloads as the prior for one with a short history.

Noise models of many workloads of one host come in, a `NoisePrior` goes out: how noisy a workload of
this host usually is, and how far workloads differ. It does not know which workload is which.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, special

from detectors.noise import DEFAULT_PRIOR, FLOOR_SHARE, NoisePrior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from detectors.noise import MeanSquare, NoiseModel

    Array = NDArray[np.float64]

#: With fewer workloads their spread cannot be told, and the fallback is the better guess.
MODELS_MIN = 6
#: The fitted prior never counts for less, or for more: past 20 degrees of freedom even workloads
#: that look alike would silence what a history of a dozen runs has to say.
DF_MIN = 1.5
DF_MAX = 20.0


def prior_from(models: Sequence[NoiseModel], *, fallback: NoisePrior = DEFAULT_PRIOR) -> NoisePrior:
    """What the histories of other workloads say about a workload's noise.

    The method of moments of Smyth, Linear models and empirical Bayes methods (2004), section 6.2:
    the logs of mean squares scatter by their degrees of freedom and, beyond that, as much as the
    true variances differ between workloads. The mean squares are the histories' own, before any
    prior. Levels that fewer than six workloads replicate keep the fallback's sd.

    Args:
        models: Of other workloads on the same host and configuration, not of the one in question.
        fallback: For what the models do not say.
    """
    slices = _Fit.of([model.squares.slices for model in models])
    starts = _Fit.of([model.squares.starts for model in models])
    runs = _Fit.of([model.squares.runs for model in models])
    fits = [fit for fit in (slices, starts, runs) if fit.count >= MODELS_MIN]
    if not fits:
        return fallback
    # One weight for all levels: their spreads are averaged, each by how many workloads tell it.
    excess = float(np.average([fit.excess for fit in fits], weights=[fit.count for fit in fits]))
    df = _df_of(excess)

    slice2 = slices.scale(df, otherwise=fallback.slice_sd**2)
    slice_share = float(np.mean([model.shares.slice_in_start for model in models]))
    start2 = starts.scale(df, otherwise=fallback.start_sd**2 + slice_share * slice2)
    start2 = max(start2 - slice_share * slice2, (FLOOR_SHARE * fallback.start_sd) ** 2)
    below = float(
        np.mean(
            [
                model.shares.start_in_run * start2 + model.shares.slice_in_run * slice2
                for model in models
            ]
        )
    )
    run2 = runs.scale(df, otherwise=fallback.run_sd**2 + below)
    run2 = max(run2 - below, (FLOOR_SHARE * fallback.run_sd) ** 2)
    return NoisePrior(
        slice_sd=math.sqrt(slice2), start_sd=math.sqrt(start2), run_sd=math.sqrt(run2), df=df
    )


class _Fit:
    """Logs of the mean squares of one level over workloads, freed of their sampling bias."""

    def __init__(self, logs: Array, trigamma: Array) -> None:
        self.count = logs.size
        if not self.count:
            return
        # A mean square of few degrees of freedom says little; the 1 is about what workloads differ.
        weights = 1 / (trigamma + 1.0)
        self.centre = float(np.average(logs, weights=weights))
        spread = (logs - self.centre) ** 2 * self.count / max(1, self.count - 1)
        self.excess = float(np.average(spread - trigamma, weights=weights))

    @classmethod
    def of(cls, squares: Sequence[MeanSquare]) -> _Fit:
        found = [square for square in squares if square.df > 0 and square.sum > 0]
        half = np.array([square.df / 2 for square in found])
        means = np.array([square.sum / square.df for square in found])
        return cls(np.log(means) - special.digamma(half) + np.log(half), special.polygamma(1, half))

    def scale(self, df: float, *, otherwise: float) -> float:
        """The prior mean square that workloads scatter about with `df` degrees of freedom."""
        if self.count < MODELS_MIN:
            return otherwise
        return math.exp(self.centre + float(special.digamma(df / 2)) - math.log(df / 2))


def _df_of(excess: float) -> float:
    """Degrees of freedom at which log variances scatter this much: trigamma(df / 2) = excess."""

    def difference(df: float) -> float:
        return float(special.polygamma(1, df / 2)) - excess

    if difference(DF_MAX) >= 0:
        return DF_MAX
    if difference(DF_MIN) <= 0:
        return DF_MIN
    return float(optimize.brentq(difference, DF_MIN, DF_MAX))
