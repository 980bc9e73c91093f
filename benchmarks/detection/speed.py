"""Rows "milliseconds": one whole series of 100 and of 1,000 points, half of them with a step.

The median over the series of the fastest of a few calls, so that other work on the machine counts
as little as it can.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.detection.ours import OURS, PERFHERDER
from benchmarks.detection.peers import OTAVA, PELT, SPA
from benchmarks.detection.row import Row
from detectors.synthetic import history

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.detection.row import Settings

SERIES: Final = 20
REPEATS: Final = 3
#: Points, the aim, and whether the peer that permutes is asked: it takes seconds at 1,000.
LENGTHS: Final = ((100, "<= 1", True), (1000, "<= 8", False))


def rows(settings: Settings) -> Iterator[Row]:
    """Return one row for each length."""
    for number, (length, aim, with_spa) in enumerate(LENGTHS):
        began = time.perf_counter()
        rng = np.random.default_rng([settings.seed, 400 + number])
        count = settings.trials(SERIES)
        still = list(history(rng, (count - count // 2, length)))
        stepped = list(history(rng, (count // 2, length), steps={6 * length // 10: -0.04}))
        series = still + stepped
        ours = median(OURS.milliseconds(series, repeats=REPEATS).found)
        peers = (OTAVA, PELT, PERFHERDER, *((SPA,) if with_spa else ()))
        theirs = {
            peer.name: median(peer.milliseconds(series, repeats=REPEATS).found) for peer in peers
        }
        yield Row(
            what=f"milliseconds per series of {length:,} points (median)",
            aim=aim,
            ours=f"{ours:.2f}",
            peers={name: f"{taken:.2f}" for name, taken in theirs.items()},
            trials=f"{len(series)} series",
            seconds=time.perf_counter() - began,
        )
