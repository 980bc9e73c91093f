"""Whether one step explains what was measured, or a range holds several of them, or a fix.

A bisect document that is over comes in; the commits that lie off the level their place has go out,
and the steps that these show. The search itself knows one step only, so this is what says that
there are more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scipy import special

from bisects.document import BisectEnd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


@dataclass(frozen=True, kw_only=True)
class OtherStep:
    """A step that the answer does not name: a commit after one of these, up to the other, made it.

    Both are measured commits, the first of them or the good end.
    """

    after: int
    up_to: int
    #: Log ratio of the level from it on over that before it.
    size: float
    #: Of the level before it to the good end.
    before: float


@dataclass(frozen=True, kw_only=True)
class _Levels:
    """What was measured, by place."""

    values: dict[int, list[float]]
    #: First place of the level after the answer; behind all places where nothing changed.
    step: int

    def mean(self, places: Sequence[int]) -> float:
        """Mean of what was measured at these places."""
        values = [value for place in places for value in self.values[place]]
        return math.fsum(values) / len(values) if values else 0.0

    def starts(self, places: Sequence[int]) -> int:
        """Starts of these places."""
        return sum(len(self.values[place]) for place in places)

    @property
    def noise(self) -> tuple[float, int]:
        """Standard deviation of one start about the mean of its commit, and what it is worth."""
        squares = sum(
            (value - self.mean([place])) ** 2 for place, own in self.values.items() for value in own
        )
        df = sum(len(own) - 1 for own in self.values.values())
        return (math.sqrt(squares / df) if df else 0.0), df

    @property
    def cut(self) -> float:
        """How far the mean of one start would have to lie from its level to be off it."""
        sd, df = self.noise
        return float(special.stdtrit(df, 1 - CHANCE / len(self.values) / 2)) * sd

    def cut_about(self, one: Sequence[int], other: Sequence[int]) -> float:
        """Return the same by what remains about three levels: the good end's, and those of these.

        Commits of a level are not told apart by it, which is worth more degrees of freedom than
        commits of two starts have.
        """
        known = dict.fromkeys(one, self.mean(one)) | dict.fromkeys(other, self.mean(other))
        rest = [
            value - known.get(place, 0.0) for place, own in self.values.items() for value in own
        ]
        df = len(rest) - 2
        sd = math.sqrt(math.fsum(value**2 for value in rest) / df)
        return float(special.stdtrit(df, 1 - CHANCE / len(self.values) / 2)) * sd

    @property
    def smallest(self) -> float:
        """The smallest difference that is a step."""
        return STEP_SHARE * max(abs(self.mean([place])) for place in self.values)


def off_levels(document: BisectDocument) -> tuple[OffLevel, ...]:
    """Return the commits that the answer does not explain, in the order of the range."""
    levels = _levels(document)
    return () if levels is None else tuple(_off(levels))


def other_steps(document: BisectDocument) -> tuple[OtherStep, ...]:
    """Return the steps that the answer does not name, in the order of the range."""
    levels = _levels(document)
    return () if levels is None else (*_before(levels), *_after(levels))


def noise_of(document: BisectDocument) -> tuple[float, int]:
    """Return the noise of one start within commits, and its degrees of freedom; 0 for none."""
    values = _values(document)
    return _Levels(values=values, step=len(document.commits)).noise if values else (0.0, 0)


def _levels(document: BisectDocument) -> _Levels | None:
    """Return what was measured, None where too little was, or the search has no answer."""
    if document.end not in _ENDS:
        return None
    step = document.culprits[0] if document.culprits else len(document.commits)
    levels = _Levels(values=_values(document), step=step)
    return levels if levels.noise[1] >= DF_MIN else None


def _off(levels: _Levels) -> Iterator[OffLevel]:
    above = levels.mean([place for place in levels.values if place >= levels.step])
    cut, smallest = levels.cut, levels.smallest
    for place, own in sorted(levels.values.items()):
        off = levels.mean([place]) - (above if place >= levels.step else 0.0)
        clear = abs(off) > cut / math.sqrt(len(own)) and abs(off) >= smallest
        if clear and len(own) >= STARTS_MIN:
            yield OffLevel(commit=place, off=off)


def _before(levels: _Levels) -> Iterator[OtherStep]:
    """Give the steps before the answer, where the level should be that of the good end."""
    off = {one.commit: one.off for one in _off(levels)}
    previous, level = 0, 0.0
    for place in sorted(levels.values):
        if place >= levels.step or len(levels.values[place]) < STARTS_MIN:
            continue
        here = off.get(place, 0.0)
        if abs(here - level) >= levels.smallest:
            yield OtherStep(after=previous, up_to=place, size=here - level, before=level)
            level = here
        previous = place


def _after(levels: _Levels) -> Iterator[OtherStep]:
    """Give the one step after the answer that is the clearest, if one is clear."""
    places = sorted(place for place in levels.values if place >= levels.step)
    best, found = 1.0, None
    for split in range(1, len(places)):
        one, other = places[:split], places[split:]
        starts = levels.starts(one), levels.starts(other)
        size = levels.mean(other) - levels.mean(one)
        cut = levels.cut_about(one, other) * math.sqrt(1 / starts[0] + 1 / starts[1])
        clear = abs(size) > best * cut and abs(size) >= levels.smallest
        if clear and min(starts) >= STARTS_MIN:
            best = abs(size) / max(cut, 1e-300)
            before = levels.mean(one)
            found = OtherStep(after=one[-1], up_to=other[0], size=size, before=before)
    if found is not None:
        yield found


def _values(document: BisectDocument) -> dict[int, list[float]]:
    values: dict[int, list[float]] = {}
    for observation in document.observations:
        if observation.log_ratios:
            values.setdefault(observation.commit, []).extend(observation.log_ratios)
    return values
