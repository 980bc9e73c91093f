"""Finding a slow commit: `make bench-bisect`, searches in simulated histories beside others' ways.

Every figure comes from this run. Our search has the good end's artifact beside every measurement,
as `forkwatch bisect` has; git bisect and git_bayesect are told the true threshold and Pinpoint's
rule the true size. A row takes its histories anew from the seed, the same ones for every search.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.stats import binomtest

from benchmarks.bisect import ahead, bounds
from benchmarks.bisect.histories import Kind, Told, draw
from benchmarks.bisect.searches import LIMIT, STOP, Found, Pinpoint, git_bisect, ours
from benchmarks.detection.peers import BAYESECT
from benchmarks.detection.row import markdown, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.bisect.histories import History

    Search = Callable[[History, np.random.Generator], Found]

SIZES: Final = (1.0, 2.0, 3.0, 5.0)
COMMITS: Final = (16, 64, 256, 1024)
TRIALS: Final = 300
#: Pinpoint compares by ranks, which takes a hundred times as long as a bisection's arithmetic.
SLOW_TRIALS: Final = 40
#: What is aimed at: measurements by the bound, and the share of right answers at STOP.
BOUND_AIM: Final = 1.6
#: The search that the aims are for, because a bisect follows an alert.
AIMED: Final = "forkwatch, after an alert"
HEADINGS: Final = (
    "history",
    "search",
    "measurements, mean (p95)",
    "of the bound",
    "builds",
    "minutes, mean (p95)",
    "right [95 %]",
    "said",
    "gave up",
    "named",
    "aims",
    "trials",
)


def main() -> None:
    """Search in every kind of history and print the table; progress goes to stderr."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the trials")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--only", default="", help="rows whose name has this in it; `ahead` alone")
    parser.add_argument("--ours", action="store_true", help="leave the others' ways out")
    chosen = parser.parse_args()
    began = time.perf_counter()
    lines: list[tuple[str, ...]] = []
    for number, kind in enumerate(kinds()):
        if chosen.only not in kind.words:
            continue
        print(f"{kind.words} ...", file=sys.stderr, flush=True)
        rows = _rows(kind, number, scale=chosen.scale, seed=chosen.seed, others=not chosen.ours)
        for line in rows:
            print(f"  {' | '.join(line[1:])}", file=sys.stderr, flush=True)
            lines.append(line)
    if lines:
        print(markdown(lines, HEADINGS))
        print(f"\n{_aims(lines)}")
    if chosen.only in {"", "ahead"}:
        print("building ahead ...", file=sys.stderr, flush=True)
        print(f"\n{ahead.table(scale=chosen.scale, seed=chosen.seed)}")
    print(f"\n{time.perf_counter() - began:.0f} s, seed {chosen.seed}, scale {chosen.scale:g}")


def kinds() -> Iterator[Kind]:
    """Give the rows' histories; new ones come last, because a row's seed is its place."""
    for commits in COMMITS:
        for size in SIZES:
            yield Kind(commits=commits, size=size)
    yield Kind(commits=64, size=0.0)
    for size in SIZES:
        yield Kind(commits=64, size=size, broken=True)
    for size in SIZES:
        yield Kind(commits=64, size=size, informed=True)
    for size in SIZES:
        yield Kind(commits=64, size=size, broken=True, informed=True, cached=False)
    for size in SIZES:
        yield Kind(commits=64, size=size, cached=False)
    for told in Told:
        for size in SIZES:
            yield Kind(commits=64, size=size, cached=False, told=told)


def _rows(
    kind: Kind, number: int, *, scale: float, seed: int, others: bool
) -> Iterator[tuple[str, ...]]:
    trials, few = (max(4, round(usual * scale)) for usual in (TRIALS, SLOW_TRIALS))
    for name, search in _searches().items():
        yield _line(kind, name, _run(search, kind, trials, [seed, number]))
    if not (kind.size and others):
        return
    for repeats in (1, 5):
        found = _run(partial(git_bisect, repeats=repeats), kind, trials, [seed, number])
        yield _line(kind, f"git bisect, {repeats} x, true threshold", found)
    pinpoint = Pinpoint(kind.size, np.random.default_rng([seed, number, 1]))
    yield _line(
        kind, "Pinpoint's rule, true size", _run(pinpoint.search, kind, few, [seed, number])
    )
    if not (kind.broken or kind.informed or kind.told) and kind.cached:
        yield _bayesect(kind, few, seed + number)


