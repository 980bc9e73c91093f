"""Sparklines: a series of numbers as the points of a small line, drawn without a script.

Numbers come in, coordinates of an SVG polyline go out. It knows nothing of what they count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH: Final = 120
HEIGHT: Final = 28
#: So that the ends of the line and its last point are not cut off.
_MARGIN: Final = 4
#: The least that a line spans, of its largest value: ordinary noise must not look like a mountain.
_SPAN_MIN: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class Sparkline:
    """A line, and where it ends."""

    points: str
    last_x: float
    last_y: float
    #: What a reader who does not see it is told.
    label: str


def sparkline(values: Sequence[float], *, label: str) -> Sparkline | None:
    """Return the line through values, oldest first; None where there are fewer than two."""
    if len(values) < 2:  # noqa: PLR2004  one point is no line
        return None
    low, high = min(values), max(values)
    spare = max(0.0, _SPAN_MIN * abs(high) - (high - low))
    low, high = low - spare / 2, high + spare / 2
    span = (high - low) or 1.0
    step = (WIDTH - 2 * _MARGIN) / (len(values) - 1)
    places = [
        (
            round(_MARGIN + number * step, 1),
            round(_MARGIN + (high - value) / span * (HEIGHT - 2 * _MARGIN), 1),
        )
        for number, value in enumerate(values)
    ]
    last_x, last_y = places[-1]
    return Sparkline(
        points=" ".join(f"{x:g},{y:g}" for x, y in places),
        last_x=last_x,
        last_y=last_y,
        label=label,
    )
