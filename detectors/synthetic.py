"""Synthetic benchmark results: every kind of noise the detectors have to survive, planted changes.

A noise is a frozen value with `draw(rng, shape)`: log deviations whose last axis is time (commits).
`history` turns noise and planted steps into a series in natural units; `runs`, `pair` and `suite`
(`detectors.synthetic_runs`) give runs of starts of slices. Noise adds up: `Gaussian(sd=0.02) +
Spikes(share=0.03, size=-0.22)`. The generator always comes first and is always the caller's.
Nothing here is a model the detectors fit; it is what they are tried on.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from scipy.signal import lfilter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]

#: A number of commits, or an array's shape whose last axis is commits.
Shape: TypeAlias = int | tuple[int, ...]


class Noise(ABC):
    """Log deviations over time: a kind of noise that can be drawn and added to others."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Log deviations of this shape; the last axis is time, the others are independent."""

    def __add__(self, other: Noise) -> Noise:
        """Both noises at once, drawn independently."""
        return Sum(parts=(self, other))


@dataclass(frozen=True, kw_only=True)
class Sum(Noise):
    """Several noises at once."""

    parts: tuple[Noise, ...]

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Sum of one draw of each part."""
        total = np.zeros(shape)
        for part in self.parts:
            total += part.draw(rng, shape)
        return total


@dataclass(frozen=True, kw_only=True)
class Gaussian(Noise):
    """Independent Gaussian noise."""

    sd: float = 0.02

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Independent draws."""
        return self.sd * rng.standard_normal(shape)


@dataclass(frozen=True, kw_only=True)
class Autoregressive(Noise):
    """Gaussian AR(1) noise, stationary from the first point; `sd` is the marginal one."""

    rho: float
    sd: float = 0.02

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """One stationary path along the last axis."""
        assert -1.0 < self.rho < 1.0, "an AR(1) with |rho| >= 1 has no marginal sd"
        shocks = rng.standard_normal(shape)
        # The first point has the marginal variance 1, every shock what keeps it there.
        shocks[..., 1:] *= math.sqrt(1.0 - self.rho**2)
        path: Array = lfilter([1.0], [1.0, -self.rho], shocks, axis=-1)
        return self.sd * path


@dataclass(frozen=True, kw_only=True)
class Student(Noise):
    """Independent Student t noise of `df` degrees of freedom, scaled so that `sd` is its sd."""

    df: float = 3.0
    sd: float = 0.02

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Independent draws whose true sd is `sd`."""
        assert self.df > 2.0, "Student's t has no variance at 2 degrees of freedom or fewer"  # noqa: PLR2004  where the variance of Student's t ends
        return self.sd * math.sqrt((self.df - 2.0) / self.df) * rng.standard_t(self.df, shape)


@dataclass(frozen=True, kw_only=True)
class Spikes(Noise):
    """One-off spikes: each point by itself is moved by `size` with probability `share`.

    No other noise in it; add it to one. log(0.8) is a spike of -20 %.
    """

    share: float = 0.03
    size: float = math.log(0.8)

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Zero, or `size` where a spike is."""
        return np.where(rng.random(shape) < self.share, self.size, 0.0)


@dataclass(frozen=True, kw_only=True)
class Modes(Noise):
    """Two modes drawn anew at each point: `gap` with probability `share`, else 0.

    No other noise in it; the noise within the modes is added to it.
    """

    gap: float
    share: float = 0.5

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Zero or `gap`, independently."""
        return np.where(rng.random(shape) < self.share, self.gap, 0.0)


@dataclass(frozen=True, kw_only=True)
class StickyModes(Noise):
    """Two modes that last: a Markov chain, stationary from the first point.

    `share` of all points lie `gap` away; a visit there lasts `dwell` points on average.
    """

    gap: float
    dwell: float
    share: float = 0.5

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Zero or `gap`, with geometric stays."""
        leave = 1.0 / self.dwell
        enter = leave * self.share / (1.0 - self.share)
        assert leave <= 1.0, "a visit lasts at least one point"
        assert enter <= 1.0, "the other mode's stay would be shorter than one point"
        luck = rng.random(shape)
        away = np.empty(luck.shape, dtype=np.bool_)
        away[..., 0] = luck[..., 0] < self.share
        for now in range(1, luck.shape[-1]):
            before = away[..., now - 1]
            away[..., now] = np.where(before, luck[..., now] >= leave, luck[..., now] < enter)
        return np.where(away, self.gap, 0.0)


@dataclass(frozen=True, kw_only=True)
class Ramp(Noise):
    """Steady drift: from 0 at the first point to `total` at the last, the same in every draw."""

    total: float

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """A straight line."""
        del rng
        flat = np.zeros(shape)
        return flat + np.linspace(0.0, self.total, flat.shape[-1])


@dataclass(frozen=True, kw_only=True)
class RandomWalk(Noise):
    """Wandering drift: a Gaussian random walk with this sd per step, 0 at the first point."""

    step_sd: float

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """One walk along the last axis."""
        strides = self.step_sd * rng.standard_normal(shape)
        strides[..., 0] = 0.0
        return np.cumsum(strides, axis=-1)


#: The noise of the issue's tables: 2 % from run to run.
PLAIN: Final = Gaussian(sd=0.02)

#: Level of a series where none is asked for, operations per second.
LEVEL: Final = 1000.0


def steps_log(n: int, steps: Mapping[int, float]) -> Array:
    """Log level of n points: a step {60: -0.04} lowers point 60 and all later ones by 0.04."""
    levels = np.zeros(n)
    for index, effect in steps.items():
        assert 0 <= index < n, "a step lies inside the series"
        levels[index:] += effect
    return levels


def history(
    rng: np.random.Generator,
    shape: Shape,
    *,
    noise: Noise = PLAIN,
    steps: Mapping[int, float] | None = None,
    level: float = LEVEL,
) -> Array:
    """One series, or an array of independent ones, in natural units.

    Args:
        rng: Where the noise comes from.
        shape: Number of points, or a shape whose last axis is points: (1000, 100) is 1,000 series.
        noise: What moves the points.
        steps: Index of the first point of a new level -> log ratio to the old one.
        level: Level before the first step, in natural units.
    """
    logs = noise.draw(rng, shape)
    logs = logs + steps_log(logs.shape[-1], steps or {})
    return level * np.exp(logs)