def _searches() -> dict[str, Search]:
    return {
        AIMED: partial(ours, after_alert=True, anchored=True),
        "forkwatch": partial(ours, after_alert=False, anchored=True),
        "forkwatch, good end measured": partial(ours, after_alert=False, anchored=False),
    }


def _run(
    search: Search, kind: Kind, trials: int, seed: Sequence[int]
) -> list[tuple[Found, History]]:
    """Search in the first histories of a seed, which are the same for every search."""
    ends = []
    for trial in range(trials):
        history = draw(kind, np.random.default_rng([*seed, 2, trial]))
        ends.append((search(history, np.random.default_rng([*seed, 3, trial])), history))
    return ends


def _line(kind: Kind, name: str, ends: Sequence[tuple[Found, History]]) -> tuple[str, ...]:
    measured = np.array([found.measurements for found, _ in ends])
    minutes = np.array([found.minutes for found, _ in ends])
    answered = [(found, history) for found, history in ends if found.named]
    # A set is right when the culprit is in it; how large sets are is a column of its own.
    right = sum(history.culprit in found.named for found, history in answered)
    sizes = [len(found.named) for found, _ in answered]
    said = [found.said for found, _ in answered if math.isfinite(found.said)]
    bound = bounds.measurements(kind.commits, kind.size, stop=STOP) if kind.size else math.nan
    ratio = float(measured.mean()) / bound
    return (
        kind.words,
        name,
        _mean(measured),
        f"{ratio:.2f}" if kind.size else "-",
        f"{np.mean([found.builds for found, _ in ends]):.1f}",
        _mean(minutes),
        share(right, len(ends)),
        f"{100 * np.mean(said):.1f} %" if said else "-",
        f"{len(ends) - len(answered)}",
        f"{np.mean(sizes):.2f}" if sizes else "-",
        _met(ratio, right, len(ends)) if name == AIMED else "-",
        str(len(ends)),
    )


def _met(ratio: float, right: int, trials: int) -> str:
    """Return whether a row meets the aims; a share that may be as high does, by its interval."""
    interval = binomtest(right, trials).proportion_ci(confidence_level=0.95, method="exact")
    near = math.isnan(ratio) or ratio <= BOUND_AIM
    return "yes" if near and interval.high >= STOP else "NO"


def _aims(lines: Sequence[tuple[str, ...]]) -> str:
    """Return in how many rows the aims are met, and which rows miss them."""
    judged = [line for line in lines if line[HEADINGS.index("aims")] != "-"]
    missed = [line[0] for line in judged if line[HEADINGS.index("aims")] == "NO"]
    met = f"{len(judged) - len(missed)} of {len(judged)} kinds of history"
    aims = f"{BOUND_AIM:g} times the bound and {100 * STOP:.0f} % right after an alert: {met}"
    return f"{aims}; missed in: {'; '.join(missed)}" if missed else aims


def _bayesect(kind: Kind, trials: int, seed: int) -> tuple[str, ...]:
    rng = np.random.default_rng(seed)
    found = BAYESECT.ask(
        culprits=[int(one) for one in rng.integers(1, kind.commits, trials)],
        commits=kind.commits,
        shift=kind.size,
        stop=STOP,
        limit=LIMIT,
        seed=seed,
    ).found
    measured = np.array([one[0] for one in found])
    bound = bounds.measurements(kind.commits, kind.size, stop=STOP)
    return (
        kind.words,
        "git_bayesect, true threshold",
        _mean(measured),
        f"{measured.mean() / bound:.2f}",
        "-",
        "-",
        share(sum(one[1] for one in found), len(found)),
        "-",
        "-",
        "1.00",
        "-",
        str(len(found)),
    )


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    return f"{values.mean():.1f} ({np.quantile(values, 0.95):.0f})"


if __name__ == "__main__":
    main()
