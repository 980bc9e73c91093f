"""Rows "step": a step planted into Gaussian noise of 2 %, looked at after every commit.

Found means that the last look has a change within 2 commits of the step. The delay is the number of
commits from the step to the first look that shows any change, infinite if none does, of streams
that showed none before it; those that did are counted as alarmed too early, beside it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.detection.ours import OURS, PERFHERDER
from benchmarks.detection.peers import OTAVA, PELT, split
from benchmarks.detection.row import Row, share
from detectors.synthetic import Gaussian, history

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.detection.row import Settings
    from benchmarks.peers.looking import Look

COMMITS: Final = 100
SD: Final = 0.02
TRIALS: Final = 400
PEER_TRIALS: Final = 100
NEAR: Final = 2

#: Where the step is, how many sds it has, the aim.
STEPS: Final = (
    (60, 1.0, "-"),
    (60, 2.0, ">= 95 %; <= 5"),
    (60, 3.0, "-"),
    (60, 4.0, "-"),
    (40, 2.0, "-"),
    (20, 2.0, "-"),
)


@dataclass(frozen=True, kw_only=True)
class Scored:
    """How one detector did on a set of streams with one step each."""

    trials: int
    found: int
    #: Commits from step to first alarm, of streams not alarmed before; infinite without one.
    delays: tuple[float, ...]
    #: Streams that alarmed before the step.
    early: int

    @property
    def text(self) -> str:
        """Power, delay and false alarms before the step."""
        middle = median(self.delays) if self.delays else math.inf
        delay = f"{middle:g}" if math.isfinite(middle) else "never"
        return f"{share(self.found, self.trials)}; {delay}; {share(self.early, self.trials)}"


def rows(settings: Settings) -> Iterator[Row]:
    """Return one row for each step."""
    trials, few = settings.trials(TRIALS), settings.trials(PEER_TRIALS)
    sets = []
    for number, (at, size, _) in enumerate(STEPS):
        rng = np.random.default_rng([settings.seed, 100 + number])
        noise, step = Gaussian(sd=SD), {at: -size * SD}
        sets.append(list(history(rng, (trials, COMMITS), noise=noise, steps=step)))
    began = time.perf_counter()
    asked = [series for one in sets for series in one[:few]]
    theirs = {
        peer.name: split(peer.looks(asked, until_alarm=False).found, [few] * len(sets))
        for peer in (OTAVA, PELT, PERFHERDER)
    }
    each = (time.perf_counter() - began) / len(sets)
    for number, (at, size, aim) in enumerate(STEPS):
        began = time.perf_counter()
        ours = OURS.looks(sets[number], until_alarm=False).found
        yield Row(
            what=f"step of {size:g} sd at {at} of {COMMITS}: power; median commits to alarm "
            f"(bound {lorden(size):.1f}); alarmed before it",
            aim=aim,
            ours=score(ours, at=at).text,
            peers={peer: score(found[number], at=at).text for peer, found in theirs.items()},
            trials=f"{trials}, peers {few}",
            seconds=each + time.perf_counter() - began,
        )


def lorden(size: float, *, mean_commits: float = 10_000.0) -> float:
    """Return the shortest mean delay possible at one false alarm in so many commits (Lorden 1971).

    1 % of streams of 100 commits is one alarm in about 10,000 commits.
    """
    return math.log(mean_commits) / (size**2 / 2.0)


def score(found: Sequence[Sequence[Look]], *, at: int) -> Scored:
    """Score the looks at streams whose only step is at `at`."""
    hits, early, delays = 0, 0, []
    for looks in found:
        last = looks[-1][1] if looks else []
        hits += any(abs(index - at) <= NEAR for index in last)
        alarms = [length for length, seen in looks if seen]
        if alarms and alarms[0] <= at:
            early += 1
        else:
            delays.append(alarms[0] - at if alarms else math.inf)
    return Scored(trials=len(found), found=hits, delays=tuple(delays), early=early)
