"""Rows "null streams": a series without any change, looked at after each of 100 commits.

A stream is alarmed if any of its 100 looks shows any change, as a user would have seen.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.detection.ours import OURS, PERFHERDER
from benchmarks.detection.peers import OTAVA, PELT, split
from benchmarks.detection.row import Row, share
from detectors.synthetic import (
    PLAIN,
    Autoregressive,
    Gaussian,
    Modes,
    Noise,
    Spikes,
    StickyModes,
    Student,
    history,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.detection.row import Settings
    from benchmarks.peers.looking import Look

COMMITS: Final = 100
#: Looks at our own streams: a share of 1 % is then known to about 0.7 %.
TRIALS: Final = 800
#: The peers cost more per look, and their shares are large.
PEER_TRIALS: Final = 150

_IN_MODE: Final = Gaussian(sd=0.02)

#: Name, noise, largest share of streams that may alarm.
KINDS: Final[tuple[tuple[str, Noise, str], ...]] = (
    ("Gaussian", PLAIN, "<= 1 %"),
    ("AR(1) .5", Autoregressive(rho=0.5, sd=0.02), "<= 2 %"),
    ("Student t(3)", Student(df=3.0, sd=0.02), "<= 2 %"),
    ("3 % spikes of -20 %", PLAIN + Spikes(), "<= 2 %"),
    ("two modes 50/50, 4 sd apart", _IN_MODE + Modes(gap=0.08), "<= 2 %"),
    ("two modes 80/20, 4 sd apart", _IN_MODE + Modes(gap=0.08, share=0.2), "<= 2 %"),
    ("two modes 50/50, 6 sd apart", _IN_MODE + Modes(gap=0.12), "<= 2 %"),
    ("two modes that stay 5 commits, 4 sd apart", _IN_MODE + StickyModes(gap=0.08, dwell=5.0), "-"),
)


def rows(settings: Settings) -> Iterator[Row]:
    """Return one row for each kind of noise."""
    trials, few = settings.trials(TRIALS), settings.trials(PEER_TRIALS)
    sets = []
    for number, (_, noise, _) in enumerate(KINDS):
        rng = np.random.default_rng([settings.seed, number])
        sets.append(list(history(rng, (trials, COMMITS), noise=noise)))
    began = time.perf_counter()
    asked = [series for one in sets for series in one[:few]]
    theirs = {
        peer.name: split(peer.looks(asked, until_alarm=True).found, [few] * len(sets))
        for peer in (OTAVA, PELT, PERFHERDER)
    }
    each = (time.perf_counter() - began) / len(sets)
    for number, (name, _, aim) in enumerate(KINDS):
        began = time.perf_counter()
        ours = OURS.looks(sets[number], until_alarm=True).found
        yield Row(
            what=f"null streams alarmed within {COMMITS} commits, {name}",
            aim=aim,
            ours=share(_alarmed(ours), trials),
            peers={peer: share(_alarmed(found[number]), few) for peer, found in theirs.items()},
            trials=f"{trials}, peers {few}",
            seconds=each + time.perf_counter() - began,
        )


def _alarmed(found: Sequence[Sequence[Look]]) -> int:
    return sum(bool(looks) for looks in found)
