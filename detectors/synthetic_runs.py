"""Synthetic runs: slices within starts within runs, pairs measured in alternation, whole suites.

Arrays in natural units come out, their last two axes (starts, slices). Each level of noise has its
own sd; what the two sides of a pair share (the host's drift) and what the workloads of a start
share (one server process) can be added. The generator is the caller's and comes first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from detectors.synthetic import LEVEL

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Levels:
    """True sds of the logs, level by level; the defaults are the prior of `detectors.noise`."""

    run_sd: float = 0.010
    start_sd: float = 0.008
    slice_sd: float = 0.010
    #: Noise that all workloads of one start of one side share.
    common_start_sd: float = 0.0
    #: Noise that both sides of a pair share in one start: the host's drift.
    host_sd: float = 0.0
    #: Degrees of freedom of Student noise with the same sds; None is Gaussian.
    tails: float | None = None

    def unit(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Noise of sd 1."""
        if self.tails is None:
            return rng.standard_normal(shape)
        return rng.standard_t(self.tails, shape) * math.sqrt((self.tails - 2.0) / self.tails)


#: Noise as the prior of `detectors.noise` believes it.
USUAL: Final = Levels()


def runs(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    *,
    noise: Levels = USUAL,
    effects: ArrayLike = 0.0,
    level: float = LEVEL,
) -> Array:
    """Runs of one series, of shape (runs, starts, slices).

    `effects` are log ratios to `level`, one for all runs or one per run: a step is an array.
    """
    n_runs, n_starts, n_slices = shape
    logs = noise.run_sd * noise.unit(rng, (n_runs, 1, 1))
    logs = logs + noise.start_sd * noise.unit(rng, (n_runs, n_starts, 1))
    logs = logs + noise.slice_sd * noise.unit(rng, (n_runs, n_starts, n_slices))
    moved = np.broadcast_to(np.asarray(effects, dtype=np.float64), (n_runs,))
    return level * np.exp(logs + moved[:, None, None])


def pair(
    rng: np.random.Generator,
    shape: tuple[int, int],
    *,
    noise: Levels = USUAL,
    effect: float = 0.0,
    level: float = LEVEL,
) -> tuple[Array, Array]:
    """Baseline and candidate of one workload, each (starts, slices), measured in alternation."""
    baseline, candidate = suite(rng, (1, *shape), noise=noise, effects=effect, level=level)
    return baseline[0], candidate[0]


def suite(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    *,
    noise: Levels = USUAL,
    effects: ArrayLike = 0.0,
    level: float = LEVEL,
) -> tuple[Array, Array]:
    """Baseline and candidate of a whole suite, each (workloads, starts, slices).

    Noise between runs plays no part: it moves both sides alike. `effects` are log ratios, one for
    all workloads or one per workload.
    """
    n_workloads, n_starts, n_slices = shape
    moved = np.broadcast_to(np.asarray(effects, dtype=np.float64), (n_workloads,))
    host = noise.host_sd * noise.unit(rng, (1, n_starts, 1))
    sides = []
    for shift in (np.zeros(n_workloads), moved):
        logs = host + noise.common_start_sd * noise.unit(rng, (1, n_starts, 1))
        logs = logs + noise.start_sd * noise.unit(rng, (n_workloads, n_starts, 1))
        logs = logs + noise.slice_sd * noise.unit(rng, (n_workloads, n_starts, n_slices))
        sides.append(level * np.exp(logs + shift[:, None, None]))
    return sides[0], sides[1]
