"""The suite as a whole: did most of its workloads move together?

Paired log ratios of many workloads and a few starts come in, one `SuiteChange` goes out. A shift of
1 % that no single workload can show is plain over forty of them, unless they share their noise: all
workloads of a start are served by one process on one host. So the noise that they share and the
noise of each workload are estimated apart. Nothing here knows what a workload is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from detectors.change import Change
from detectors.errors import DataError
from detectors.evidence import check_confidence, no_evidence, t_change
from detectors.noise import MAD_TO_SD, OUTLIER_CUT, OUTLIER_RUNS_MIN
from detectors.samples import read_starts
from detectors.shared_noise import (
    PAIR_COMMON,
    RUN_COMMON,
    common_moves,
    moderated,
    trimmed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from detectors.samples import Samples
    from detectors.shared_noise import Common, CommonNoise

PAIRED_METHOD = "suite-paired-t 1"
RUNS_METHOD = "suite-predictive-t 1"
CHANGES_METHOD = "suite-changes-t 1"
#: Share of a workload's gate that a shift of the whole suite has to reach to matter: .5 % at the
#: default gate of 5 %, half of the 1 % that a suite is meant to show, since an estimate of a shift
#: exactly at a limit falls below it half of the time.
GATE_SHARE = 0.1
#: One workload is not a suite: its own change says it all.
WORKLOADS_MIN = 2
#: With fewer nothing is trimmed, and one odd workload can be the whole shift.
WORKLOADS_ADVISED = 5


@dataclass(frozen=True, kw_only=True)
class SuiteChange(Change):
    """A change of the typical workload: the effect is a trimmed mean over workloads."""

    n_workloads: int
    #: Workloads whose own effect is below zero, and above it.
    n_fell: int
    n_rose: int
    #: Sd of the noise that all workloads of one start (of one run, against a history) share, after
    #: moderation by what was believed of it.
    common_sd: float
    #: Sd of the workloads' own shifts about the common one, their noise taken off; 0 where the
    #: noise explains their spread, or where there is nothing to tell noise by.
    spread_sd: float


def paired_differences(pairs: Sequence[tuple[Samples, Samples]]) -> NDArray[np.float64]:
    """Log ratios (workloads, starts) for `pool`, from the samples of both sides of each workload.

    Row i of both sides was measured together; a start that one side lacks is NaN.

    Raises:
        DataError: A value is infinite, zero or negative.
    """
    levels = [
        tuple(read_starts(side, what=f"workload {place}").levels for side in pair)
        for place, pair in enumerate(pairs)
    ]
    width = max((side.size for pair in levels for side in pair), default=0)
    table = np.full((len(levels), width), np.nan)
    for row, (baseline, candidate) in zip(table, levels, strict=True):
        n_pairs = min(baseline.size, candidate.size)
        row[:n_pairs] = candidate[:n_pairs] - baseline[:n_pairs]
    return table


def pool(
    differences: ArrayLike, *, confidence: float = 0.95, common: CommonNoise = PAIR_COMMON
) -> SuiteChange:
    """The common shift of a suite that was measured in pairs of starts.

    Args:
        differences: Log ratios, candidate over baseline, shape (workloads, starts); NaN is a
            missing pair. One column is answered with the noise that `common` says, and a warning.
        confidence: Coverage of the interval.
        common: What is believed of the noise that the workloads of one pair of starts share.

    Raises:
        DataError: Not two-dimensional, no number at all, an infinite one, or confidence is outside
            (0, 1).
    """
    check_confidence(confidence)
    table = _numbers(differences, dimensions=2, what="differences")
    there = np.isfinite(table)
    if not np.any(there):
        raise DataError("there is no difference at all: at least one measured pair is needed")
    table = table[np.any(there, axis=1)][:, np.any(there, axis=0)]
    share = _share(table)
    moves = common_moves(table)
    n_starts = table.shape[1]
    warnings = () if moves.df else ("one start: the noise that workloads share is not replicated",)
    return _suite_change(
        np.nanmean(table, axis=1),
        shared=moderated(moves, common),
        share=share,
        n=(n_starts, n_starts),
        confidence=confidence,
        method=PAIRED_METHOD,
        warnings=warnings,
    )


def pool_run(
    history: ArrayLike,
    candidate: ArrayLike,
    *,
    confidence: float = 0.95,
    common: CommonNoise = RUN_COMMON,
) -> SuiteChange:
    """The common shift of one new run of a suite against the runs of its baseline.

    Args:
        history: Log levels, shape (runs, workloads); NaN where a run has no level.
        candidate: Log levels of the new run, shape (workloads,).
        confidence: Coverage of the interval.
        common: What is believed of the noise that the workloads of one run share.

    Raises:
        DataError: Wrong shapes, no workload with both history and candidate, an infinite number,
            or confidence is outside (0, 1).
    """
    check_confidence(confidence)
    past = _numbers(history, dimensions=2, what="history")
    new = _numbers(candidate, dimensions=1, what="candidate")
    if past.shape[1] != new.size:
        raise DataError(f"the history has {past.shape[1]} workloads, the candidate {new.size}")
    usable = np.isfinite(new) & np.any(np.isfinite(past), axis=0)
    if not np.any(usable):
        raise DataError("no workload has both a history and a new level")
    kept, warnings = _kept_runs(past[:, usable].T, common=common)
    table = past[np.ix_(kept, np.flatnonzero(usable))].T
    seen = np.any(np.isfinite(table), axis=1)
    table, new = table[seen], new[usable][seen]
    moves = common_moves(table)
    n_runs = table.shape[1]
    if not moves.df:
        warnings += ("one run in the history: the noise that workloads share is not replicated",)
    return _suite_change(
        new - np.nanmean(table, axis=1),
        shared=moderated(moves, common),
        share=1.0 + _share(table),
        n=(n_runs, 1),
        confidence=confidence,
        method=RUNS_METHOD,
        warnings=warnings,
    )


def pool_changes(
    changes: Sequence[Change], *, common: CommonNoise, confidence: float = 0.95
) -> SuiteChange:
    """The common shift where only the changes of single workloads were kept.

    Args:
        changes: One for each workload.
        common: Noise that all these effects share; their number of starts or runs is in it already.
        confidence: Coverage of the interval.

    Raises:
        DataError: No change at all, or confidence is outside (0, 1).
    """
    check_confidence(confidence)
    if not changes:
        raise DataError("no change to pool: at least one workload is needed")
    nothing = common_moves(np.empty((0, 0)))
    return _suite_change(
        np.array([change.effect for change in changes]),
        shared=moderated(nothing, common),
        share=1.0,
        n=(min(c.n_baseline for c in changes), min(c.n_candidate for c in changes)),
        confidence=confidence,
        method=CHANGES_METHOD,
        warnings=("the noise that workloads share is as believed, not as measured",),
    )


def _suite_change(
    effects: NDArray[np.float64],
    *,
    shared: Common,
    share: float,
    n: tuple[int, int],
    confidence: float,
    method: str,
    warnings: tuple[str, ...],
) -> SuiteChange:
    """The trimmed mean of the effects, with both noises in its variance."""
    n_workloads = effects.size
    centre, own, own_df = trimmed(effects)
    if n_workloads < WORKLOADS_ADVISED:
        warnings += (
            f"workloads: {n_workloads}; at least {WORKLOADS_ADVISED} are advised for a suite",
        )
    # The workloads' own noise is in `own`, and in the mean square of the common moves once more;
    # a difference below zero is none.
    variance = share * max(shared.mean_square - shared.own, 0.0) + own
    if n_workloads < WORKLOADS_MIN:
        change = no_evidence(
            effect=centre,
            confidence=confidence,
            n_baseline=n[0],
            n_candidate=n[1],
            method=method,
            warnings=warnings,
        )
    else:
        # Satterthwaite (1946), on mean squares that are independent.
        spread = (share * shared.mean_square) ** 2 / shared.df + own**2 / own_df
        if shared.own_df:
            spread += (share * shared.own) ** 2 / shared.own_df
        change = t_change(
            effect=centre,
            variance=variance,
            df=max(1.0, variance**2 / spread),
            confidence=confidence,
            n_baseline=n[0],
            n_candidate=n[1],
            method=method,
            warnings=warnings,
        )
    noise = share * shared.own if shared.own_df else own
    return SuiteChange(
        **{field.name: getattr(change, field.name) for field in fields(Change)},
        n_workloads=n_workloads,
        n_fell=int(np.sum(effects < 0)),
        n_rose=int(np.sum(effects > 0)),
        common_sd=float(np.sqrt(max(shared.mean_square - shared.own, 0.0))),
        spread_sd=float(np.sqrt(n_workloads * max(own - noise, 0.0))),
    )


def _numbers(values: ArrayLike, *, dimensions: int, what: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: every entry has to be a number or NaN ({error})") from error
    if array.ndim != dimensions:
        raise DataError(f"{what} has {array.ndim} dimensions; it has to have {dimensions}")
    infinite = np.argwhere(np.isinf(array))
    if infinite.size:
        place = tuple(int(i) for i in infinite[0])
        raise DataError(f"{what} is infinite at {place}; NaN marks what is missing")
    return array


def _share(table: NDArray[np.float64]) -> float:
    """How much of one column's common noise is left in the mean: 1 / columns where none is missing.

    Every row has at least one number.
    """
    there = np.isfinite(table)
    weights = there / np.sum(there, axis=1, keepdims=True)
    return float(np.sum(np.mean(weights, axis=0) ** 2))


def _kept_runs(
    table: NDArray[np.float64], *, common: CommonNoise
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Runs (columns) to count, and warnings on those set aside: the whole suite was off in them."""
    columns = np.flatnonzero(np.any(np.isfinite(table), axis=0))
    if columns.size < OUTLIER_RUNS_MIN:
        return columns, ()
    rest = table - np.nanmedian(table, axis=1, keepdims=True)
    moves = np.array([np.nanmedian(rest[:, column]) for column in columns])
    moves = moves - np.median(moves)
    scale = max(common.sd, MAD_TO_SD * float(np.median(np.abs(moves))))
    aside = np.abs(moves) > OUTLIER_CUT * scale
    return columns[~aside], tuple(
        f"run {column} of the history is set aside: its whole suite is {np.expm1(move):+.1%} off"
        for column, move in zip(columns[aside], moves[aside], strict=True)
    )
