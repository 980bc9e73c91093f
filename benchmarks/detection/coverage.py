"""Rows "coverage" and "type I": pairs of hierarchical noise, 3 to 10 starts of 5 slices.

Both sides share the host's drift, as in a real pair. No other tool looks after every start with a
promise, so what stands beside ours is the habit: Student's t on all slices, as if they were
independent, and the same pair test asked again after every start.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from benchmarks.detection.row import Row, share
from detectors.pairwise import compare
from detectors.sequential import SequentialPlan, look
from detectors.synthetic_runs import Levels, pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from benchmarks.detection.row import Settings

STARTS: Final = (3, 4, 5, 7, 10)
SLICES: Final = 5
TRIALS: Final = 3000
SEQUENCES: Final = 1000
EFFECT: Final = -0.03
NOISES: Final = (
    ("Gaussian", Levels(host_sd=0.02)),
    ("Student t(3)", Levels(host_sd=0.02, tails=3.0)),
)
ALPHAS: Final = (0.05, 0.01)


def rows(settings: Settings) -> Iterator[Row]:
    """Return coverage and type I error for each kind of noise."""
    for number, (name, noise) in enumerate(NOISES):
        rng = np.random.default_rng([settings.seed, 500 + number])
        yield _coverage(rng, name, noise, settings)
        yield _type_one(rng, name, noise, settings)


def _coverage(rng: np.random.Generator, name: str, noise: Levels, settings: Settings) -> Row:
    began = time.perf_counter()
    trials = settings.trials(TRIALS)
    ours, habit = {}, {}
    for starts in STARTS:
        inside = naive = 0
        for _ in range(trials):
            baseline, candidate = pair(rng, (starts, SLICES), noise=noise, effect=EFFECT)
            interval = compare(baseline, candidate).interval
            inside += int(interval.low <= EFFECT <= interval.high)
            naive += _covers(np.log(baseline).ravel(), np.log(candidate).ravel())
        ours[starts], habit[starts] = inside / trials, naive / trials
    return Row(
        what=f"coverage of the 95 % interval in %, {name}, {_shown(STARTS)} starts",
        aim="94 to 96 %" if noise.tails is None else "-",
        ours=_percents(ours),
        peers={"Student's t over slices": _percents(habit)},
        trials=f"{trials} each (+- {196 * (0.95 * 0.05 / trials) ** 0.5:.1f})",
        seconds=time.perf_counter() - began,
    )


def _covers(baseline: NDArray[np.float64], candidate: NDArray[np.float64]) -> bool:
    """Whether Student's 95 % interval of the difference of two samples holds the effect."""
    count = baseline.size
    variance = (np.var(baseline, ddof=1) + np.var(candidate, ddof=1)) / count
    margin = special.stdtrit(2 * count - 2, 0.975) * np.sqrt(variance)
    return bool(abs(np.mean(candidate) - np.mean(baseline) - EFFECT) <= margin)


def _type_one(rng: np.random.Generator, name: str, noise: Levels, settings: Settings) -> Row:
    began = time.perf_counter()
    trials = settings.trials(SEQUENCES)
    plan = SequentialPlan(starts_max=STARTS[-1])
    ours = dict.fromkeys(ALPHAS, 0)
    habit = dict.fromkeys(ALPHAS, 0)
    for _ in range(trials):
        baseline, candidate = pair(rng, (plan.starts_max, SLICES), noise=noise)
        smallest = repeated = 1.0
        for starts in range(plan.starts_min, plan.starts_max + 1):
            sides = baseline[:starts], candidate[:starts]
            smallest = min(smallest, look(*sides, plan=plan).change.p_value)
            repeated = min(repeated, compare(*sides).p_value)
        for alpha in ALPHAS:
            ours[alpha] += smallest <= alpha
            habit[alpha] += repeated <= alpha
    return Row(
        what=f"type I error at {_levels()}, {name}, a look after every start to {plan.starts_max}",
        aim="<= nominal",
        ours="; ".join(share(hits, trials) for hits in ours.values()),
        peers={"the pair test repeated": "; ".join(share(hits, trials) for hits in habit.values())},
        trials=str(trials),
        seconds=time.perf_counter() - began,
    )


def _levels() -> str:
    return " and ".join(f"{100 * alpha:g} %" for alpha in ALPHAS)


def _shown(values: tuple[int, ...]) -> str:
    return " / ".join(map(str, values))


def _percents(shares: dict[int, float]) -> str:
    return " / ".join(f"{100 * one:.1f}" for one in shares.values())
