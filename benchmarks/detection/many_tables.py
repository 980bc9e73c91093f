"""The tables of "Many tests at once" and "The suite as a whole" in docs/statistics.md.

`python -m benchmarks.detection.many_tables [GROUP ...]` simulates and prints them; each group takes
one to four minutes on one core.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from detectors.multiplicity import Method, adjust, at_level, lord
from detectors.pooling import pool, pool_run
from detectors.shared_noise import learn_pair_noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from detectors.multiplicity import Stream

    Array = NDArray[np.float64]

SEED: Final = 20261121
WORKLOADS: Final = 42
#: A difference of two sides with a sd of 1 % each, and a run against which it is judged.
PAIR_SD: Final = math.sqrt(2) * 0.01
RUN_SD: Final = 0.013
#: Shift and the share of the suite that has it.
NONE, ALL, HALF, TWICE = (0.0, 1.0), (-0.01, 1.0), (-0.01, 0.5), (-0.02, 1.0)
GATE: Final = -math.log1p(-0.05)
HALF_GATE: Final = -math.log1p(-0.025)


def pairs(trials: int = 3000) -> None:
    """Three pairs of starts: ours, a z test of all differences, a t test of the start means."""
    heading("shared", "rule", "none 5 %", "none 1 %", "all 5 %", "all 1 %", "half 5 %")
    rules = {"pool": _pooled, "z of all": _naive, "t of start means": _by_start}
    for common in (0.0, 0.003, 0.005, 0.010, 0.020):
        for name, rule in rules.items():
            none, full, half = (
                _simulate(trials, partial(_pair, rule=rule, moved=moved, common=common))
                for moved in (NONE, ALL, HALF)
            )
            cells = (*_shares(none, 0.05, 0.01), *_shares(full, 0.05, 0.01), *_shares(half, 0.05))
            row(f"{common:.1%}", name, *cells)
    for name, spread, tails in (("t(3)", 0.0, 3.0), ("own shifts", 0.01, None)):
        for common in (0.0, 0.005, 0.010):
            once = partial(_pair, rule=_pooled, moved=NONE, spread=spread, tails=tails)
            once = partial(once, common=common)
            row(f"{common:.1%}", f"pool, {name}", *_shares(_simulate(trials, once), 0.05, 0.01))


def histories(trials: int = 600) -> None:
    """Pairs with eight runs of the fork's own history."""
    heading("shared", "today", "starts", "none 5 %", "2.5 %", "all 5 %", "2.5 %", "half", "2.5 %")
    same = ((0.0, 0.0), (0.002, 0.002), (0.0035, 0.0035), (0.007, 0.007))
    for common, today in (*same, (0.002, 0.004), (0.002, 0.008)):
        for starts in (3, 4):
            once = partial(_pair_with_history, common=common, today=today, starts=starts)
            cells = [
                cell
                for moved in (NONE, ALL, HALF)
                for cell in _shares(_simulate(trials, partial(once, moved=moved)), 0.05, 0.025)
            ]
            row(f"{common:.2%}", f"{today:.2%}", str(starts), *cells)


def runs(trials: int = 1000) -> None:
    """One run against its baseline."""
    heading("runs", "shared", "none 5 %", "none 2 %", "all 2 %", "half 2 %", "all -2 %, 2 %")
    for count in (3, 5, 10, 30):
        for common in (0.0, 0.003, 0.005, 0.010):
            once = partial(_run, count=count, common=common)
            none, *found = (
                _simulate(trials, partial(once, moved=moved)) for moved in (NONE, ALL, HALF, TWICE)
            )
            cells = [_shares(one, 0.02)[0] for one in found]
            row(str(count), f"{common:.1%}", *_shares(none, 0.05, 0.02), *cells)


