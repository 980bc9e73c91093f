"""Hierarchical noise for the tests: runs of starts of slices in natural units, from a generator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Noise:
    """True sds of log values; the defaults are those of the prior."""

    run_sd: float = 0.010
    start_sd: float = 0.008
    slice_sd: float = 0.010
    #: Degrees of freedom of Student noise of the same sd; None is Gaussian.
    tails: float | None = None

    def times(self, factor: float) -> Noise:
        return Noise(
            run_sd=self.run_sd * factor,
            start_sd=self.start_sd * factor,
            slice_sd=self.slice_sd * factor,
            tails=self.tails,
        )

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
        if self.tails is None:
            return rng.standard_normal(shape)
        return rng.standard_t(self.tails, shape) / np.sqrt(self.tails / (self.tails - 2))

    def starts(
        self, rng: np.random.Generator, starts: int, slices: int = 5, *, shift: float = 0.0
    ) -> NDArray[np.float64]:
        """Starts of one artifact: no noise between runs, as in a pair."""
        logs = shift + self.start_sd * self.draw(rng, (starts, 1))
        return 1000.0 * np.exp(logs + self.slice_sd * self.draw(rng, (starts, slices)))

    def run(
        self, rng: np.random.Generator, starts: int, slices: int = 5, *, shift: float = 0.0
    ) -> NDArray[np.float64]:
        """One run of a series."""
        shift += self.run_sd * float(self.draw(rng, (1,))[0])
        return self.starts(rng, starts, slices, shift=shift)

    def history(
        self, rng: np.random.Generator, runs: int, starts: int, slices: int = 5
    ) -> list[NDArray[np.float64]]:
        return [self.run(rng, starts, slices) for _ in range(runs)]
