"""Noise that the workloads of one start, or of one run, have in common.

Tables of logs, (workloads, starts) or (workloads, runs), come in; how far whole columns move
together goes out, beside how far they would seem to by the noise of the single workloads alone. All
locations over workloads are trimmed means, so that a few wild workloads are not a common move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from detectors.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Share of workloads trimmed at each end of a mean: Tukey & McLaughlin (1963); a fifth is Wilcox's
#: advice (Introduction to Robust Estimation and Hypothesis Testing, section 3.3) and costs 4 % of
#: the precision under Gaussian noise.
TRIM = 0.2
#: A start says how the host was only if at least this share of the workloads ran in it.
COLUMN_SHARE_MIN = 0.5
#: Common moves of more than this share of the expected mean square are not vouched for by a prior.
#: Chosen together with the prior and FADING among 54 such rules: of those whose type I error at 5 %
#: stays within .3 % of it with any common noise, and that find 1 % in 95 % of quiet suites of three
#: starts, the one with the largest power at 1 % (docs/statistics.md).
SURPRISE = 0.5
#: As SURPRISE, for what the fork's own history says: its noise is known, a prior's is a guess.
HISTORY_SURPRISE = 1.2
#: How fast the belief's degrees of freedom fade once it is surprised: with this power.
FADING = 4
#: However long the history, it counts as at most this many: its starts were measured on other days.
HISTORY_DF_MAX = 4.0


@dataclass(frozen=True, kw_only=True)
class CommonNoise:
    """What is believed of the noise that workloads share: a log sd, worth so many df."""

    sd: float
    df: float
    #: Up to this times the expected mean square the belief stands.
    surprise: float = SURPRISE

    def __post_init__(self) -> None:
        """Refuse a belief that would be certainty."""
        for name in ("sd", "df", "surprise"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise DataError(f"{name} of the common noise is {value}; it has to be positive")


#: Of the difference of two starts in alternation. Not alternated, such differences share .39 and
#: .53 % where sysbench suites of 33 workloads were rerun weeks apart on two quiet hosts, and .47 %
#: where suites of 7 db_bench tests were repeated on one instance (44 sets that repeat to 1.5 %).
PAIR_COMMON = CommonNoise(sd=0.004, df=3.0)
#: Of one run against its history. The same data: .28, .37 and .33 % for each run; .86 % IO-bound.
RUN_COMMON = CommonNoise(sd=0.004, df=3.0)


@dataclass(frozen=True, kw_only=True)
class Moves:
    """How far whole columns of a table moved together."""

    #: Mean square of the columns' moves; 0 where there are fewer than two columns.
    mean_square: float
    df: float
    #: What the mean square would be by the workloads' own noise alone.
    own: float
    own_df: float


@dataclass(frozen=True, kw_only=True)
class Common:
    """The mean square of common moves after moderation; `own` of it is no common noise."""

    mean_square: float
    df: float
    own: float
    own_df: float


def trimmed(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Trimmed mean, its variance from the winsorised values, and its degrees of freedom."""
    ordered = np.sort(values)
    cut = int(TRIM * ordered.size)
    kept = ordered[cut : ordered.size - cut]
    if kept.size < 2:  # noqa: PLR2004  one value has no variance
        return float(np.mean(kept)), 0.0, 0.0
    winsorised = np.clip(ordered, kept[0], kept[-1])
    scatter = float(np.var(winsorised, ddof=1)) * (ordered.size - 1)
    df = kept.size - 1
    return float(np.mean(kept)), scatter / (kept.size * df), float(df)


def common_moves(table: NDArray[np.float64]) -> Moves:
    """How the columns of a table (workloads, columns) moved, each workload about its own mean."""
    none = Moves(mean_square=0.0, df=0.0, own=0.0, own_df=0.0)
    if table.size == 0:
        return none
    there = np.isfinite(table)
    columns = np.flatnonzero(np.mean(there, axis=0) >= COLUMN_SHARE_MIN)
    # A workload with one value is its own mean: it would vouch for a column that did not move.
    rows = np.flatnonzero(np.sum(there[:, columns], axis=1) > 1)
    if columns.size < 2 or rows.size < 2:  # noqa: PLR2004  nothing to compare
        return none
    part = table[np.ix_(rows, columns)]
    rest = part - np.nanmean(part, axis=1, keepdims=True)
    located = [trimmed(column[np.isfinite(column)]) for column in rest.T]
    moves = np.array([centre for centre, _, _ in located])
    df = columns.size - 1
    # Taking each workload's own mean off took this share of its noise with it.
    own = float(np.mean([variance for _, variance, _ in located])) * columns.size / df
    return Moves(
        mean_square=float(np.sum((moves - np.mean(moves)) ** 2)) / df,
        df=float(df),
        own=own,
        own_df=max(1.0, float(np.mean([freedom for _, _, freedom in located])) * df),
    )


def moderated(moves: Moves, belief: CommonNoise) -> Common:
    """The moves' mean square shrunk towards what was believed (Smyth 2004), never downwards.

    Where the columns moved more than believed they speak for themselves, and the belief's degrees
    of freedom fade: a quiet past must not vouch for a noisy day.
    """
    believed = belief.sd**2 + moves.own
    weight = belief.df + moves.df
    mean_square = (belief.df * believed + moves.df * moves.mean_square) / weight
    df = weight
    surprising = belief.surprise * believed
    if moves.mean_square > surprising:
        mean_square = max(mean_square, moves.mean_square)
        df = moves.df + belief.df * (surprising / moves.mean_square) ** FADING
    return Common(mean_square=mean_square, df=df, own=moves.own, own_df=moves.own_df)


def learn_pair_noise(
    runs: Sequence[NDArray[np.float64]], *, prior: CommonNoise = PAIR_COMMON
) -> CommonNoise:
    """What past runs of one artifact each say of the noise in a difference of two starts.

    Args:
        runs: Log levels, each (workloads, starts); NaN where a start has none.
        prior: Belief before any run.
    """
    squares, own, df = 0.0, 0.0, 0.0
    for run in runs:
        moves = common_moves(run)
        squares += moves.df * moves.mean_square
        own += moves.df * moves.own
        df += moves.df
    # Both sides of a pair have such noise; alternation may leave less of it, never more.
    found = 2.0 * max(squares - own, 0.0)
    weight = prior.df + df
    return CommonNoise(
        sd=math.sqrt((prior.df * prior.sd**2 + found) / weight),
        df=min(weight, max(prior.df, HISTORY_DF_MAX)),
        surprise=HISTORY_SURPRISE if df else prior.surprise,
    )
