"""What a bisection believes before it measures: effects, noise, commits, and what they cost.

Sizes and weights come in, checked values go out. It knows no measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from detectors.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: Probability that the range contains no change at all, before anything is measured: a bisect
#: follows an alert, and an alert is a confirmed change.
DEFAULT_NOTHING = 0.05
#: Powers of the sums of squares beyond this one lose digits, and nothing is gained by them.
ORDER_MAX = 12


@dataclass(frozen=True, kw_only=True)
class KnownNoise:
    """What is known of the noise of one measurement before the first: as a scaled inverse chi2."""

    #: Standard deviation of the log of one measurement.
    sd: float
    #: How many degrees of freedom that is worth; a very large number makes the noise known.
    df: float

    def __post_init__(self) -> None:
        """Refuse noise that is not a positive number."""
        for name in ("sd", "df"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise DataError(f"{name} of the known noise is {value}; it has to be positive")


@dataclass(frozen=True, kw_only=True)
class EffectPrior:
    """What sizes of effect are expected, in standard deviations of one measurement, either sign.

    A mixture of normal moment priors (Johnson & Rossell, J. R. Statist. Soc. B 72, 2010, section
    2.1): density proportional to d^(2k) exp(-d^2 / 2g) at order k, which vanishes at zero effect.
    A prior that does not would let "a change too small to see" compete with "nothing changed", and
    a range without a change would never end; the higher the order, the sooner it ends.
    """

    #: The most probable size of each component.
    sizes: tuple[float, ...]
    weights: tuple[float, ...]
    #: Order of the moment priors; each is narrower about its size the higher this is.
    order: int = 6

    def __post_init__(self) -> None:
        """Refuse sizes and weights that are no mixture."""
        if not 1 <= self.order <= ORDER_MAX:
            raise DataError(f"order of an effect prior is {self.order}; give 1 to {ORDER_MAX}")
        if len(self.sizes) != len(self.weights) or not self.sizes:
            raise DataError("an effect prior needs as many weights as sizes, and at least one")
        if not all(math.isfinite(x) and x > 0 for x in (*self.sizes, *self.weights)):
            raise DataError("sizes and weights of an effect prior have to be positive and finite")

    @property
    def g(self) -> NDArray[np.float64]:
        """Scale of each component: the mode of its density is at sqrt(2 k g)."""
        return np.square(np.asarray(self.sizes, dtype=np.float64)) / (2 * self.order)

    @property
    def coefficients(self) -> tuple[float, ...]:
        """Those of the even moments of a normal variable, from the variance's power k down to 0.

        E (u + s z)^2k / (2k - 1)!! is the sum of coefficient i times s^2(k-i) u^2i.
        """
        doubles = [math.prod(range(1, 2 * j, 2)) for j in range(self.order + 1)]
        return tuple(
            math.comb(2 * self.order, 2 * i) * doubles[self.order - i] / doubles[self.order]
            for i in range(self.order + 1)
        )

    @property
    def log_weights(self) -> NDArray[np.float64]:
        """Logs of the weights, which sum to one."""
        weights = np.asarray(self.weights, dtype=np.float64)
        return np.asarray(np.log(weights / weights.sum()))


@dataclass(frozen=True, kw_only=True)
class NoiseShape:
    """The distribution of the noise about its level, up to its unknown scale."""

    #: Degrees of freedom of Student noise; None for Gaussian noise.
    student_df: float | None
    known: KnownNoise | None
    #: The noise is never believed to be smaller than this.
    floor_sd: float

    @property
    def sum_of_squares(self) -> float:
        """What is known of the noise, as a sum of squares; zero where nothing is."""
        return 0.0 if self.known is None else self.known.df * self.known.sd**2

    @property
    def df(self) -> float:
        """What that is worth."""
        return 0.0 if self.known is None else self.known.df

    @property
    def widening(self) -> float:
        """Standard error of a weighted level over that of as many Gaussian values.

        The expected information about a Student level is (df + 1) / (df + 3) of a Gaussian one's
        (Lange, Little & Taylor, J. Am. Statist. Assoc. 84, 1989).
        """
        df = self.student_df
        return 1.0 if df is None else math.sqrt((df + 3) / (df + 1))

    def weights(
        self, squares: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights and log constants that bound the density from below, given squared residuals.

        A Student log density is convex in the squared residual, so that its tangent there is a
        Gaussian below it: the variational bound of Jaakkola & Jordan (Statistics and Computing 10,
        2000), with the weights of Lange, Little & Taylor (J. Am. Statist. Assoc. 84, 1989).
        """
        df = self.student_df
        if df is None:
            return np.ones_like(squares), np.zeros_like(squares)
        weights = (df + 1) / (df + squares)
        norm = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - 0.5 * math.log(df / 2)
        return weights, norm - (df + 1) / 2 * np.log1p(squares / df) + weights * squares / 2


def read_prior(prior: ArrayLike | None, nothing: float | None, n: int) -> NDArray[np.float64]:
    """The prior of every answer, "nothing changed" first."""
    weights = _weights(np.ones(n - 1) if prior is None else prior, what="the prior")
    if weights.size == n:
        if nothing is not None:
            raise DataError("give n prior weights or `nothing`, not both")
    elif weights.size == n - 1:
        nothing = DEFAULT_NOTHING if nothing is None else nothing
        if not 0 <= nothing < 1:
            raise DataError(f"nothing is {nothing}; it has to lie in [0, 1)")
        if not weights.sum() > 0:
            raise DataError("the prior has no positive weight; at least one commit needs one")
        weights = np.concatenate([[nothing], (1 - nothing) * weights / weights.sum()])
    else:
        raise DataError(f"the prior has {weights.size} weights; it has to have {n - 1} or {n}")
    if not weights[1:].sum() > 0:
        raise DataError("the prior has no positive weight; at least one commit needs one")
    return np.asarray(weights / weights.sum())


def read_costs(costs: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """The cost of every commit."""
    if costs is None:
        return np.ones(n)
    checked = _weights(costs, what="the costs").copy()
    if checked.size != n or not (checked > 0).all():
        raise DataError(f"costs have to be {n} positive numbers, one per commit")
    return checked


def _weights(values: ArrayLike, *, what: str) -> NDArray[np.float64]:
    weights = np.asarray(values, dtype=np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError(f"{what} has to be a 1-D sequence of finite numbers that are not negative")
    return weights
