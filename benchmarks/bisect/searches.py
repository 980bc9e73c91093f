"""The searches that are compared: ours, git bisect with repeats, and Pinpoint's rule.

A history comes in; what was measured, built and named goes out. Ours is told noise and sizes by
nobody; the others are told the true threshold or the true size, which nobody has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from benchmarks.bisect.histories import BUILD_MINUTES, MEASURE_MINUTES, SD
from bisects.costs import BUILD_SHARE
from detectors.bisection import Bisection

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.bisect.histories import History

STOP: Final = 0.95
LIMIT: Final = 1000
#: Starts of the pair that confirmed the alert; they are paid for before a bisect begins.
ALERT_STARTS: Final = 6
#: Runs of each commit, doubled while it is not known whether two differ (field.md, 1.11).
PINPOINT_RUNS: Final = (10, 20, 40, 80, 160)
DIFFERENT_P: Final = 0.01
#: Simulated comparisons for the p-value above which two commits are the same.
SAME_TRIALS: Final = 1500


@dataclass(frozen=True, kw_only=True)
class Found:
    """How a search ended."""

    measurements: int
    builds: int
    #: Commits named, 0 for "nothing changed"; empty where the search gave up.
    named: frozenset[int]
    minutes: float
    #: Probability that the search gives what it names; nan where it gives none.
    said: float = math.nan


class _Bench:
    """Counts what a search measures and builds."""

    def __init__(self, history: History, rng: np.random.Generator) -> None:
        self.history = history
        self._rng = rng
        self.measurements = 0
        self.built: set[int] = set()

    def builds(self, commit: int) -> bool:
        """Build a commit unless it was; return whether that works."""
        self.built.add(commit)
        return not self.history.broken[commit]

    def measure(self, commit: int) -> float:
        """Return one measurement."""
        self.measurements += 1
        return self.history.value(commit, self._rng)

    def found(self, named: frozenset[int], *, said: float = math.nan) -> Found:
        """Return how it ended."""
        builds = 0 if self.history.kind.cached else len(self.built)
        minutes = self.measurements * MEASURE_MINUTES + builds * BUILD_MINUTES
        return Found(
            measurements=self.measurements, builds=builds, named=named, minutes=minutes, said=said
        )


def ours(history: History, rng: np.random.Generator, *, after_alert: bool, anchored: bool) -> Found:
    """Search as `forkwatch bisect` does.

    Args:
        history: Where.
        rng: For the measurements.
        after_alert: With the starts of the confirming pair, which are not counted.
        anchored: Beside the good end's artifact, whose level is then known.
    """
    bench = _Bench(history, rng)
    last = history.kind.commits - 1
    confirmed = [history.value(last, rng) for _ in range(ALERT_STARTS)] if after_alert else []
    search = Bisection(
        history.kind.commits,
        prior=history.weights,
        stop=STOP,
        limit=LIMIT,
        anchored=anchored,
        costs=_costs(history, built=bench.built),
    )
    for value in confirmed:
        search.record(last, value)
    while not search.done:
        commit = search.select()
        if not bench.builds(commit):
            search.skip(commit)
            continue
        search.set_cost(commit, MEASURE_MINUTES)
        search.record(commit, bench.measure(commit))
    # The good end's artifact stands beside every measurement.
    bench.built.add(0)
    if search.inconclusive:
        return bench.found(frozenset())
    named = search.culprits()
    return bench.found(frozenset(named), said=float(search.posterior[list(named)].sum()))


def git_bisect(history: History, rng: np.random.Generator, *, repeats: int) -> Found:
    """Halve the range by the mean of a few measurements, against the true threshold."""
    bench = _Bench(history, rng)
    good, bad = 0, history.kind.commits - 1
    while bad - good > 1:
        middle = _middle(bench, good, bad)
        if middle is None:
            break
        mean = float(np.mean([bench.measure(middle) for _ in range(repeats)]))
        slow = mean * np.sign(history.step) > SD * abs(history.step) / 2
        good, bad = (good, middle) if slow else (middle, bad)
    return bench.found(frozenset(range(good + 1, bad + 1)))


class Pinpoint:
    """Pinpoint's rule: compare two commits, doubling the runs until they differ or do not.

    Its tables of p-values are made anew by simulation for the size that it is told, so that two
    commits that differ by it are called the same in one of a hundred comparisons.
    """

    def __init__(self, size: float, rng: np.random.Generator) -> None:
        self._same_above = {}
        for runs in PINPOINT_RUNS:
            ps = [
                _p(rng.standard_normal(runs), size + rng.standard_normal(runs))
                for _ in range(SAME_TRIALS if runs < PINPOINT_RUNS[2] else SAME_TRIALS // 5)
            ]
            self._same_above[runs] = max(float(np.quantile(ps, 0.99)), DIFFERENT_P)

    def search(self, history: History, rng: np.random.Generator) -> Found:
        """Halve the range between two commits that differ until they are neighbours."""
        bench = _Bench(history, rng)
        values: dict[int, list[float]] = {}
        good, bad = 0, history.kind.commits - 1
        if not self._differ(bench, values, good, bad):
            return bench.found(frozenset({0}))
        while bad - good > 1:
            middle = _middle(bench, good, bad)
            if middle is None:
                break
            if self._differ(bench, values, good, middle):
                bad = middle
            elif self._differ(bench, values, middle, bad):
                good = middle
            else:
                return bench.found(frozenset())
        return bench.found(frozenset(range(good + 1, bad + 1)))

    def _differ(self, bench: _Bench, values: dict[int, list[float]], one: int, other: int) -> bool:
        for runs in PINPOINT_RUNS:
            for commit in (one, other):
                bench.builds(commit)
                held = values.setdefault(commit, [])
                held.extend(bench.measure(commit) for _ in range(runs - len(held)))
            p = _p(np.array(values[one]), np.array(values[other]))
            if p <= DIFFERENT_P:
                return True
            if p > self._same_above[runs]:
                return False
        return False


def _middle(bench: _Bench, good: int, bad: int) -> int | None:
    between = sorted(range(good + 1, bad), key=lambda one: abs(2 * one - good - bad))
    return next((commit for commit in between if bench.builds(commit)), None)


def _p(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    rank = stats.mannwhitneyu(one, other).pvalue
    return float(min(rank, stats.ks_2samp(one, other).pvalue))


def _costs(history: History, *, built: set[int]) -> NDArray[np.float64]:
    """Return what a measurement of each commit costs, with a share of a build until it is built."""
    share = 0.0 if history.kind.cached else BUILD_MINUTES * BUILD_SHARE
    costs = np.full(history.kind.commits, MEASURE_MINUTES + share)
    costs[list(built)] = MEASURE_MINUTES
    return costs