def family(trials: int = 4000) -> None:
    """Tests of one commit; changed ones by four standard deviations."""
    heading("shared variance", "changed", "rule", "any false", "share false", "found")
    by = Method.BENJAMINI_YEKUTIELI
    rules: dict[str, Callable[[Array], ArrayLike]] = {
        "each at .05": lambda p: np.flatnonzero(p <= 0.05),  # noqa: PLR2004  the row's name
        "Bonferroni": lambda p: np.flatnonzero(p <= 0.05 / WORKLOADS),
        "Benjamini-Hochberg": lambda p: adjust(p).found(0.05),
        "Benjamini-Yekutieli": lambda p: adjust(p, method=by).found(0.05),
    }
    for share in (0.0, 0.3, 0.9):
        for changed in (0, 1, 14):
            rng = np.random.default_rng(SEED)
            scores = math.sqrt(share) * rng.standard_normal((trials, 1))
            scores = scores + math.sqrt(1 - share) * rng.standard_normal((trials, WORKLOADS))
            scores[:, :changed] += 4.0
            p_values = 2 * stats.norm.sf(np.abs(scores))
            for name, rule in rules.items():
                finds = [np.asarray(rule(one), dtype=np.int64) for one in p_values]
                false = np.array([np.sum(found >= changed) for found in finds])
                size = np.array([found.size for found in finds])
                right = _percent((size - false) / changed) if changed else "-"
                shares = false / np.maximum(1, size)
                row(f"{share:g}", str(changed), name, _percent(false > 0), _percent(shares), right)


def streams(trials: int = 200, commits: int = 2000) -> None:
    """A branch; changed commits by five standard deviations, neighbours share noise."""
    heading("changed", "rule", "false per 1,000", "share false", "found", "stated share")
    rules: dict[str, Callable[[Array], Stream]] = {
        "constant .001": lambda p: at_level(p, level=0.001),
        "constant .0001": lambda p: at_level(p, level=0.0001),
        "LORD++ .1": lambda p: lord(p, rate=0.1),
    }
    for changed in (0.0, 0.01, 0.002):
        rng = np.random.default_rng(SEED)
        shared = rng.standard_normal((trials, commits))
        own = rng.standard_normal((trials, commits))
        # Two neighbours share a third of their variance, as commits with one baseline do.
        noise = (shared + np.roll(shared, 1, axis=1) + own) / math.sqrt(3)
        truth = rng.random((trials, commits)) < changed
        p_values = 2 * stats.norm.sf(np.abs(noise + 5.0 * truth))
        for name, rule in rules.items():
            judged = [rule(one) for one in p_values]
            flags = [truth[n, list(one.found)] for n, one in enumerate(judged)]
            false = np.array([np.sum(~one) for one in flags])
            right = np.array([np.sum(one) for one in flags])
            share = false / np.maximum(1, false + right)
            found = _percent(right / np.maximum(1, truth.sum(axis=1))) if changed else "-"
            stated = _percent([one.false_share for one in judged])
            rate = f"{1000 * float(np.mean(false)) / commits:.2f}"
            row(f"{changed:.1%}", name, rate, _percent(share), found, stated)


def stages(trials: int = 20_000) -> None:
    """Both stages of one changed workload, for several ways to split the promise of .001."""
    heading("workloads", "suspected at", "confirmed at", "null suspected", "-5 %", "-7 %", "-10 %")
    for count in (3, 10, 20, 42):
        for level in sorted({0.02, *(min(0.02, b / count) for b in (0.2, 0.1, 0.05))})[::-1]:
            confirm = min(0.05, 0.001 / (level * count))
            rng = np.random.default_rng(SEED)
            scores = math.sqrt(0.15) * rng.standard_normal((trials, 1))
            scores = scores + math.sqrt(0.85) * rng.standard_normal((trials, count))
            null = _suspected(rng, 0.0155 * scores, level=level).any(axis=1)
            found = []
            for loss in (0.05, 0.07, 0.10):
                effect = math.log1p(-loss)
                first = effect + 0.0155 * rng.standard_normal(trials)
                second = effect + 0.0075 * rng.standard_normal(trials)
                shown = (_t_values(rng, second, sd=0.0075, df=3) <= confirm) & (second <= -GATE)
                found.append(_percent(_suspected(rng, first, level=level) & shown))
            row(str(count), f"{level:.4f}", f"{confirm:.4f}", _percent(null), *found)


