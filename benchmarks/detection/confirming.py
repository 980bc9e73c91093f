"""Row "confirm": one run per commit, more runs of a suspicious one, until an alert.

Every run from the step on counts, ordinary ones too. The bound is Lorden's (1971): no rule with one
false alert in so many commits finds a step of known size faster on average. No peer re-runs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.detection.planted_steps import lorden
from benchmarks.detection.row import Row
from detectors.confirmation import ConfirmationPolicy, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.detection.row import Settings

STREAMS: Final = 4000
#: Streams without a step last a thousand commits each; they are the dear ones.
NULL_STREAMS: Final = 1000
BASELINE_RUNS: Final = 60
#: Step in sds of a run, the aim.
STEPS: Final = ((2.0, "<= 1.5"), (1.0, "-"), (3.0, "-"))


def rows(settings: Settings) -> Iterator[Row]:
    """Return one row for each size of the step; false alerts are of the same rule."""
    began = time.perf_counter()
    policy = ConfirmationPolicy()
    rng = np.random.default_rng([settings.seed, 800])
    count = settings.trials(NULL_STREAMS)
    still = simulate(policy, rng, streams=count, baseline_runs=BASELINE_RUNS)
    null_text = (
        f"false alert in {still.commits_per_alert:,.0f} commits, "
        f"{100 * still.extra_runs:.0f} % extra runs"
    )
    for shift, aim in STEPS:
        trials = settings.trials(STREAMS)
        found = simulate(policy, rng, streams=trials, shift=shift, baseline_runs=BASELINE_RUNS)
        runs = float(np.mean(found.runs))
        bound = lorden(shift, mean_commits=policy.commits_per_false_alert)
        yield Row(
            what=f"step of {shift:g} sd, confirm runs allowed: runs to alert over the bound "
            f"{bound:.2f} at a false alert in {policy.commits_per_false_alert:,.0f} commits",
            aim=aim,
            ours=f"{runs / bound:.2f} ({runs:.2f} runs); {null_text}",
            trials=f"{trials}, still {count}",
            seconds=time.perf_counter() - began,
        )
        began = time.perf_counter()
