"""Watching commits against a stored baseline, with re-runs of a suspicious one.

All runs since the baseline come in, in the order they were measured; out goes whether to wait for
the next commit, to run the last one once more, or to alert. No state is kept, so that a resumed job
gets the same answer. This judges runs against a history; two artifacts side by side are judged by
`detectors.sequential`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import special

from detectors.errors import DataError
from detectors.noise import DEFAULT_PRIOR
from detectors.predictive import Baseline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from detectors.noise import NoisePrior
    from detectors.samples import Samples

    Array: TypeAlias = NDArray[np.float64]

#: Sizes of shift that are looked for, in standard deviations of a run, in both directions.
SHIFTS = np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])
#: One run never counts for more, in natural log units of likelihood: less than any alert takes.
#: It costs .04 runs at a shift of 2 sd.
RUN_MAX = 4.0
#: ln(commits per false alert) minus the evidence that an alert takes. Simulated (`simulate`) with a
#: baseline of 60 runs at one in 1,000: one false alert in 1,110 commits over the first hundred of a
#: baseline, where an unlucky baseline shows, and one in 1,860 over a thousand. Were the baseline
#: known for certain, 2.3 would do and save .8 runs.
OVERSHOOT = 1.0


class Action(StrEnum):
    """What to do after a run."""

    #: Nothing to see; measure the next commit when it comes.
    WAIT = "wait"
    #: Run the last commit once more.
    RERUN = "rerun"
    #: A shift is confirmed.
    ALERT = "alert"


@dataclass(frozen=True, kw_only=True)
class ConfirmationPolicy:
    """How eager to re-run and how sure to be; fixed while a baseline is watched."""

    #: One false alert in this many commits.
    commits_per_false_alert: float = 1000.0
    #: Evidence, in natural log units, at which a commit is run again. At 0 the extra runs are 44 %
    #: of the commits, at 1 13 %, at 2 5 %; a shift of 2 sd then takes 1.5, 2.0 and 2.6 commits. The
    #: runs until an alert are the same.
    suspicion: float = 1.0
    #: Runs of one commit, the first included; then the next commit is waited for.
    runs_max: int = 20

    def __post_init__(self) -> None:
        """Refuse a policy that could never alert, or would alert at random."""
        if not self.commits_per_false_alert >= 20:  # noqa: PLR2004  the simulated range begins there
            raise DataError("commits_per_false_alert has to be at least 20")
        if not self.runs_max >= 2:  # noqa: PLR2004  one run and one that confirms it
            raise DataError("runs_max has to be at least 2: an alert takes a re-run")
        if not math.isfinite(self.suspicion):
            raise DataError(f"suspicion is {self.suspicion}; it has to be a number")

    @property
    def alert(self) -> float:
        """Evidence that an alert takes, in natural log units."""
        return math.log(self.commits_per_false_alert) - OVERSHOOT


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What the runs so far say."""

    action: Action
    #: Natural log of the likelihood ratio for a shift, averaged over sizes.
    evidence: float
    #: What an alert takes of it.
    needed: float
    #: Position of the first run of the shifted stretch, if there is one.
    since: int
    #: Log ratio of the mean level since then over the baseline's.
    effect: float
    warnings: tuple[str, ...] = ()


def watch(
    history: Sequence[Samples],
    runs: Sequence[Samples],
    commits: Sequence[int],
    *,
    policy: ConfirmationPolicy,
    prior: NoisePrior = DEFAULT_PRIOR,
) -> Watch:
    """What to do after the last of these runs.

    Page's (1954) cumulative sum of log likelihood ratios, one for each size and direction of shift,
    averaged as a mixture (Robbins 1970). It goes on over commits, so that small shifts add up, and
    a commit is run again as long as the evidence is suspicious: time, not sureness, is what a
    re-run buys. An alert takes at least two runs of the commit that raises it.

    Args:
        history: Runs of the baseline, as for `detectors.predictive.predict`.
        runs: Runs since, in the order of measuring.
        commits: The commit of each of them, in any numbering; equal neighbours are re-runs.
        policy: Fixed while this baseline is watched.
        prior: What is believed of the noise where the history is short.

    Raises:
        DataError: as for `predict`, or runs and commits are not of equal number.
    """
    if len(runs) != len(commits) or not len(runs):
        raise DataError(f"{len(runs)} runs and {len(commits)} commits: one commit for each run")
    baseline = Baseline.of(history, prior=prior)
    effects, scores = np.empty(len(runs)), np.empty(len(runs))
    for position, run in enumerate(runs):
        effect, variance, df = baseline.difference(run, what=f"run {position}")
        effects[position] = effect
        scores[position] = _score(effect / math.sqrt(variance), df)
    sums = np.zeros((1, SHIFTS.size))
    starts = np.zeros(SHIFTS.size, dtype=np.int64)
    for position in range(len(runs)):
        starts[sums[0] <= 0] = position
        sums = _add(sums, scores[position : position + 1])
    evidence = float(_evidence(sums)[0])
    since = int(starts[np.argmax(sums[0])])
    repeats = _repeats(commits)
    return Watch(
        action=_action(evidence, repeats, policy=policy),
        evidence=evidence,
        needed=policy.alert,
        since=since,
        effect=float(np.mean(effects[since:])),
        warnings=baseline.noise.warnings,
    )


