"""What a history says: values in commit order come in through the door, a `History` goes out.

Here are the door and the answers; the judging is in `detectors.changepoints`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from detectors.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from detectors.change import Change, Interval

#: Longest history that is answered: a million points take seconds, and nobody has ten.
LENGTH_MAX = 2_000_000


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A steady slope through a history, beside its changes."""

    #: Log units per commit.
    slope: float
    #: Of the slope.
    interval: Interval
    p_value: float
    #: Slope times length: the log ratio of the last level over the first that drift explains.
    total: float
    #: Commits that the slope was fitted to.
    n: int


@dataclass(frozen=True, kw_only=True)
class HistoryNoise:
    """Noise of a history about its levels and drift, in log units."""

    sd: float
    #: Lag-1 autocorrelation, never below zero.
    rho: float
    #: Two modes: the residuals fall into two groups rather than scatter about one level.
    multimodal: bool


@dataclass(frozen=True, kw_only=True)
class History:
    """Everything found in one history; indices count missing commits too."""

    changes: tuple[Change, ...]
    drift: Drift | None
    #: Single points set aside: far off their level, and their neighbours are not.
    spikes: tuple[int, ...]
    #: None where there are too few points to tell.
    noise: HistoryNoise | None
    n_points: int
    n_missing: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Commits:
    """Measured commits: logs, and where each stands in the input."""

    logs: NDArray[np.float64]
    index: NDArray[np.int64]
    n_input: int


def read_values(values: ArrayLike, *, first: int = 0) -> Commits:
    """Logs of the measured commits of a history.

    Args:
        values: 1-D, in natural units and commit order; NaN marks a commit without a result.
        first: Position of the first value in the whole history, for messages.

    Raises:
        DataError: it is empty, not 1-D, not numbers, too long, or has an infinite, zero or
            negative value; the message names the position.
    """
    try:
        series = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"a history has to be numbers in commit order ({error})") from error
    if series.ndim != 1:
        raise DataError(f"a history has to be 1-D, one value per commit, not {series.ndim}-D")
    if not series.size:
        raise DataError("the history is empty: pass at least one value per measured commit")
    if series.size > LENGTH_MAX:
        raise DataError(
            f"the history has {series.size} values; at most {LENGTH_MAX} are examined, so pass "
            f"the newest ones"
        )
    missing = np.isnan(series)
    bad = np.flatnonzero(~missing & ~((series > 0) & np.isfinite(series)))
    if bad.size:
        raise DataError(
            f"value {first + bad[0]} of the history is {series[bad[0]]}; values have to be "
            f"positive and finite: pass NaN for a commit without a result"
        )
    index = np.flatnonzero(~missing)
    return Commits(logs=np.log(series[index]), index=index, n_input=series.size)
