"""Noise of a series, level by level: the runs of a baseline come in, a `NoiseModel` goes out.

The log of a sample is a level plus three independent noises: one per run (build, day, host), one
per start inside a run, one per slice inside a start. They are estimated by the unweighted-means
analysis of variance for unbalanced nested designs (Burdick & Graybill 1992; Searle, Casella &
McCulloch, Variance Components, 1992), which suits a level that is an
unweighted mean of starts, and shrunk towards a prior. Nothing here knows what was measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from detectors.errors import DataError
from detectors.samples import read_history

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from detectors.samples import Samples, Starts

#: Runs further than this many robust standard deviations from the median run are set aside.
#: Simulated share of Gaussian histories that lose one: below 1 % at up to twice the prior's noise,
#: far above it 8 % of histories of 5 runs and 2 % of 10. A spike of 10 % on a quiet workload goes.
OUTLIER_CUT = 6.0
#: With four runs or fewer the median deviation is no judge of the odd one out.
OUTLIER_RUNS_MIN = 5
#: Makes the median absolute deviation estimate a Gaussian standard deviation.
MAD_TO_SD = 1.4826
#: A component that the data put at zero or below keeps this share of its prior sd.
FLOOR_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class NoisePrior:
    """What is believed of a workload's noise before it has a history: sds of log values.

    The defaults describe sysbench microbenchmarks, where a rerun of one build has a sd of 0.7 to
    1.8 %: run and start together make 1.3 % here, and the mean of ten slices adds little. The
    weight is the spread of that noise over 131 groups of reruns, by Smyth's (2004) moments: 2.8
    degrees of freedom. See docs/statistics.md.
    """

    slice_sd: float = 0.010
    start_sd: float = 0.008
    run_sd: float = 0.010
    #: The prior counts as this many degrees of freedom at each level.
    df: float = 3.0

    def __post_init__(self) -> None:
        """Refuse a prior that would let noise be zero."""
        for name in ("slice_sd", "start_sd", "run_sd", "df"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise DataError(f"{name} of the noise prior is {value}; it has to be positive")


DEFAULT_PRIOR = NoisePrior()


@dataclass(frozen=True, kw_only=True)
class Shares:
    """How much of each variance is left in the mean squares of a design: its replication."""

    #: Of the start variance in the mean square of runs: mean of 1 / starts.
    start_in_run: float
    #: Of the slice variance in the mean square of runs.
    slice_in_run: float
    #: Of the slice variance in the mean square of starts: mean of 1 / slices.
    slice_in_start: float


@dataclass(frozen=True, kw_only=True)
class NoiseModel:
    """Standard deviations of log values by level; never zero."""

    #: Between slices of one start.
    slice_sd: float
    #: Between starts of one run.
    start_sd: float
    #: Between runs of the same code.
    run_sd: float
    #: Degrees of freedom of the mean square behind each, the prior's included.
    slice_df: float
    start_df: float
    run_df: float
    #: Replication of the history that this was estimated from.
    shares: Shares
    #: Positions in the history of the runs that count.
    used: tuple[int, ...]
    warnings: tuple[str, ...] = ()

    def variance(self, *, runs: float, starts: float, slices: float) -> tuple[float, float]:
        """A weighted sum of the three variances, and its degrees of freedom (Satterthwaite 1946).

        The estimates of the three components are correlated; the mean squares under them are not,
        so the degrees of freedom are taken from those.
        """
        run2, start2, slice2 = self.run_sd**2, self.start_sd**2, self.slice_sd**2
        total = runs * run2 + starts * start2 + slices * slice2
        shares = self.shares
        start_left = starts - runs * shares.start_in_run
        slice_left = slices - runs * shares.slice_in_run - start_left * shares.slice_in_start
        run_ms = run2 + shares.start_in_run * start2 + shares.slice_in_run * slice2
        start_ms = start2 + shares.slice_in_start * slice2
        spread = (
            (runs * run_ms) ** 2 / self.run_df
            + (start_left * start_ms) ** 2 / self.start_df
            + (slice_left * slice2) ** 2 / self.slice_df
        )
        return total, max(1.0, total**2 / spread)


def estimate_noise(history: Sequence[Samples], *, prior: NoisePrior = DEFAULT_PRIOR) -> NoiseModel:
    """The noise of a series, by level, from the runs of its baseline.

    Args:
        history: Runs, each a sequence of starts, each a 1-D sequence of slices in natural units.
            Ragged is fine; NaN marks a missing slice; empty starts and runs are left out.
        prior: Carries the levels that the history does not replicate.

    Raises:
        DataError: there is no slice at all, or a value is infinite, zero or negative.
    """
    return model_noise(read_history(history), prior=prior)


def model_noise(history: Mapping[int, Starts], *, prior: NoisePrior) -> NoiseModel:
    """As `estimate_noise`, of runs that were read already."""
    aside = _outlying(history, prior=prior)
    runs = [starts for position, starts in history.items() if position not in aside]
    slices = _MeanSquare.of_slices(runs)
    starts = _MeanSquare.of_starts(runs)
    levels = _MeanSquare.of_runs(runs)
    shares = _shares(runs)

    # Shrinkage acts on the mean squares, which are independent and chi-squared, from the bottom up,
    # so that each prior mean square is built from what is known of the levels below it.
    slice_ms = slices.shrunk(prior.slice_sd**2, prior.df)
    start_ms = starts.shrunk(prior.start_sd**2 + shares.slice_in_start * slice_ms, prior.df)
    start2 = max(start_ms - shares.slice_in_start * slice_ms, (FLOOR_SHARE * prior.start_sd) ** 2)
    below = shares.start_in_run * start2 + shares.slice_in_run * slice_ms
    run_ms = levels.shrunk(prior.run_sd**2 + below, prior.df)
    run2 = max(run_ms - below, (FLOOR_SHARE * prior.run_sd) ** 2)
    return NoiseModel(
        slice_sd=math.sqrt(slice_ms),
        start_sd=math.sqrt(start2),
        run_sd=math.sqrt(run2),
        slice_df=prior.df + slices.df,
        start_df=prior.df + starts.df,
        run_df=prior.df + levels.df,
        shares=shares,
        used=tuple(position for position in history if position not in aside),
        warnings=(*aside.values(), *_unreplicated(levels=levels, starts=starts, slices=slices)),
    )


@dataclass(frozen=True, kw_only=True)
class _MeanSquare:
    """A sum of squares with its degrees of freedom, which may be none."""

    sum: float
    df: int

    @classmethod
    def of_slices(cls, runs: Sequence[Starts]) -> _MeanSquare:
        return cls(
            sum=sum(float(np.sum(run.scatter)) for run in runs),
            df=sum(int(np.sum(run.counts - 1)) for run in runs),
        )

    @classmethod
    def of_starts(cls, runs: Sequence[Starts]) -> _MeanSquare:
        return cls(
            sum=sum(float(np.sum((run.levels - run.level) ** 2)) for run in runs),
            df=sum(run.levels.size - 1 for run in runs),
        )

    @classmethod
    def of_runs(cls, runs: Sequence[Starts]) -> _MeanSquare:
        levels = np.array([run.level for run in runs])
        return cls(sum=float(np.sum((levels - np.mean(levels)) ** 2)), df=len(runs) - 1)

    def shrunk(self, prior_ms: float, prior_df: float) -> float:
        """Mean of the posterior scale: the scaled inverse chi-squared prior of Smyth (2004)."""
        return (prior_df * prior_ms + self.sum) / (prior_df + self.df)


def _shares(runs: Sequence[Starts]) -> Shares:
    # E[mean square of runs] holds each run's own share with equal weight, because
    # (1 - 1/n) / (n - 1) = 1/n; the same step inside a run gives the weights of its starts.
    weight = sum(run.counts.size - 1 for run in runs)
    pooled = sum((1 - 1 / run.counts.size) * float(np.sum(1.0 / run.counts)) for run in runs)
    unreplicated = float(np.mean(np.concatenate([1.0 / run.counts for run in runs])))
    return Shares(
        start_in_run=float(np.mean([1.0 / run.counts.size for run in runs])),
        slice_in_run=float(np.mean([run.slice_share for run in runs])),
        slice_in_start=pooled / weight if weight else unreplicated,
    )


def _outlying(history: Mapping[int, Starts], *, prior: NoisePrior) -> dict[int, str]:
    """Runs to set aside, by position, each with the warning that says so."""
    if len(history) < OUTLIER_RUNS_MIN:
        return {}
    shares = _shares(tuple(history.values()))
    expected = math.sqrt(
        prior.run_sd**2
        + shares.start_in_run * prior.start_sd**2
        + shares.slice_in_run * prior.slice_sd**2
    )
    levels = np.array([run.level for run in history.values()])
    distances = levels - np.median(levels)
    # The prior keeps a few runs that happen to agree from making outliers of their neighbours.
    scale = max(expected, MAD_TO_SD * float(np.median(np.abs(distances))))
    return {
        position: f"run {position} of the history lies {math.expm1(distance):+.1%} from the median "
        f"run, {abs(distance) / scale:.0f} robust standard deviations, and is set aside"
        for position, distance in zip(history, distances, strict=True)
        if abs(distance) > OUTLIER_CUT * scale
    }


def _unreplicated(
    *, levels: _MeanSquare, starts: _MeanSquare, slices: _MeanSquare
) -> tuple[str, ...]:
    warnings = []
    if not levels.df:
        warnings.append("one run in the history: the noise between runs is the prior's alone")
    if not starts.df:
        warnings.append(
            "no run of the history has two starts: the noise between starts is the prior's alone"
        )
    if not slices.df:
        warnings.append(
            "no start of the history has two slices: the noise between slices is the prior's alone"
        )
    return tuple(warnings)
