"""Rows "bisect": 64 commits, one of them slow, noise of unknown size, stop at 95 %.

git_bayesect knows pass and fail only and is told the best threshold by an oracle; ours is told
nothing. Every measurement counts, those of the known good and bad end too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.detection.peers import BAYESECT
from benchmarks.detection.row import Row, share
from detectors.bisection import Bisection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.detection.row import Settings

COMMITS: Final = 64
STOP: Final = 0.95
LIMIT: Final = 1000
TRIALS: Final = 400
#: Noise of one measurement and its level; the class is told neither.
SD: Final = 0.02
LEVEL: Final = 7.0
#: Shift in sds -> what is aimed at: mean measurements, share named right.
AIMS: Final = {1.0: "<= 75, >= 95 %", 2.0: "<= 22, >= 95 %", 3.0: "<= 13, >= 95 %", 0.0: "-"}


def rows(settings: Settings) -> Iterator[Row]:
    """Return one row for each size of the shift."""
    for number, (shift, aim) in enumerate(AIMS.items()):
        began = time.perf_counter()
        trials = settings.trials(TRIALS)
        rng = np.random.default_rng([settings.seed, 700 + number])
        culprits = [int(one) for one in rng.integers(1, COMMITS, trials)]
        ours = [_bisect(rng, culprit, shift) for culprit in culprits]
        theirs = (
            BAYESECT.ask(
                culprits=culprits,
                commits=COMMITS,
                shift=shift,
                stop=STOP,
                limit=LIMIT,
                seed=settings.seed + number,
            ).found
            if shift
            else None
        )
        yield Row(
            what=f"bisect {COMMITS} commits, {_called(shift)}: mean measurements (p95), right",
            aim=aim,
            ours=_text(ours),
            # It has no answer for "nothing changed".
            peers={"git_bayesect with an oracle": _text(theirs)} if theirs else {},
            trials=str(trials),
            seconds=time.perf_counter() - began,
        )


def _bisect(rng: np.random.Generator, culprit: int, shift: float) -> tuple[int, int]:
    """Return measurements made and whether the culprit was named."""
    bisection = Bisection(COMMITS)
    size = float(rng.choice([-1.0, 1.0])) * shift * SD
    measured = 0
    while not bisection.done and measured < LIMIT:
        chosen = bisection.select()
        slow = chosen >= culprit
        bisection.record(chosen, LEVEL + size * slow + SD * float(rng.standard_normal()))
        measured += 1
    truth = culprit if shift else 0
    return measured, int(np.argmax(bisection.posterior) == truth)


def _called(shift: float) -> str:
    return f"{shift:g} sd" if shift else "nothing changed"


def _text(found: Sequence[Sequence[int]]) -> str:
    measured = np.array([one[0] for one in found])
    right = sum(one[1] for one in found)
    return f"{measured.mean():.1f} ({np.quantile(measured, 0.95):.0f}), {share(right, len(found))}"
