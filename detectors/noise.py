"""Noise of a series, level by level: the runs of a baseline come in, a `NoiseModel` goes out.

The log of a sample is a level plus three independent noises: one per run (build, day, host), one
per start inside a run, one per slice inside a start. They are estimated by the unweighted-means
analysis of variance for unbalanced nested designs (Burdick & Graybill 1992; Searle, Casella &
McCulloch, Variance Components, 1992), which suits a level that is an unweighted mean of starts, and
shrunk towards a prior. Runs that resemble their neighbours count for less, and runs of two modes
are named. Nothing here knows what was measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from detectors.dependence import CORRELATION_MAX, dependence, lag_one
from detectors.errors import DataError
from detectors.modes import find_modes
from detectors.samples import read_history

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from detectors.modes import Modes
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
#: Autocorrelation at which a warning says that the runs are not independent.
CORRELATION_WARNED = 0.3
#: A history of fewer runs says little about the noise between them.
RUNS_ADVISED = 5
#: Variance between starts, over the prior's, at which a short history gets a warning.
RESTLESS_WARNED = 4.0


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
class MeanSquare:
    """A sum of squares with its degrees of freedom, which may be none."""

    sum: float
    df: float

    def shrunk(self, prior_ms: float, prior_df: float) -> float:
        """Mean of the posterior scale: the scaled inverse chi-squared prior of Smyth (2004)."""
        return (prior_df * prior_ms + self.sum) / (prior_df + self.df)


@dataclass(frozen=True, kw_only=True)
class MeanSquares:
    """What a history says by itself, before any prior, from the bottom up."""

    #: Of slices about their start.
    slices: MeanSquare
    #: Of the levels of starts about their run.
    starts: MeanSquare
    #: Of the levels of runs about the baseline.
    runs: MeanSquare


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
    #: The same without the prior.
    squares: MeanSquares
    #: Lag-1 correlation of the noise between runs, from 0 to 0.9; 0 with fewer than ten runs.
    autocorrelation: float = 0.0
    #: Where the runs have two modes instead of one level, in natural logs.
    modes: Modes | None = None
    warnings: tuple[str, ...] = ()

    @property
    def multimodal(self) -> bool:
        """Whether the runs fall into two groups."""
        return self.modes is not None

    @property
    def mean_share(self) -> float:
        """Share of the variance between runs that is left in the mean of the runs that count."""
        runs = len(self.used)
        return dependence(self.autocorrelation, runs).mean_inflation / runs

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
    slices, starts = _slice_squares(runs), _start_squares(runs)
    levels = np.array([run.level for run in runs])
    shares = _shares(runs)

    # Shrinkage acts on the mean squares, which are independent and chi-squared, from the bottom up,
    # so that each prior mean square is built from what is known of the levels below it.
    slice_ms = slices.shrunk(prior.slice_sd**2, prior.df)
    start_ms = starts.shrunk(prior.start_sd**2 + shares.slice_in_start * slice_ms, prior.df)
    start2 = max(start_ms - shares.slice_in_start * slice_ms, (FLOOR_SHARE * prior.start_sd) ** 2)
    # Noisy starts go with noisy runs: over 181 series of a database the two sds have a rank
    # correlation of .94 and grow in proportion. The converse is not relied on: a quiet workload can
    # still depend on the layout of each build.
    restless = max(1.0, start2 / prior.start_sd**2)
    below = shares.start_in_run * start2 + shares.slice_in_run * slice_ms
    squares, rho = _run_squares(levels, below=below)
    run_ms = squares.shrunk(restless * prior.run_sd**2 + below, prior.df)
    run2 = max(run_ms - below, (FLOOR_SHARE * prior.run_sd) ** 2)
    modes = find_modes(levels)
    return NoiseModel(
        slice_sd=math.sqrt(slice_ms),
        start_sd=math.sqrt(start2),
        run_sd=math.sqrt(run2),
        slice_df=prior.df + slices.df,
        start_df=prior.df + starts.df,
        run_df=prior.df + squares.df,
        shares=shares,
        used=tuple(position for position in history if position not in aside),
        squares=MeanSquares(slices=slices, starts=starts, runs=squares),
        autocorrelation=rho,
        modes=modes,
        warnings=(
            *aside.values(),
            *_unreplicated(runs=levels.size, starts=starts, slices=slices),
            *_unusual(runs=levels.size, restless=restless, rho=rho, modes=modes),
        ),
    )


def _slice_squares(runs: Sequence[Starts]) -> MeanSquare:
    return MeanSquare(
        sum=sum(run.slice_squares for run in runs), df=sum(run.slice_df for run in runs)
    )


def _start_squares(runs: Sequence[Starts]) -> MeanSquare:
    return MeanSquare(
        sum=sum(run.start_squares for run in runs), df=sum(run.levels.size - 1 for run in runs)
    )


def _run_squares(levels: NDArray[np.float64], *, below: float) -> tuple[MeanSquare, float]:
    """Mean square of runs as if they were independent, and the correlation of their noise.

    Only the noise between runs carries over from one to the next; the starts below it are drawn
    anew, and hide part of the correlation.
    """
    n = levels.size
    plain = MeanSquare(sum=float(np.sum((levels - np.mean(levels)) ** 2)), df=n - 1)
    seen = lag_one(levels)
    between = plain.sum - plain.df * below
    if not seen > 0 or not between > 0:
        return plain, 0.0
    rho = min(seen * plain.sum / between, CORRELATION_MAX)
    worth = dependence(rho, n)
    # Runs that resemble each other scatter too little about their own mean.
    whole = plain.df * below + between / worth.variance_bias
    return MeanSquare(sum=whole * worth.df / plain.df, df=worth.df), rho


def _shares(runs: Sequence[Starts]) -> Shares:
    # E[mean square of runs] holds each run's own share with equal weight, because
    # (1 - 1/n) / (n - 1) = 1/n; the same step inside a run gives the weights of its starts.
    weight = sum(run.counts.size - 1 for run in runs)
    pooled = sum((1 - 1 / run.counts.size) * run.shares for run in runs)
    return Shares(
        start_in_run=float(np.mean([1.0 / run.counts.size for run in runs])),
        slice_in_run=float(np.mean([run.slice_share for run in runs])),
        slice_in_start=pooled / weight if weight else _unreplicated_share(runs),
    )


def _unreplicated_share(runs: Sequence[Starts]) -> float:
    return float(np.mean(np.concatenate([1.0 / run.counts for run in runs])))


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


def _unreplicated(*, runs: int, starts: MeanSquare, slices: MeanSquare) -> tuple[str, ...]:
    warnings = []
    if runs == 1:
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


def _unusual(*, runs: int, restless: float, rho: float, modes: Modes | None) -> tuple[str, ...]:
    warnings = []
    if runs < RUNS_ADVISED and restless >= RESTLESS_WARNED:
        warnings.append(
            f"starts are {math.sqrt(restless):.1f} times as noisy as expected and the history is "
            f"short ({runs} of {RUNS_ADVISED} runs): false alarms are more likely than stated"
        )
    if rho >= CORRELATION_WARNED:
        warnings.append(f"runs of the history resemble their neighbours: correlation {rho:.2f}")
    if modes is not None:
        warnings.append(
            f"runs of the history have two modes {math.expm1(modes.high - modes.low):.1%} apart, "
            f"the higher with {modes.share_high:.0%} of the runs"
        )
    return tuple(warnings)
