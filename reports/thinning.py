"""Thinning: which of many points a chart draws, so that nothing that stands out is lost.

Lows, levels and highs of points in order come in, places go out. It knows nothing of commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: A chart is some 1,200 pixels wide at most: more marks than that lie on top of each other.
DRAWN_MAX: Final = 1_000
#: Of each stretch of neighbours the lowest and highest level, the lowest low and the highest high.
_KEPT_OF_EACH: Final = 4


@dataclass(frozen=True, kw_only=True)
class Span:
    """Where a point lies, with its lowest and highest start."""

    low: float
    level: float
    high: float


def kept(
    spans: Sequence[Span], *, always: Collection[int] = (), limit: int = DRAWN_MAX
) -> list[int]:
    """Return the places of the points to draw, in order: all of few, the extremes of many.

    Args:
        spans: The points in order.
        always: Places that are drawn whatever their neighbours, beside the `limit`.
        limit: Points beyond which neighbours stand for each other.
    """
    count = len(spans)
    if count <= limit:
        return list(range(count))
    chosen = {0, count - 1, *always}
    stretches = max(1, limit // _KEPT_OF_EACH)
    for number in range(stretches):
        places = range(number * count // stretches, (number + 1) * count // stretches)
        chosen.add(min(places, key=lambda place: spans[place].level))
        chosen.add(max(places, key=lambda place: spans[place].level))
        chosen.add(min(places, key=lambda place: spans[place].low))
        chosen.add(max(places, key=lambda place: spans[place].high))
    return sorted(chosen)
