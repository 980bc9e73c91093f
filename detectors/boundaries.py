"""How strict each look has to be when the evidence is looked at after every start.

A number of looks comes in, nominal levels of a t test for each look go out, such that all of them
together err as often as stated. Nothing is simulated or tabulated: under "no difference" the
t statistics of a growing sample do not depend on the noise, so that the chance of ever crossing a
boundary is an integral, and it is computed. It does not know what a start is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import optimize, special
from scipy.interpolate import CubicSpline

from detectors.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]

#: Nodes of the state on either side of its kink. With 81, and 20 to a piece of the integral, two
#: looks agree with areas on the sphere to .05 % of themselves, a single look at 5 % after 3 to 20
#: numbers with itself to .5 %.
STATES = 81
#: Nodes of each piece of the integral over the next number.
NODES = 20
#: Looks that are supported; 10 take 25 ms, the cost grows in proportion.
LOOKS_MAX = 100
#: t statistics beyond this are not told apart.
T_MAX = 1e7
#: Densities below exp(-41), 1e-18, are nothing.
DECAY_MAX = 41.0
#: Where there is no look, the largest t statistic that is told from infinity, over the next bound.
UNSEEN = 50.0


@dataclass(frozen=True, kw_only=True)
class Boundaries:
    """Nominal levels for looks after `first`, ..., `last` replicates, spent by degrees of freedom.

    The level of look n is in proportion to n - 1, the degrees of freedom of its t statistic: on the
    scale of nominal p-values a power family as those of Wang & Tsiatis (1987), between Pocock's
    (1977) equal levels and O'Brien & Fleming (1979), who spend next to nothing early. Measured over
    noise of 1, 2 and 4 % it is within 8 % of the fewest starts everywhere; see docs/statistics.md.
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuse looks that no t statistic can be computed at."""
        if not 2 <= self.first <= self.last <= LOOKS_MAX:  # noqa: PLR2004  a t statistic needs two
            raise DataError(
                f"looks after {self.first} to {self.last} replicates: the first has to be after 2 "
                f"or more, the last after {LOOKS_MAX} at most"
            )

    @cached_property
    def _weights(self) -> Array:
        n = np.arange(2, self.last + 1, dtype=np.float64)
        return np.where(n >= self.first, (n - 1) / (self.last - 1), 0.0)

    def level(self, look: int, *, overall: float) -> float:
        """Nominal level of this look, such that all looks together err with chance `overall`."""
        return float(self._weights[look - 2] * _scale(self.first, self.last, overall))

    def p_value(self, look: int, *, nominal: float) -> float:
        """The level at which the boundaries as a whole are just crossed at this look.

        This is the repeated p-value of Jennison & Turnbull (Group Sequential Methods, 2000, 9.5):
        the chance under "no difference" that any look is at least as extreme, each by its own
        measure.
        """
        if nominal <= 0:
            return 0.0
        scale = nominal / float(self._weights[look - 2])
        if scale >= 1:
            return 1.0
        # At least the chance of the last look alone, whose weight is 1.
        return min(1.0, max(scale, crossing_chance(self._weights * scale)))


@lru_cache(maxsize=256)
def _scale(first: int, last: int, overall: float) -> float:
    """What the weights are multiplied by."""
    weights = Boundaries(first=first, last=last)._weights  # noqa: SLF001  our own

    def excess(log_scale: float) -> float:
        return math.log(crossing_chance(weights * math.exp(log_scale)) / overall)

    # All looks as one test, and all looks as disjoint tests (Bonferroni), bracket the truth.
    bottom = math.log(overall / float(np.sum(weights))) - 1.0
    # The last look alone, at level 1, is crossed for certain.
    return math.exp(optimize.brentq(excess, bottom, 0.0, xtol=1e-6))


def crossing_chance(levels: Array) -> float:
    """Chance that a t statistic is ever beyond its nominal level although nothing changed.

    Let S be the sum of n independent Gaussian numbers of mean zero and Q the sum of their squares.
    By Basu's theorem Q, complete and sufficient for the scale, is independent of all earlier
    S / sqrt(Q); hence u = S / sqrt(Q) is a Markov chain, u' = (u + y) / sqrt(1 + y^2) with
    y sqrt(n) of Student's t with n degrees of freedom, and t is an increasing function of u. The
    chance of crossing later, given |u|, is integrated backwards from the last look as Armitage,
    McPherson & Rowe (1969) did for known scale.

    Args:
        levels: Two-sided nominal levels of the looks after 2, 3, ... numbers; 0 is no look.
    """
    last = len(levels) + 1
    # Tiny levels stay numbers; a look without a level has no bound.
    quantiles = special.stdtrit(np.arange(1, last), np.maximum(levels, 1e-290) / 2)
    critical = np.full(last - 1, math.inf)
    critical[levels > 0] = np.maximum(-quantiles[levels > 0], 0.0)
    seen = critical[levels > 0]
    reach = min(T_MAX, UNSEEN * float(np.max(seen, initial=1.0)))
    later: _Later | None = None
    for n in range(last - 1, 0, -1):
        bound = math.sqrt(n + 1) * float(_share(critical[n - 1 : n], n + 1)[0])
        if n == 1:
            return float(_step(np.ones(1), n, bound, later)[0])
        edge = math.asinh(min(float(critical[n - 2]), reach))
        later = _Later.of(n, edge=edge, bound=bound, later=later)
    raise AssertionError("there is at least one look")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Later:
    """Chance of crossing at a later look as a function of the state now, asinh(t).

    An outlier swells mean and spread alike, so that beyond some reach no next number helps. The
    chance sets in like a square root where the next bound comes within reach, hence two pieces.
    """

    #: Where the next bound comes within reach, as asinh(t) and as |u|.
    kink: float
    kink_u: float
    edge: float
    below: CubicSpline
    above: CubicSpline | None

    @classmethod
    def of(cls, n: int, *, edge: float, bound: float, later: _Later | None) -> _Later:
        kink_u = math.sqrt(max(bound**2 - 1, 0.0))
        rest = math.sqrt(max(n - kink_u**2, n / T_MAX**2))
        kink = min(math.asinh(math.sqrt(n - 1) * kink_u / rest), edge)

        def chance(grid: Array) -> Array:
            return _step(math.sqrt(n) * _share(np.sinh(grid), n), n, bound, later)

        steps = np.linspace(0.0, 1.0, STATES)
        above = None
        if kink < edge:
            above = CubicSpline(steps, chance(kink + (edge - kink) * steps**2))
        below = CubicSpline(steps, chance(kink * steps))
        return cls(kink=kink, kink_u=kink_u, edge=edge, below=below, above=above)

    def __call__(self, state: Array) -> Array:
        low = self.below(np.minimum(state / max(self.kink, 1e-290), 1.0))
        if self.above is None:
            return np.asarray(low)
        share = np.clip((state - self.kink) / (self.edge - self.kink), 0.0, 1.0)
        return np.where(state < self.kink, low, self.above(np.sqrt(share)))


def _share(t: Array, n: int) -> Array:
    """The state |u| that belongs to a t statistic of n numbers, as a share of the largest."""
    return np.asarray(1 / np.hypot(1.0, math.sqrt(n - 1) / np.maximum(t, 1e-290)))


def _step(u: Array, n: int, bound: float, later: _Later | None) -> Array:
    """Chance of crossing at look n + 1 or later, given the state u >= 0 after n numbers.

    With y = tan(phi) the next state is sqrt(1 + u^2) sin(phi + psi), psi = atan(u), and the density
    of phi is in proportion to cos(phi)^(n - 1). The states within the bound are two stretches of
    phi, the second where the sine is past its top.
    """
    psi = np.arctan(u)
    reach = np.sqrt(1 + u**2)
    inside = np.arcsin(np.minimum(1.0, bound / reach))
    low, high = np.maximum(-inside - psi, -math.pi / 2), np.minimum(inside - psi, math.pi / 2)
    past = np.minimum(math.pi - inside - psi, math.pi / 2)
    chance: Array = _below(low, n) + _below(past, n) - _below(high, n)
    if later is None:
        return chance
    kink = np.arcsin(np.minimum(1.0, later.kink_u / reach))
    edges = (low, np.clip(-kink - psi, low, high), np.clip(kink - psi, low, high), high)
    end = np.full_like(u, math.pi / 2)
    edges_past = (past, np.clip(math.pi - kink - psi, past, end), end)
    points, weights = _nodes()
    density = math.exp(math.lgamma((n + 1) / 2) - math.lgamma(n / 2)) / math.sqrt(math.pi)
    # With many numbers behind it the next one hardly matters; the nodes go where the density is.
    most = math.acos(math.exp(-DECAY_MAX / (n - 1))) if n > 1 else math.pi / 2
    for from_, to in (*pairwise(edges), *pairwise(edges_past)):
        left, right = np.clip(from_, -most, most), np.clip(to, -most, most)
        phi = (left + right)[:, None] / 2 + (right - left)[:, None] / 2 * points
        share = np.abs(reach[:, None] * np.sin(phi + psi[:, None])) / math.sqrt(n + 1)
        rest = np.sqrt(np.maximum(1 - share**2, T_MAX**-2))
        state = np.minimum(np.arcsinh(math.sqrt(n) * share / rest), later.edge)
        values = later(state) * np.cos(phi) ** (n - 1)
        chance = chance + density * (right - left) / 2 * (values @ weights)
    return chance


def _below(phi: Array, n: int) -> Array:
    """Chance that the next phi is smaller: y sqrt(n) = sqrt(n) tan(phi) is Student's t."""
    edge = math.pi / 2 - 1e-15
    return np.asarray(special.stdtr(n, math.sqrt(n) * np.tan(np.clip(phi, -edge, edge))))


@lru_cache(maxsize=1)
def _nodes() -> tuple[Array, Array]:
    """Gauss-Legendre on [-1, 1], drawn towards both ends, where the boundaries are."""
    points, weights = np.polynomial.legendre.leggauss(NODES)
    return 1.5 * points - 0.5 * points**3, weights * 1.5 * (1 - points**2)
