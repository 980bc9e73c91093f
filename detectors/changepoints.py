"""Change points on a history: values in commit order come in, changes with their evidence go out.

Made to be asked again after every commit: a change is only reported when, on some commit up to
now, the scan alarmed (`detectors.alarms`), and is deleted again when later commits refute it
(`detectors.levels`) or one slow slope explains it better (`detectors.drift`). It does not know
whether less is worse, nor how much matters.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from detectors.alarms import FIRST, Scan, scan
from detectors.drift import Explained, explain
from detectors.evidence import check_confidence, t_change
from detectors.history import History, HistoryNoise, read_values
from detectors.levels import level, settle
from detectors.modes import find_modes
from detectors.spread import MAD_TO_SD, SD_FLOOR, core, median, step_sd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from detectors.change import Change
    from detectors.history import Commits

    Array = NDArray[np.float64]

METHOD = "sequential-scan 1"
#: Places and lengths that 100 commits offer to luck: a Student p-value is multiplied by this. Of
#: Gaussian streams scanned with next to no threshold 0.6 % then have a change with p at or below
#: 1 %, and 1.4 % one with p at or below 5 %: it errs on the safe side.
LOOKS = 15.0
#: Points further off their level than this many robust sds are spikes, if alone.
SPIKE_CUT = 5.0
#: So few points after a change may still move it.
YOUNG = 8
#: With fewer points nothing is said about noise.
NOISE_POINTS_MIN = 5


def find_changes(values: ArrayLike, *, confidence: float = 0.95) -> list[Change]:
    """Changes of level in a history, oldest first.

    Args:
        values: 1-D, in natural units and commit order; NaN marks a commit without a result.
        confidence: Coverage of the intervals.

    Raises:
        DataError: it is empty, not 1-D, too long, or has an infinite, zero or negative value, or
            confidence is outside (0, 1).
    """
    check_confidence(confidence)
    commits = read_values(values)
    alarms = scan(commits.logs, Scan()).alarms
    return list(judge(commits, alarms, confidence=confidence)[0])


def examine(values: ArrayLike, *, confidence: float = 0.95) -> History:
    """Changes, drift, spikes and noise of a history; `changes` are those of `find_changes`.

    Raises:
        DataError: as for `find_changes`.
    """
    check_confidence(confidence)
    commits = read_values(values)
    alarms = scan(commits.logs, Scan()).alarms
    changes, explained = judge(commits, alarms, confidence=confidence, drift_alone=True)
    drift = explained.drift
    logs = commits.logs
    residuals, noise = np.zeros(0), None
    if logs.size >= NOISE_POINTS_MIN:
        residuals = _residuals(logs, explained)
        sd, rho = _noise(residuals, len(changes) + 1)
        noise = HistoryNoise(sd=sd, rho=rho, multimodal=find_modes(residuals) is not None)
    return History(
        changes=changes,
        drift=drift,
        spikes=tuple(int(commits.index[at]) for at in _spikes(residuals)),
        noise=noise,
        n_points=logs.size,
        n_missing=commits.n_input - logs.size,
        warnings=_warnings(logs, noise),
    )


def judge(
    commits: Commits, alarms: Sequence[int], *, confidence: float, drift_alone: bool = False
) -> tuple[tuple[Change, ...], Explained]:
    """The changes among the alarms that hold today, and the slope beside them.

    Args:
        commits: The measured history.
        alarms: From `detectors.alarms.scan` over `commits.logs`.
        confidence: Coverage of the intervals.
        drift_alone: Look for a slope even where nothing alarmed.
    """
    logs = commits.logs
    explained = Explained(places=tuple(settle(logs, alarms)), drift=None)
    if explained.places or drift_alone:
        explained = explain(logs, explained.places, confidence=confidence)
    if not explained.places:
        return (), explained
    slope = explained.drift.slope if explained.drift else 0.0
    level_logs = logs - slope * np.arange(logs.size)
    residuals = _residuals(logs, explained)
    sd, rho = _noise(residuals, len(explained.places) + 1)
    edges = [0, *explained.places, logs.size]
    noise = step_sd(logs)
    levels = [level(level_logs, start, stop, noise) for start, stop in pairwise(edges)]
    changes = []
    for old, new in pairwise(levels):
        change = _change(
            effect=new.mean - old.mean,
            sizes=(old.stop - old.start, new.stop - new.start),
            noise=(sd, rho, logs.size),
            confidence=confidence,
        )
        changes.append(replace(change, index=int(commits.index[new.start])))
    return tuple(changes), explained


def _change(
    *, effect: float, sizes: tuple[int, int], noise: tuple[float, float, int], confidence: float
) -> Change:
    """The difference of two means of autocorrelated points."""
    sd, rho, n = noise
    shares = [_mean_variance(rho, size) for size in sizes]
    df = max(n * (1 - rho**2) / (1 + rho**2) - 2, 2.0)
    warnings: tuple[str, ...] = ()
    if sizes[1] < YOUNG:
        warnings = (f"only {sizes[1]} points at the new level: its place and size may still move",)
    change = t_change(
        effect=effect,
        variance=sd**2 * sum(shares),
        df=df,
        confidence=confidence,
        n_baseline=sizes[0],
        n_candidate=sizes[1],
        method=METHOD,
        warnings=warnings,
    )
    return replace(change, p_value=min(1.0, LOOKS * change.p_value))


def _mean_variance(rho: float, size: int) -> float:
    """Variance of the mean of `size` points of an AR(1) of variance 1."""
    tail = 2 * rho * (1 - rho**size) / (size * (1 - rho) ** 2)
    return ((1 + rho) / (1 - rho) - tail) / size


def _residuals(logs: Array, explained: Explained) -> Array:
    """Logs about their levels and slope."""
    slope = explained.drift.slope if explained.drift else 0.0
    flat = logs - slope * np.arange(logs.size)
    edges = [0, *explained.places, logs.size]
    return np.concatenate(
        [flat[start:stop] - median(flat[start:stop]) for start, stop in pairwise(edges)]
    )


def _noise(residuals: Array, n_levels: int) -> tuple[float, float]:
    """Sd and lag-1 autocorrelation of residuals, outliers cut, both corrected for the levels."""
    _, sd = core(residuals, None)
    scores = np.clip(residuals / sd, -3, 3)
    scores = scores - scores.mean()
    n = residuals.size
    scatter = float(np.sum(scores**2))
    rho = float(np.sum(scores[1:] * scores[:-1])) / max(scatter, 1e-9)
    rho = min(max((rho + n_levels / n) / max(1 - 3 * n_levels / n, 0.4), 0.0), 0.9)
    lost = min(n_levels * (1 + rho) / (1 - rho), n / 2)
    return max(sd * math.sqrt(scatter / (n - lost)), SD_FLOOR), rho


def _spikes(residuals: Array) -> list[int]:
    if not residuals.size:
        return []
    sd = max(MAD_TO_SD * median(np.abs(residuals)), SD_FLOOR)
    far = np.abs(residuals) > SPIKE_CUT * sd
    alone = far.copy()
    alone[1:] &= ~far[:-1]
    alone[:-1] &= ~far[1:]
    return [int(at) for at in np.flatnonzero(alone)]


def _warnings(logs: Array, noise: HistoryNoise | None) -> tuple[str, ...]:
    warnings = []
    if logs.size <= FIRST:
        warnings.append(f"{logs.size} measured commits: changes are looked for from {FIRST + 1} on")
    if logs.size > 1 and np.ptp(logs) == 0:
        warnings.append("all values are equal: there is no noise to judge a change by")
    if noise is not None and noise.multimodal:
        warnings.append("values fall into two modes: the level lies between them")
    return tuple(warnings)
