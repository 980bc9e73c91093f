"""Rows "suite": a shift of 1 % in all 42 workloads, one run of 3 starts, sd 1 % per start and side.

Beside pooling stands what testing each workload alone gives, corrected for 42 tests by Holm's rule:
no tool pools.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.detection.row import Row, share
from detectors.pairwise import compare
from detectors.pooling import pool
from detectors.synthetic_runs import Levels, suite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.detection.row import Settings

WORKLOADS: Final = 42
STARTS: Final = 3
SHIFT: Final = -0.01
SD: Final = 0.01
ALPHA: Final = 0.05
TRIALS: Final = 1000
#: Testing 42 workloads alone is slow and hardly ever finds anything.
ALONE_TRIALS: Final = 100
#: Noise that the workloads of one start share, and the share of workloads that shift.
CASES: Final = (
    (0.0, 1.0, ">= 95 %"),
    (0.003, 1.0, "-"),
    (0.005, 1.0, "-"),
    (0.01, 1.0, "-"),
    (0.0, 0.5, "-"),
    (0.0, 0.0, f"<= {100 * ALPHA:g} %"),
    (0.005, 0.0, f"<= {100 * ALPHA:g} %"),
    (0.01, 0.0, f"<= {100 * ALPHA:g} %"),
)


def rows(settings: Settings) -> Iterator[Row]:
    """Return one row for each common noise and share of shifted workloads."""
    for number, (common, shifted, aim) in enumerate(CASES):
        began = time.perf_counter()
        trials, few = settings.trials(TRIALS), settings.trials(ALONE_TRIALS)
        rng = np.random.default_rng([settings.seed, 600 + number])
        noise = Levels(start_sd=SD, slice_sd=0.0, common_start_sd=common)
        effects = np.where(np.arange(WORKLOADS) < shifted * WORKLOADS, SHIFT, 0.0)
        pooled = alone = 0
        for trial in range(trials):
            sides = suite(rng, (WORKLOADS, STARTS, 1), noise=noise, effects=effects)
            differences = np.log(sides[1] / sides[0])[:, :, 0]
            pooled += pool(differences).p_value <= ALPHA
            if trial < few:
                smallest = min(compare(*one).p_value for one in zip(*sides, strict=True))
                alone += smallest <= ALPHA / WORKLOADS
        moved = f"{100 * SHIFT:g} % in {100 * shifted:.0f} %" if shifted else "no shift"
        yield Row(
            what=f"suite of {WORKLOADS}, {STARTS} starts, sd {100 * SD:g} %, {moved}, "
            f"{100 * common:g} % noise shared by a start: p <= {ALPHA:g}",
            aim=aim,
            ours=share(pooled, trials),
            peers={"each workload alone, Holm": share(alone, few)},
            trials=f"{trials}, alone {few}",
            seconds=time.perf_counter() - began,
        )
