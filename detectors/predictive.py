"""One new run against a stored baseline: is it compatible with the runs before it?

The runs of a baseline and one candidate run come in, a `Change` goes out. The level of a run is the
mean over its starts of the mean log of their slices. This is a prediction interval, so the noise
between runs counts once in full for the candidate: more starts inside one run do not lower it. It
does not know whether the baseline really is one level; that is the caller's promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from detectors.errors import DataError
from detectors.evidence import check_confidence, t_change
from detectors.noise import DEFAULT_PRIOR, model_noise
from detectors.samples import read_history, read_starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.change import Change
    from detectors.noise import NoiseModel, NoisePrior
    from detectors.samples import Samples

METHOD = "predictive-t 2"


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A history reduced to what a new run is compared with."""

    #: Mean level of the runs that were not set aside: a spike is gone from it, and it is worth 1.6
    #: times as many runs as their median would be.
    level: float
    noise: NoiseModel

    @classmethod
    def of(cls, history: Sequence[Samples], *, prior: NoisePrior) -> Baseline:
        """The baseline of these runs.

        Raises:
            DataError: there is no slice at all, or a value is infinite, zero or negative.
        """
        runs = read_history(history)
        noise = model_noise(runs, prior=prior)
        levels = [runs[position].level for position in noise.used]
        return cls(level=float(np.mean(levels)), noise=noise)

    def difference(self, candidate: Samples, *, what: str) -> tuple[float, float, float]:
        """A new run minus the level: effect, its variance, and the degrees of freedom of that.

        Raises:
            DataError: the run has no slice, or a value is infinite, zero or negative.
        """
        new = read_starts(candidate, what=what).measured()
        if not new.counts.size:
            raise DataError(f"the {what} has no slice: at least one measured start is needed")
        noise = self.noise
        n_runs = len(noise.used)
        # That a run resembles the ones just before it would make this variance a little smaller.
        # It is not relied on: the candidate may have been measured long after the history.
        variance, df = noise.variance(
            runs=1 + noise.mean_share,
            starts=1 / new.counts.size + noise.shares.start_in_run / n_runs,
            slices=new.slice_share + noise.shares.slice_in_run / n_runs,
        )
        return new.level - self.level, variance, df


def predict(
    history: Sequence[Samples],
    candidate: Samples,
    *,
    confidence: float = 0.95,
    prior: NoisePrior = DEFAULT_PRIOR,
) -> Change:
    """The change from the level of the history to one new run.

    Args:
        history: Runs of the baseline in the order they were measured, each a sequence of starts,
            each a 1-D sequence of slices in natural units; NaN marks a missing slice. One run is
            enough to begin with; from ten on the order tells whether neighbours resemble each
            other.
        candidate: The starts of the new run.
        confidence: Coverage of the interval.
        prior: What is believed of the noise where the history is short; that of the other
            workloads of the same host (`detectors.shrinkage.prior_from`) is better than none.

    Raises:
        DataError: history or candidate has no slice, a value is infinite, zero or negative, or
            confidence is outside (0, 1).
    """
    return predict_from(Baseline.of(history, prior=prior), candidate, confidence=confidence)


def predict_from(baseline: Baseline, candidate: Samples, *, confidence: float = 0.95) -> Change:
    """As `predict`, from a baseline that several runs are compared with."""
    check_confidence(confidence)
    effect, variance, df = baseline.difference(candidate, what="candidate")
    return t_change(
        effect=effect,
        variance=variance,
        df=df,
        confidence=confidence,
        n_baseline=len(baseline.noise.used),
        n_candidate=1,
        method=METHOD,
        warnings=baseline.noise.warnings,
    )
