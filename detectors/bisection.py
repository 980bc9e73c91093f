"""Which commit of a range changed the level? A posterior, and the next measurement worth its cost.

Logs of measurements come in one by one; a probability per commit, and of "nothing changed", goes
out, with the commit to measure next. Commits are numbers: 0 is known good, n - 1 known bad. It
starts nothing, has no clock and no random numbers: the same calls give the same answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from detectors.bisection_beliefs import (
    EffectPrior,
    KnownNoise,
    NoiseShape,
    read_costs,
    read_prior,
)
from detectors.bisection_information import information, measurements_to_come
from detectors.bisection_likelihood import Evidence
from detectors.errors import DataError
from detectors.evidence import check_confidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from detectors.change import Interval

__all__ = ["Bisection", "EffectAtCulprit", "EffectPrior", "KnownNoise", "StopReason"]

METHOD = "bisection-moment 3"
#: Sizes of steps, in standard deviations of one measurement, that the search is prepared for: even
#: steps of a factor 1.5 over what is worth a bisect, smaller ones being lost in the noise. Other
#: sizes, weights and orders moved along one line of measurements against accuracy, see MARGIN.
DEFAULT_EFFECTS = EffectPrior(sizes=(1.0, 1.5, 2.2, 3.3, 5.0), weights=(1.0, 1.0, 1.0, 1.0, 1.0))
#: Log odds beyond those of the stop. A posterior is right as often as it says on average over the
#: sizes of steps, but less often at the smallest. Of 3,000 searches among 64 commits for a step of
#: one standard deviation 96.6 % were right with this margin, of 2,500 with one of 0.5 95.7 %.
MARGIN = 0.75
#: No answer is given on less: measurements, plus the degrees of freedom of noise that is known.
#: Fewer values that agree by luck look like very small noise. Simulated with sizes of 0.9, 1.8, 3.6
#: and order 2, 64 commits, step of one standard deviation: of 300 searches 8 ended within 14
#: measurements, 7 of these wrongly.
MEASUREMENTS_MIN = 12
#: A range whose step is too small for the search ends here, as inconclusive.
DEFAULT_LIMIT = 1000
#: Measurements of one commit never agree better than this, in logs: values are rounded somewhere.
DEFAULT_FLOOR_SD = 1e-6
#: Measurements of the bad end before anything else, where the good one is known: one has no spread.
AT_BAD_END = 2
#: Nodes about each level for the outcome of a measurement not made; 15 instead of 11 gave the same
#: mean numbers of measurements within their errors.
SPREAD = np.linspace(-3.5, 3.5, 11)


class StopReason(StrEnum):
    """Why a search is over."""

    CULPRIT = "culprit"
    NOTHING_CHANGED = "nothing-changed"
    #: The commits between them cannot be measured; their sum reached the probability.
    INDISTINGUISHABLE = "indistinguishable"
    LIMIT = "measurement-limit"
    #: Fewer than two commits can be measured.
    NOTHING_TO_MEASURE = "nothing-to-measure"


@dataclass(frozen=True, kw_only=True)
class EffectAtCulprit:
    """The step at the most probable commit: log ratio of the level after it over that before."""

    commit: int
    #: nan while one of the two sides is not measured.
    effect: float
    interval: Interval


class Bisection:
    """A Bayesian search for the first commit of a new level.

    >>> search = Bisection(64)
    >>> while not search.done:
    ...     commit = search.select()
    ...     search.record(commit, math.log(measure(commit)))

    Args:
        n_commits: Commits of the range, both ends included.
        prior: Weights of the commits, need not sum to one: n - 1 of them for commits 1 to n - 1, or
            n where the first is that of "nothing changed". Equal weights unless given.
        nothing: Prior probability that nothing changed; not together with n weights.
        stop: Probability with which the answer is to be right, whatever the size of the step.
        costs: Cost of one measurement of each commit, in any unit. All the same unless given;
            `set_cost` changes one, for instance when an artifact has been built.
        effects: Sizes of step expected, in standard deviations of one measurement.
        noise: What is known of the noise of one measurement; nothing unless given.
        student_df: Degrees of freedom of Student noise, for series with spikes; Gaussian if None.
        limit: Measurements after which the search ends as inconclusive.
        floor_sd: Smallest standard deviation of the noise that is believed.
        anchored: Values are logs of ratios to commit 0, measured beside it each time: the level
            before the change is 0 and known, and commit 0 itself is never measured.

    Raises:
        DataError: an argument is out of its range; the message says which.
    """

    def __init__(
        self,
        n_commits: int,
        *,
        prior: ArrayLike | None = None,
        nothing: float | None = None,
        stop: float = 0.95,
        costs: ArrayLike | None = None,
        effects: EffectPrior = DEFAULT_EFFECTS,
        noise: KnownNoise | None = None,
        student_df: float | None = None,
        limit: int = DEFAULT_LIMIT,
        floor_sd: float = DEFAULT_FLOOR_SD,
        anchored: bool = False,
    ) -> None:
        if n_commits < 2:  # noqa: PLR2004  a range has two ends
            raise DataError(f"a range of {n_commits} commits has no first bad one; give 2 or more")
        check_confidence(stop)
        if limit < 1:
            raise DataError(f"limit is {limit}; at least one measurement is needed")
        for name, value in (("student_df", student_df), ("floor_sd", floor_sd)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise DataError(f"{name} is {value}; it has to be positive")
        self._n = n_commits
        self._stop = stop
        self._enough = 1 / (1 + (1 - stop) / stop * math.exp(-MARGIN))
        self._limit = limit
        self._anchored = anchored
        self._effects = effects
        self._shape = NoiseShape(student_df=student_df, known=noise, floor_sd=floor_sd)
        self._prior = read_prior(prior, nothing, n_commits)
        self._costs = read_costs(costs, n_commits)
        self._selectable = np.ones(n_commits, dtype=bool)
        self._positions: list[int] = []
        self._values: list[float] = []
        self._update()

    @property
    def posterior(self) -> NDArray[np.float64]:
        """Entry i is the probability that commit i is the first of a new level; 0: nothing changed.

        Commits that are told apart by no measurement share in proportion to their prior.
        """
        return self._posterior.copy()

    @property
    def n_measurements(self) -> int:
        """Measurements recorded so far."""
        return len(self._values)

    @property
    def entropy(self) -> float:
        """What is not known of the answer, in nats."""
        some = self._posterior[self._posterior > 0]
        return float(-np.sum(some * np.log(some)))

    @property
    def done(self) -> bool:
        """Whether there is a reason to stop."""
        return self.stopped is not None

    @property
    def inconclusive(self) -> bool:
        """Whether the search ended without reaching its probability."""
        return self.stopped in {StopReason.LIMIT, StopReason.NOTHING_TO_MEASURE}

    @property
    def stopped(self) -> StopReason | None:
        """Why the search is over; None while it is not."""
        best = int(np.argmax(self._posterior))
        wanted = self._enough if len(self._values) < self._limit else self._stop
        if len(self._values) + self._shape.df >= MEASUREMENTS_MIN:
            if self._posterior[best] >= wanted:
                return StopReason.CULPRIT if best else StopReason.NOTHING_CHANGED
            if np.bincount(self._alike(), weights=self._posterior).max() >= wanted:
                return StopReason.INDISTINGUISHABLE
        if np.count_nonzero(self._selectable) < 2:  # noqa: PLR2004  one level says nothing
            return StopReason.NOTHING_TO_MEASURE
        return StopReason.LIMIT if len(self._values) >= self._limit else None

    def record(self, index: int, log_value: float) -> None:
        """Take in the log of one measurement of a commit, of any commit that is not skipped.

        Measurements that were made before the search, such as those of the alert, are welcome.

        Raises:
            DataError: there is no such commit, it was skipped, it is the anchor, or the value is
                not finite.
        """
        commit = self._measurable(index)
        if not self._selectable[commit]:
            raise DataError(f"commit {commit} was skipped; it cannot have a measurement")
        if not math.isfinite(log_value):
            raise DataError(
                f"the measurement of commit {commit} is {log_value}; it has to be the log of a "
                f"positive number"
            )
        self._positions.append(commit)
        self._values.append(float(log_value))
        self._update()

    def skip(self, index: int) -> None:
        """Never select this commit again, because it cannot be built or run.

        Its measurements so far stay. A culprit may well be a skipped commit: the search is then
        done when the commits that only skipped ones separate have the probability together.

        Raises:
            DataError: there is no such commit, or it is the anchor.
        """
        self._selectable[self._measurable(index)] = False

    def exclude(self, first: int, last: int) -> None:
        """Rule out that any of the commits from `first` to `last` is the culprit.

        For those after a commit up to one that was built to the same artifact: between the two
        nothing can have changed, whatever is measured.

        Raises:
            DataError: there are no such commits, or no answer would be left.
        """
        if not 1 <= self._commit(first) <= self._commit(last):
            raise DataError(f"commits {first} to {last} are no part of a range after its good end")
        left = self._prior.copy()
        left[first : last + 1] = 0.0
        if not left.sum() > 0:
            raise DataError(f"without commits {first} to {last} there is no answer left")
        self._prior = left / left.sum()
        self._update()

    def set_cost(self, index: int, cost: float) -> None:
        """Change what the next measurement of a commit costs.

        A build is paid once and serves every later measurement of its commit: until it is built
        give the measurement plus half the build (a commit that is measured at all is measured about
        twice: 3.4, 2.1 and 1.6 times at 1, 2 and 3 standard deviations, 1,000 searches each), then
        the measurement alone.

        Raises:
            DataError: there is no such commit, or the cost is not positive and finite.
        """
        if not (math.isfinite(cost) and cost > 0):
            raise DataError(f"cost is {cost}; it has to be positive and finite (else: skip)")
        self._costs[self._commit(index)] = cost

    def select(self) -> int:
        """The commit to measure next: most information about the answer per cost.

        The first two measurements go to the ends, without which there are no two levels; where the
        good one is known, both go to the bad one.

        Raises:
            DataError: every commit was skipped.
        """
        able = np.flatnonzero(self._selectable)
        if self._anchored:
            able = able[able > 0]
        if not able.size:
            raise DataError("every commit of the range was skipped; there is none to measure")
        if self._anchored and len(self._values) < AT_BAD_END:
            return int(able[-1])
        if not self._anchored and len(set(self._positions)) < 2:  # noqa: PLR2004  the two ends
            ends = [int(end) for end in (able[0], able[-1]) if end not in self._positions]
            if ends:
                return ends[0]
        rate = self.information()[able] / self._costs[able]
        return int(able[np.argmax(rate)])

    def information(self) -> NDArray[np.float64]:
        """Expected information about the answer, in nats, of one more measurement of each commit.

        Mutual information (Lindley, Ann. Math. Statist. 27, 1956) between the answer and the
        outcome, over its predictive distribution with levels and noise unknown. It is zero before
        there are two measurements.
        """
        if len(self._values) < 2:  # noqa: PLR2004  one value has no spread
            return np.zeros(self._n)
        evidence, rows, posterior = self._evidence, self._rows, self._posterior
        below, above = evidence.predict(evidence.nodes(self._mass(), SPREAD))
        # For the measurement of commit i the culprits up to i predict `above`, the others `below`;
        # the last row stands for "nothing changed", on whose only level both sides lie.
        return information(posterior, below[rows], above[rows])

    def culprits(self, probability: float | None = None) -> tuple[int, ...]:
        """The fewest commits that hold the culprit with this probability, in ascending order.

        0 stands for "nothing changed". The probability is that of the stop unless given.

        Raises:
            DataError: the probability is outside (0, 1).
        """
        wanted = self._stop if probability is None else probability
        check_confidence(wanted)
        order = np.argsort(-self._posterior, kind="stable")
        held = np.cumsum(self._posterior[order])
        count = int(np.searchsorted(held, wanted - 1e-12)) + 1
        return tuple(sorted(int(commit) for commit in order[:count]))

    def effect(self, confidence: float = 0.95) -> EffectAtCulprit:
        """The step at the most probable culprit, given that it is the culprit.

        Raises:
            DataError: confidence is outside (0, 1), or nothing was measured.
        """
        check_confidence(confidence)
        if not self._values:
            raise DataError("there is no measurement yet; an effect needs two levels")
        commit = 1 + int(np.argmax(self._posterior[1:]))
        cut = int(self._evidence.cuts[self._rows[commit]])
        effect, interval = self._evidence.effect(cut, confidence)
        return EffectAtCulprit(commit=commit, effect=effect, interval=interval)

    def expected_remaining(self) -> float:
        """Roughly how many measurements are still to come.

        From the log odds that the best answer lacks and the sizes of step that are likely by now;
        single values scatter widely.
        """
        if self.done:
            return 0.0
        best = float(np.max(self._posterior))
        rest = measurements_to_come(best, self._enough, self._effects.sizes, self._likely_sizes())
        return max(1.0, rest, MEASUREMENTS_MIN - self._shape.df - len(self._values))

    def _commit(self, index: int) -> int:
        """The index, checked."""
        if not 0 <= index < self._n:
            raise DataError(f"there is no commit {index}; the range has 0 to {self._n - 1}")
        return int(index)

    def _measurable(self, index: int) -> int:
        """The index, checked, of a commit that a measurement may be of."""
        if self._anchored and index == 0:
            raise DataError("commit 0 is the anchor: its level is known, and nothing measures it")
        return self._commit(index)

    def _mass(self) -> NDArray[np.float64]:
        """Probability of each cut of the evidence."""
        return np.asarray(np.bincount(self._rows, weights=self._posterior), dtype=np.float64)

    def _likely_sizes(self) -> NDArray[np.float64]:
        """Probability of each size of the effect prior."""
        if not self._values:
            return np.exp(self._effects.log_weights)
        return self._evidence.sizes(self._mass())

    def _alike(self) -> NDArray[np.int64]:
        """A number per answer; answers with the same one look alike in all that can be measured."""
        able = np.cumsum(self._selectable)
        below = np.concatenate([[0], able[:-1]])
        # A culprit with everything measurable on one side of it looks like no change.
        below[below == able[-1]] = 0
        return np.asarray(below, dtype=np.int64)

    def _update(self) -> None:
        """Work out the posterior from everything recorded."""
        positions = np.asarray(self._positions, dtype=np.int64)
        # Culprits between the same two measured commits have the same evidence, so that the work
        # depends on the commits measured, not on those in the range.
        measured = np.unique(positions)
        cuts = np.concatenate([measured, [self._n]])
        rows = np.searchsorted(cuts, np.arange(self._n))
        rows[0] = cuts.size - 1
        self._rows = np.asarray(rows, dtype=np.int64)
        values = np.asarray(self._values, dtype=np.float64)
        if not values.size:
            self._posterior = self._prior
            return
        self._evidence = Evidence(
            positions=positions,
            values=values if self._anchored else values - values.mean(),
            cuts=cuts,
            shape=self._shape,
            prior=self._effects,
            anchored=self._anchored,
        )
        with np.errstate(divide="ignore"):
            log_posterior = np.log(self._prior) + self._evidence.log_evidence[rows]
        weights = np.exp(log_posterior - log_posterior.max())
        self._posterior = weights / weights.sum()
