"""How well each place of a step explains the measurements: log marginal likelihoods, exactly.

Measurements with their positions come in, one log evidence per cut goes out, and predictive
densities for one more measurement. A cut is a commit: positions below it have one level, those at
or above it another. Levels and noise are unknown and integrated out in closed form. It knows
neither commits nor priors over them, nor what will be measured next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from detectors.change import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from detectors.bisection_beliefs import EffectPrior, NoiseShape

#: Rounds of weights for Student noise: in 40 simulated searches with spikes no posterior differed
#: from that after 30 rounds by more than 0.002.
WEIGHT_ROUNDS = 8
#: A level that is known counts as this many measurements of it that fit exactly.
ANCHOR = 1e9


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """What the marginal likelihood needs of the measurements on each side of every cut."""

    #: Number of measurements, weighted, below and from each cut on.
    n_below: NDArray[np.float64]
    n_above: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]
    #: Sum of weighted squares of the values.
    squares: NDArray[np.float64]

    @property
    def replication(self) -> NDArray[np.float64]:
        """n0 n1 / n: how many measurements the difference of the two levels is worth."""
        return self.n_below * self.n_above / (self.n_below + self.n_above)

    @property
    def levels(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The two levels; a side without a measurement has that of the other."""
        mean = (self.below + self.above) / (self.n_below + self.n_above)
        low = np.where(self.n_below > 0, self.below / np.maximum(self.n_below, 1e-300), mean)
        high = np.where(self.n_above > 0, self.above / np.maximum(self.n_above, 1e-300), mean)
        return low, high

    @property
    def scatter(self) -> NDArray[np.float64]:
        """Sum of squares about the mean of everything."""
        total = self.below + self.above
        return np.maximum(self.squares - total**2 / (self.n_below + self.n_above), 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Measurements at positions, seen from every cut.

    The values are about their own mean, or about the level that is known below every cut.
    """

    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    #: Cuts to judge, ascending; one above every position means that there is no step.
    cuts: NDArray[np.int64]
    shape: NoiseShape
    prior: EffectPrior
    #: The level below every cut is known to be zero, and the values are not about their own mean.
    anchored: bool = False

    @property
    def _free(self) -> int:
        """Levels that the measurements have to tell."""
        return 1 if self.anchored else 2

    @cached_property
    def _fit(self) -> tuple[_Sums, NDArray[np.float64]]:
        """Sums at the final weights, and the log constants that belong to these."""
        below = self.positions[None, :] < self.cuts[:, None]
        weights = np.ones(below.shape)
        constants = np.zeros(self.cuts.size)
        sums = self._weighted(weights, below)
        if self.shape.student_df is None:
            return sums, constants
        for _ in range(WEIGHT_ROUNDS):
            low, high = sums.levels
            residuals = self.values - np.where(below, low[:, None], high[:, None])
            within = (weights * residuals**2).sum(axis=1) + self._floor(self.values.size)
            variance = within / max(self.values.size - self._free + self.shape.df, 1.0)
            weights, bounds = self.shape.weights(residuals**2 / variance[:, None])
            sums, constants = self._weighted(weights, below), bounds.sum(axis=1)
        return sums, constants

    def _weighted(self, weights: NDArray[np.float64], below: NDArray[np.bool_]) -> _Sums:
        return _Sums(
            n_below=(weights * below).sum(axis=1) + (ANCHOR if self.anchored else 0.0),
            n_above=(weights * ~below).sum(axis=1),
            below=(weights * below) @ self.values,
            above=(weights * ~below) @ self.values,
            squares=weights @ self.values**2,
        )

    def _floor(self, n: int) -> float:
        return n * self.shape.floor_sd**2 + self.shape.sum_of_squares

    def _parts(self, sums: _Sums, n: int) -> NDArray[np.float64]:
        """Log marginal likelihood of each cut (last axis: component of the effect prior).

        Two Gaussian levels, one flat or known, the other a step of d standard deviations away; the
        noise has the scale prior 1/sd. With d normal of variance g this is the g-prior Bayes factor
        (Liang et al., J. Am. Statist. Assoc. 103, 2008, section 2); the moment prior multiplies it
        by the posterior mean of (d^2 / g)^k, a polynomial. What all cuts share is left out.
        """
        g = self.prior.g
        low, high = sums.levels
        m = sums.replication[..., None]
        df = n + 1 - self._free + self.shape.df
        kept = 1 / (1 + m * g)
        step = (high - low)[..., None]
        rest = (sums.scatter + self._floor(n))[..., None] - m * step**2 * (1 - kept)
        # The square of the posterior mean of d over its variance, but for the unknown noise, whose
        # moments are the factors df + 2i.
        signal = step**2 * (1 - kept) ** 2 / (g * rest * kept)
        order, coefficients = self.prior.order, self.prior.coefficients
        moment = np.full_like(signal, coefficients[order])
        for i in range(order - 1, -1, -1):
            moment = coefficients[i] + (df + 2 * i) * signal * moment
        mass = np.log(sums.n_below + sums.n_above)[..., None]
        return np.asarray(
            (order + 0.5) * np.log(kept) - 0.5 * mass - 0.5 * df * np.log(rest) + np.log(moment)
        )

    @cached_property
    def _components(self) -> NDArray[np.float64]:
        sums, constants = self._fit
        return self._parts(sums, self.values.size) + self.prior.log_weights + constants[:, None]

    @cached_property
    def log_evidence(self) -> NDArray[np.float64]:
        """Log marginal likelihood of each cut, up to a constant that all of them share."""
        return np.asarray(np.logaddexp.reduce(self._components, axis=-1))

    def sizes(self, mass: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability of each component of the effect prior, given that of each cut."""
        shares = np.exp(self._components - self.log_evidence[:, None])
        return np.asarray(mass @ shares)

    def nodes(self, mass: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values about both levels, where one more measurement is likely; ascending.

        Args:
            mass: Probability of each cut.
            spread: Places of the nodes about a level, in standard deviations.
        """
        sums, _ = self._fit
        low, high = sums.levels
        # A cut with all measurements on one side says nothing about two levels.
        weights = mass * (sums.n_below > 0) * (sums.n_above > 0) + 1e-12
        weights /= weights.sum()
        within = sums.scatter - sums.replication * (high - low) ** 2 + self._floor(self.values.size)
        df = max(self.values.size - self._free + self.shape.df, 1.0)
        # While the noise is hardly known its estimate is as often far too small as too large.
        sd = math.sqrt(max(float(mass @ within), 1e-300) / df) * (1 + 2 / self.values.size)
        return np.unique(
            np.concatenate([float(weights @ level) + sd * spread for level in (low, high)])
        )

    def predict(
        self, nodes: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probabilities of the nodes for one more measurement below, and from each cut on.

        Shape (cuts, nodes), each row summing to one. Exact for Gaussian noise: the evidence with
        the new value over the evidence without it.
        """
        widths = np.gradient(nodes)
        densities = []
        for side in ("below", "above"):
            log_density = np.logaddexp.reduce(
                self._extended(nodes, side=side) + self.prior.log_weights, axis=-1
            )
            density = np.exp(log_density - log_density.max(axis=1, keepdims=True)) * widths
            densities.append(density / density.sum(axis=1, keepdims=True))
        return densities[0], densities[1]

    def _extended(self, nodes: NDArray[np.float64], *, side: str) -> NDArray[np.float64]:
        """Log evidence parts with one more value on a side, up to a constant per cut."""
        sums, _ = self._fit
        low, high = (level[:, None] for level in sums.levels)
        n = self.values.size
        within = sums.scatter - sums.replication * (high - low)[:, 0] ** 2 + self._floor(n)
        variance = np.maximum(within, 1e-300) / max(n - self._free + self.shape.df, 1.0)
        # A side that was never measured may have any level: nothing there is an outlier.
        seen = (sums.n_below if side == "below" else sums.n_above)[:, None] > 0
        residuals = np.where(seen, nodes - (low if side == "below" else high), 0.0)
        weights, constants = self.shape.weights(residuals**2 / variance[:, None])
        here = 1.0 if side == "below" else 0.0
        extended = _Sums(
            n_below=sums.n_below[:, None] + here * weights,
            n_above=sums.n_above[:, None] + (1 - here) * weights,
            below=sums.below[:, None] + here * weights * nodes,
            above=sums.above[:, None] + (1 - here) * weights * nodes,
            squares=sums.squares[:, None] + weights * nodes**2,
        )
        return self._parts(extended, n + 1) + constants[..., None]

    def effect(self, cut: int, confidence: float) -> tuple[float, Interval]:
        """The step at one of the cuts and its interval, by Student's t for two levels.

        The prior of the sizes has no part in it: it is about telling answers apart, and would draw
        steps towards its own sizes.
        """
        sums, _ = self._fit
        row = int(np.flatnonzero(self.cuts == cut)[0])
        low, high = (float(level[row]) for level in sums.levels)
        m = float(sums.replication[row])
        df = self.values.size - self._free + self.shape.df
        if m == 0 or df <= 0:
            effect = high - low if m > 0 else math.nan
            return effect, Interval(low=-math.inf, high=math.inf, confidence=confidence)
        step = high - low
        within = max(float(sums.scatter[row]) - m * step**2, 0.0) + self._floor(self.values.size)
        error = self.shape.widening * math.sqrt(within / df / m)
        half = float(special.stdtrit(df, (1 + confidence) / 2)) * error
        return step, Interval(low=step - half, high=step + half, confidence=confidence)
