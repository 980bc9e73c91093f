"""One new run against a stored baseline: is it compatible with the runs before it?

The runs of a baseline and one candidate run come in, a `Change` goes out. The level of a run is the
mean over its starts of the mean log of their slices. This is a prediction interval, so the noise
between runs counts once in full for the candidate: more starts inside one run do not lower it. It
does not know whether the baseline really is one level; that is the caller's promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from detectors.errors import DataError
from detectors.evidence import check_confidence, t_change
from detectors.noise import DEFAULT_PRIOR, model_noise
from detectors.samples import read_history, read_starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.change import Change
    from detectors.noise import NoisePrior
    from detectors.samples import Samples

METHOD = "predictive-t 1"


def predict(
    history: Sequence[Samples],
    candidate: Samples,
    *,
    confidence: float = 0.95,
    prior: NoisePrior = DEFAULT_PRIOR,
) -> Change:
    """The change from the level of the history to one new run.

    Args:
        history: Runs of the baseline, each a sequence of starts, each a 1-D sequence of slices in
            natural units; NaN marks a missing slice. One run is enough to begin with.
        candidate: The starts of the new run.
        confidence: Coverage of the interval.
        prior: What is believed of the noise where the history is short.

    Raises:
        DataError: history or candidate has no slice, a value is infinite, zero or negative, or
            confidence is outside (0, 1).
    """
    check_confidence(confidence)
    runs = read_history(history)
    new = read_starts(candidate, what="candidate").measured()
    if not new.counts.size:
        raise DataError("the candidate has no slice: at least one measured start is needed")
    noise = model_noise(runs, prior=prior)
    kept = [runs[position] for position in noise.used]
    n_runs = len(kept)
    # The mean of the runs that were not set aside: a spike is gone from it, and it is worth 1.6
    # times as many runs as their median would be.
    centre = float(np.mean([run.level for run in kept]))
    variance, df = noise.variance(
        runs=1 + 1 / n_runs,
        starts=1 / new.counts.size + noise.shares.start_in_run / n_runs,
        slices=new.slice_share + noise.shares.slice_in_run / n_runs,
    )
    return t_change(
        effect=new.level - centre,
        variance=variance,
        df=df,
        confidence=confidence,
        n_baseline=n_runs,
        n_candidate=1,
        method=METHOD,
        warnings=noise.warnings,
    )
