"""Robust location, scale and autocorrelation of a stretch of logs; it knows nothing of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

#: No series is believed to be steadier than 0.01 %: the last digit of a report is not noise.
SD_FLOOR = 1e-4
#: Makes the median absolute deviation estimate a Gaussian standard deviation.
MAD_TO_SD = 1.4826
#: Points further than this from the median are left out of the scale; what is left of a Gaussian
#: has CORE_SHARE of its variance.
CORE_CUT = 2.7
CORE_SHARE = 0.943
#: Points that the noise of the stretch before a change counts for in the new one. Histories that
#: change every twenty builds are lost with 5 to 15, and then take their changes for noise.
BORROWED_WEIGHT = 40
#: Cut of residuals, in sds.
CLIP = 3.0


def median(values: Array) -> float:
    """The median; a fifth of the cost of numpy's on a hundred points, where calls are many."""
    ranked = values.copy()
    low, high = (values.size - 1) // 2, values.size // 2
    ranked.partition((low, high))
    return float(ranked[low] + ranked[high]) / 2


def core(stretch: Array, borrowed_sd: float | None) -> tuple[float, float]:
    """Mean and sd of the core of a stretch: what lies far off is left out, not pulled in.

    Pulling outliers in would inflate the scale of a stretch with a minor mode, and with it the cut:
    simulated, 5 % instead of 1 % false alarms at one commit in five 6 sd away.
    """
    centre = median(stretch)
    off = np.abs(stretch - centre)
    size = stretch.size
    mad = MAD_TO_SD * median(off) * (1 + 1 / size)
    known, weight = (borrowed_sd, BORROWED_WEIGHT) if borrowed_sd else (0.0, 0)
    mad = float(np.sqrt((weight * known**2 + size * mad**2) / (weight + size)))
    if mad < SD_FLOOR:
        # More than half of the values are equal: rounded numbers still have a mean deviation.
        mad = max(float(off.mean()) * 1.2533, SD_FLOOR)
    kept = stretch[off <= CORE_CUT * mad]
    mean = float(kept.mean())
    scatter = float(np.sum((kept - mean) ** 2)) / CORE_SHARE
    variance = (weight * known**2 + scatter) / max(weight + kept.size - 1, 1)
    return mean, max(float(np.sqrt(variance)), SD_FLOOR)


def clipped_noise(stretch: Array) -> tuple[float, float]:
    """Sd and lag-1 autocorrelation (0 to 0.8) of a stretch without changes, outliers cut."""
    centre, sd = core(stretch, None)
    scores = np.clip((stretch - centre) / sd, -CLIP, CLIP)
    scores = scores - scores.mean()
    scatter = float(np.sum(scores**2))
    rho = float(np.sum(scores[1:] * scores[:-1])) / max(scatter, 1e-9)
    return sd * float(np.sqrt(scatter / max(scores.size - 1, 1))), min(max(rho, 0.0), 0.8)


def step_sd(logs: Array) -> float:
    """Sd of a point about its level from differences of neighbours, which levels do not disturb."""
    steps = np.diff(logs)
    steps = steps - median(steps)
    return max(MAD_TO_SD * median(np.abs(steps)) / float(np.sqrt(2)), SD_FLOOR)