def _repeats(commits: Sequence[int]) -> int:
    """Runs of the last commit in a row."""
    count = 0
    for commit in reversed(commits):
        if commit != commits[-1]:
            break
        count += 1
    return count


def _action(evidence: float, repeats: int, *, policy: ConfirmationPolicy) -> Action:
    if evidence >= policy.alert and repeats > 1:
        return Action.ALERT
    if evidence >= policy.suspicion and repeats < policy.runs_max:
        return Action.RERUN
    return Action.WAIT


def _score(t: float, df: float) -> float:
    """A t statistic as the Gaussian number of the same p-value, so that short histories count."""
    tail = special.stdtr(df, -abs(t))
    return math.copysign(-float(special.ndtri(max(tail, 1e-300))), t)


def _add(sums: Array, scores: Array) -> Array:
    """The cumulative sums after one more run; rows are streams, columns are shifts."""
    step = scores[:, None] * SHIFTS - SHIFTS**2 / 2
    total: Array = np.maximum(sums, 0.0) + np.clip(step, -RUN_MAX, RUN_MAX)
    return total


def _evidence(sums: Array) -> Array:
    return np.asarray(special.logsumexp(sums, axis=1) - math.log(SHIFTS.size))


@dataclass(frozen=True, kw_only=True, eq=False)
class Streams:
    """Simulated streams of commits, each until its alert or the horizon; one entry per stream."""

    #: Runs until the alert, re-runs included.
    runs: NDArray[np.int64]
    commits: NDArray[np.int64]
    alerted: NDArray[np.bool_]

    @property
    def commits_per_alert(self) -> float:
        """Mean commits between alerts, streams without one counted as far as they went."""
        return float(np.sum(self.commits)) / max(1, int(np.sum(self.alerted)))

    @property
    def extra_runs(self) -> float:
        """Re-runs per commit."""
        return float(np.sum(self.runs)) / float(np.sum(self.commits)) - 1


def simulate(
    policy: ConfirmationPolicy,
    rng: np.random.Generator,
    *,
    streams: int,
    shift: float = 0.0,
    baseline_runs: int = 60,
    runs_max: int = 10_000,
    tails: float | None = None,
) -> Streams:
    """The policy on streams of one-run commits whose noise is 1 and whose level moved by `shift`.

    The shift is there from the first commit on, so that `runs` is the delay. Mean and sd of every
    stream's baseline are estimated from `baseline_runs` runs; the decisions are those of `watch`.

    Args:
        policy: What is simulated.
        rng: Where the noise comes from.
        streams: How many.
        shift: In standard deviations of a run.
        baseline_runs: Runs that mean and sd of the baseline are estimated from.
        runs_max: Runs after which a stream is given up.
        tails: Degrees of freedom of Student noise with the same sd; None is Gaussian.
    """

    def draw(*shape: int) -> Array:
        if tails is None:
            return rng.standard_normal(shape)
        return rng.standard_t(tails, shape) / math.sqrt(tails / (tails - 2))

    base = draw(streams, baseline_runs)
    centre = np.mean(base, axis=1)
    error = np.std(base, axis=1, ddof=1) * math.sqrt(1 + 1 / baseline_runs)
    sums = np.zeros((streams, SHIFTS.size))
    runs, commits, repeats = (np.zeros(streams, dtype=np.int64) for _ in range(3))
    again, alerted = np.zeros(streams, dtype=bool), np.zeros(streams, dtype=bool)
    for _ in range(runs_max):
        on = np.flatnonzero(~alerted)
        if not on.size:
            break
        t = (draw(on.size) + shift - centre[on]) / error[on]
        tail = np.maximum(special.stdtr(baseline_runs - 1, -np.abs(t)), 1e-300)
        sums[on] = _add(sums[on], -np.sign(t) * special.ndtri(tail))
        evidence = _evidence(sums[on])
        repeats[on] = np.where(again[on], repeats[on] + 1, 1)
        runs[on] += 1
        commits[on] += ~again[on]
        alerted[on] = (evidence >= policy.alert) & (repeats[on] > 1)
        again[on] = (evidence >= policy.suspicion) & (repeats[on] < policy.runs_max)
    return Streams(runs=runs, commits=commits, alerted=alerted)
