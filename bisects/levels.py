"""Whether one step explains what was measured, or a range holds several of them, or a fix.

A bisect document that is over comes in; the commits that lie off the level their place has go out.
The search itself knows one step only, so this is what says that there are more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scipy import special

from bisects.document import BisectEnd

if TYPE_CHECKING:
    from bisects.document import BisectDocument

#: Chance that a range of one step has any commit called off its level; a judgement, strict because
#: the place of the step was chosen to fit.
CHANCE: Final = 0.001
#: Below so much of the largest effect measured it is the ordinary difference of two builds, and
#: nobody's second step. A judgement.
STEP_SHARE: Final = 1 / 3
#: Degrees of freedom of the noise before anything is said.
DF_MIN: Final = 4
#: Starts of a commit before anything is said of it.
STARTS_MIN: Final = 2

_ENDS: Final = {BisectEnd.CULPRIT, BisectEnd.NOT_REPRODUCED}


@dataclass(frozen=True, kw_only=True)
class OffLevel:
    """A commit that lies where one step does not put it."""

    commit: int
    #: Log ratio to the level of its place.
    off: float


def off_levels(document: BisectDocument) -> tuple[OffLevel, ...]:
    """Return the commits that the answer does not explain, in the order of the range."""
    if document.end not in _ENDS:
        return ()
    values = _values(document)
    step = document.culprits[0] if document.culprits else len(document.commits)
    after = [value for place, own in values.items() if place >= step for value in own]
    above = math.fsum(after) / len(after) if after else 0.0
    squares = sum(
        (value - math.fsum(own) / len(own)) ** 2 for own in values.values() for value in own
    )
    df = sum(len(own) - 1 for own in values.values())
    if df < DF_MIN:
        return ()
    cut = float(special.stdtrit(df, 1 - CHANCE / len(values) / 2)) * math.sqrt(squares / df)
    largest = max(abs(math.fsum(own) / len(own)) for own in values.values())
    found = []
    for place, own in sorted(values.items()):
        off = math.fsum(own) / len(own) - (above if place >= step else 0.0)
        clear = abs(off) > cut / math.sqrt(len(own)) and abs(off) >= STEP_SHARE * largest
        if clear and len(own) >= STARTS_MIN:
            found.append(OffLevel(commit=place, off=off))
    return tuple(found)


def _values(document: BisectDocument) -> dict[int, list[float]]:
    values: dict[int, list[float]] = {}
    for observation in document.observations:
        if observation.log_ratios:
            values.setdefault(observation.commit, []).extend(observation.log_ratios)
    return values
