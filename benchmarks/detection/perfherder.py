"""Perfherder's rule for alerts, written anew from a description of it; Mozilla's code is MPL-2.0.

At every point with 12 points before it, up to 24 points before and the 12 points from it on are
compared by a t statistic whose weights fall off linearly with the distance from the point. A change
is a local maximum of |t| above 7 whose weighted means differ by at least 2 %. What the description
leaves open is decided here in the rule's favour: the back window ends at the last change found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORE_WINDOW: Final = 12
BACK_WINDOW_MIN: Final = 12
BACK_WINDOW_MAX: Final = 24
T_MIN: Final = 7.0
RELATIVE_CHANGE_MIN: Final = 0.02


def find_alerts(values: list[float]) -> list[int]:
    """Return the first points of new levels."""
    points = np.asarray(values, dtype=np.float64)
    start = 0
    found: list[int] = []
    while True:
        index = _next_alert(points, start)
        if index is None:
            return found
        found.append(index)
        start = index


def _next_alert(points: NDArray[np.float64], start: int) -> int | None:
    """Return the first change after `start`, looking back no further than that."""
    places, t_values, changes = _statistics(points[start:])
    size = np.abs(t_values)
    # A place at either end has no neighbour to be smaller than.
    before, after = np.append(0.0, size[:-1]), np.append(size[1:], 0.0)
    alerts = (size > T_MIN) & (size >= before) & (size >= after)
    alerts &= np.abs(changes) >= RELATIVE_CHANGE_MIN
    return start + int(places[np.argmax(alerts)]) if np.any(alerts) else None


def _statistics(
    points: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the places with full windows, their t and their relative changes."""
    places = np.arange(BACK_WINDOW_MIN, points.size - FORE_WINDOW + 1)
    if not places.size:
        return places, np.empty(0), np.empty(0)
    fore = sliding_window_view(points, FORE_WINDOW)[places]
    padded = np.concatenate([np.full(BACK_WINDOW_MAX, np.nan), points])
    back = sliding_window_view(padded, BACK_WINDOW_MAX)[places][:, ::-1]
    old, new = _weigh(back), _weigh(fore)
    pooled = (old.variance * (old.count - 1) + new.variance * (new.count - 1)) / (
        old.count + new.count - 2
    )
    error = np.sqrt(pooled * (1.0 / old.count + 1.0 / new.count))
    # Constant windows have no spread: a difference between two of them is beyond doubt.
    gap = new.mean - old.mean
    t_values = np.divide(gap, error, out=np.copysign(np.inf, gap), where=error > 0.0)
    return places, np.where(gap == 0.0, 0.0, t_values), gap / old.mean


@dataclass(frozen=True, kw_only=True, eq=False)
class _Weighed:
    """Points, weighted means and variances of many windows."""

    count: NDArray[np.int64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]


def _weigh(nearest_first: NDArray[np.float64]) -> _Weighed:
    """Weigh windows, one in each row, the point nearest to the change first, NaN beyond the end."""
    there = np.isfinite(nearest_first)
    count = there.sum(axis=1)
    values = np.where(there, nearest_first, 0.0)
    weights = np.where(there, count[:, None] - np.arange(nearest_first.shape[1]), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    mean = np.sum(weights * values, axis=1)
    spread = np.sum(weights * (values - mean[:, None]) ** 2, axis=1)
    # What ddof=1 is for equal weights.
    variance = spread / (1.0 - np.sum(weights**2, axis=1))
    return _Weighed(count=count, mean=mean, variance=variance)
