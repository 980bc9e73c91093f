"""Simulated histories to search in: a culprit, noise, broken builds, and what is known of commits.

Random numbers come in, histories go out, in standard deviations of one measurement. A measurement
is the log ratio of one start of a pair, the commit beside the good end's artifact, as the
instrument makes it. Knows no search.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: sd of one start's log ratio of equal artifacts: 1.19 % for the mean of three starts, pooled over
#: five workloads (docs/measuring.md, part `aa`), times the root of three.
SD: Final = 0.0206
#: Share of commits that do not build, and of commits that touch nothing the workload runs.
BROKEN: Final = 0.10
ELSEWHERE: Final = 0.60
#: Share of commits that touch no source of the server, whatever it is that they touch, where what
#: is known of that is compared. A judgement: half of those that touch sources.
OUTSIDE: Final = 0.80
#: Prior weight of a commit that touches documentation or tests only, beside 1.
ELSEWHERE_WEIGHT: Final = 1e-3
#: A start of a pair with its share of the job's own time, and a build from nothing, in minutes:
#: what the demo's fork and MariaDB's own source take (docs/measuring.md).
MEASURE_MINUTES: Final = 0.5
BUILD_MINUTES: Final = 14.0


class Told(StrEnum):
    """What tells a search that a commit touches no source of the server."""

    NOTHING = "nothing"
    #: Those that touch documentation and tests alone.
    FILES = "files"
    #: Every one of them.
    BUILD = "build"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What histories of one row of the table have in common."""

    commits: int
    #: Size of the step in sds of one measurement; 0 for a range without one.
    size: float
    broken: bool = False
    informed: bool = False
    cached: bool = True
    #: Set where more commits lie outside of the server than their files tell.
    told: Told | None = None

    @property
    def words(self) -> str:
        """What the row is called."""
        step = f"{self.size:g} sd" if self.size else "no step"
        outside = f"{100 * OUTSIDE:.0f} % outside the server"
        more = [
            "10 % broken" if self.broken else "",
            "prior from files" if self.informed else "",
            f"{outside}, prior from {self.told.value}" if self.told else "",
            "" if self.cached else "nothing built",
        ]
        return ", ".join([f"{self.commits} commits", step, *filter(None, more)])


@dataclass(frozen=True, kw_only=True)
class History:
    """One range with its truth."""

    kind: Kind
    #: First slow commit, 1 to n - 1; 0 where nothing changed.
    culprit: int
    #: Signed size of the step, in sds.
    step: float
    #: Which commits do not build; the ends do.
    broken: NDArray[np.bool_]
    #: Weights of commits 1 to n - 1.
    weights: NDArray[np.float64]

    def value(self, commit: int, rng: np.random.Generator) -> float:
        """Return one measurement of a commit."""
        slow = 0 < self.culprit <= commit
        return SD * (self.step * slow + float(rng.standard_normal()))


def draw(kind: Kind, rng: np.random.Generator) -> History:
    """Return a history; the culprit is one of the commits that touch what the workload runs."""
    n = kind.commits
    elsewhere, known = _elsewhere(kind, rng)
    broken = rng.random(n) < BROKEN if kind.broken else np.zeros(n, dtype=bool)
    broken[[0, n - 1]] = False
    return History(
        kind=kind,
        culprit=int(rng.choice(1 + np.flatnonzero(~elsewhere))) if kind.size else 0,
        # Bisects look for losses and for gains, and no search here is told which.
        step=float(rng.choice([-1.0, 1.0])) * kind.size,
        broken=broken,
        weights=np.where(known, ELSEWHERE_WEIGHT, 1.0),
    )


def _elsewhere(kind: Kind, rng: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which commits touch nothing the workload runs, and of which that is known."""
    n = kind.commits
    share = OUTSIDE if kind.told else ELSEWHERE
    some = kind.informed or kind.told is not None
    elsewhere = rng.random(n - 1) < share if some else np.zeros(n - 1, dtype=bool)
    if elsewhere.all():
        elsewhere[int(rng.integers(n - 1))] = False
    known = elsewhere
    if kind.told is Told.NOTHING:
        known = np.zeros(n - 1, dtype=bool)
    elif kind.told is Told.FILES:
        known = elsewhere & (rng.random(n - 1) < ELSEWHERE / OUTSIDE)
    return elsewhere, known