def heading(*cells: str) -> None:
    """Print the head of a table."""
    row(*cells)
    row(*("---" for _ in cells))


def row(*cells: str) -> None:
    """Print a line of a table at once: a group takes minutes."""
    print(f"| {' | '.join(cells)} |", flush=True)


def _suite(
    rng: np.random.Generator,
    columns: int,
    moved: tuple[float, float],
    *,
    sd: float = PAIR_SD,
    common: float = 0.0,
    spread: float = 0.0,
    tails: float | None = None,
) -> Array:
    """Log ratios or levels, (workloads, columns); `moved` is a shift and the share that has it."""
    own = rng.standard_normal((WORKLOADS, columns))
    if tails is not None:
        own = rng.standard_t(tails, (WORKLOADS, columns)) / math.sqrt(tails / (tails - 2))
    table: Array = sd * own + common * rng.standard_normal((1, columns))
    table += spread * rng.standard_normal((WORKLOADS, 1))
    table[: int(WORKLOADS * moved[1])] += moved[0]
    return table


def _pair(
    rng: np.random.Generator,
    *,
    rule: Callable[[Array], float],
    moved: tuple[float, float],
    common: float,
    spread: float = 0.0,
    tails: float | None = None,
) -> float:
    return rule(_suite(rng, 3, moved, common=common, spread=spread, tails=tails))


def _pair_with_history(
    rng: np.random.Generator,
    *,
    moved: tuple[float, float],
    common: float,
    today: float,
    starts: int,
) -> float:
    past = [_suite(rng, 3, NONE, sd=0.01, common=common) for _ in range(8)]
    table = _suite(rng, starts, moved, common=math.sqrt(2) * today)
    return pool(table, common=learn_pair_noise(past)).p_value


def _run(
    rng: np.random.Generator, *, moved: tuple[float, float], count: int, common: float
) -> float:
    past = _suite(rng, count, NONE, sd=RUN_SD, common=common)
    new = _suite(rng, 1, moved, sd=RUN_SD, common=common)
    return pool_run(past.T, new[:, 0]).p_value


def _pooled(table: Array) -> float:
    return pool(table).p_value


def _naive(table: Array) -> float:
    rest = table - table.mean(axis=1, keepdims=True)
    variance = float((rest**2).sum()) / (WORKLOADS * (table.shape[1] - 1))
    return float(2 * stats.norm.sf(abs(table.mean()) / math.sqrt(variance / table.size)))


def _by_start(table: Array) -> float:
    return float(stats.ttest_1samp(table.mean(axis=0), 0.0).pvalue)


def _suspected(rng: np.random.Generator, effects: Array, *, level: float) -> NDArray[np.bool_]:
    significant: NDArray[np.bool_] = _t_values(rng, effects, sd=0.0155, df=12) <= level
    return significant & (np.abs(effects) >= HALF_GATE)


def _t_values(rng: np.random.Generator, effects: Array, *, sd: float, df: int) -> Array:
    """p-values of effects whose standard error is estimated with so many degrees of freedom."""
    error = sd * np.sqrt(rng.chisquare(df, effects.shape) / df)
    p_values: Array = 2 * stats.t.sf(np.abs(effects) / error, df)
    return p_values


def _simulate(trials: int, once: Callable[[np.random.Generator], float]) -> Array:
    rng = np.random.default_rng(SEED)
    return np.array([once(rng) for _ in range(trials)])


def _shares(p_values: Array, *alphas: float) -> list[str]:
    return [_percent(p_values <= alpha) for alpha in alphas]


def _percent(hits: ArrayLike) -> str:
    return f"{100 * float(np.mean(np.asarray(hits))):.1f} %"


GROUPS: Final = {
    "family": family,
    "streams": streams,
    "stages": stages,
    "pairs": pairs,
    "histories": histories,
    "runs": runs,
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or GROUPS:
        print(f"\n{chosen}")
        GROUPS[chosen]()
