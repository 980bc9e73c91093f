"""The door for samples: starts of slices in natural units come in, checked levels in logs go out.

Everything behind this module works on the mean log of a start. It does not know which side of a
comparison it is reading; the caller passes words for the message of an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from detectors.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from numpy.typing import ArrayLike, NDArray

    #: One run: its starts, each a 1-D sequence of slices; a 2-D array (starts, slices) is one too,
    #: and so is what was made of either, for runs that are looked at several times.
    Samples: TypeAlias = "Sequence[ArrayLike] | NDArray[np.float64] | Starts"


@dataclass(frozen=True, kw_only=True, eq=False)
class Starts:
    """The starts of one run, reduced to what the statistics need; one entry per start."""

    #: Mean log of the slices of each start; NaN where a start has no slice.
    levels: NDArray[np.float64]
    #: Slices of each start.
    counts: NDArray[np.int64]
    #: Sum of squares of the logs about the level of each start.
    scatter: NDArray[np.float64]

    def __len__(self) -> int:
        """How many starts, as of a run that was not read yet."""
        return len(self.counts)

    # Each is worked out once: the noise of a series is looked at several times, of few numbers, and
    # numpy takes longer to begin than to count them.

    @cached_property
    def level(self) -> float:
        """Level of the run: every start counts the same, however many slices it has."""
        return float(np.mean(self.levels))

    @cached_property
    def shares(self) -> float:
        """Sum over starts of the share of the slice variance that is left in the start's level."""
        return float(np.sum(1.0 / self.counts))

    @cached_property
    def slice_share(self) -> float:
        """Share of the slice variance that is left in the level of the run."""
        return self.shares / self.counts.size**2

    @cached_property
    def slice_squares(self) -> float:
        """Sum of squares of slices about their start."""
        return float(np.sum(self.scatter))

    @cached_property
    def slice_df(self) -> int:
        """Degrees of freedom of the slices about their start."""
        return int(np.sum(self.counts - 1))

    @cached_property
    def start_squares(self) -> float:
        """Sum of squares of the levels of starts about that of the run."""
        return float(np.sum((self.levels - self.level) ** 2))

    def keep(self, rows: NDArray[np.bool_]) -> Starts:
        """These rows only."""
        return Starts(
            levels=self.levels[rows], counts=self.counts[rows], scatter=self.scatter[rows]
        )

    def measured(self) -> Starts:
        """The starts that have at least one slice."""
        return self if self.counts.all() else self.keep(self.counts > 0)


def read_starts(run: Samples, *, what: str) -> Starts:
    """The starts of a run in logs, rows kept in place.

    Args:
        run: Starts, each a 1-D sequence of slices in natural units; NaN marks a missing slice.
            Starts that were read already are given back.
        what: Which input this is, for messages.

    Raises:
        DataError: a start is not a 1-D sequence of numbers, or a value is infinite, zero or
            negative.
    """
    if isinstance(run, Starts):
        return run
    plain = _read_plain(run)
    if plain is not None:
        return plain
    logs = [_log_slices(start, what=f"{what}, start {row}") for row, start in enumerate(run)]
    levels = np.array([np.mean(x) if x.size else np.nan for x in logs], dtype=np.float64)
    scatter = [float(np.sum((x - np.mean(x)) ** 2)) if x.size else 0.0 for x in logs]
    return Starts(
        levels=levels,
        counts=np.array([x.size for x in logs], dtype=np.int64),
        scatter=np.array(scatter, dtype=np.float64),
    )


def read_history(history: Sequence[Samples]) -> dict[int, Starts]:
    """The runs of a history by position; empty starts and runs are left out.

    Raises:
        DataError: there is no slice in the whole history, or `read_starts` refuses a run.
    """
    runs = {
        position: read_starts(run, what=f"history, run {position}").measured()
        for position, run in enumerate(history)
    }
    runs = {position: starts for position, starts in runs.items() if starts.counts.size}
    if not runs:
        raise DataError("the history has no slice: at least one measured run is needed")
    return runs


def _read_plain(run: Sequence[ArrayLike] | NDArray[np.float64]) -> Starts | None:
    """The starts of a run that is made of lists of good floats, as stored samples are; else None.

    A commit of forty workloads has thousands of runs before it, and numpy takes twenty times as
    long for three numbers as Python does.
    """
    starts = [start for start in run if isinstance(start, list | tuple)]
    values = [value for start in starts for value in start]
    good = all(type(value) is float and 0 < value < math.inf for value in values)
    if not good or len(starts) != len(run):
        return None
    logs = iter(np.log(values).tolist())
    levels, counts, scatter = [], [], []
    for start in starts:
        own = list(islice(logs, len(start)))
        level = sum(own) / len(own) if own else math.nan
        levels.append(level)
        counts.append(len(own))
        scatter.append(sum((value - level) ** 2 for value in own))
    return Starts(
        levels=np.array(levels, dtype=np.float64),
        counts=np.array(counts, dtype=np.int64),
        scatter=np.array(scatter, dtype=np.float64),
    )


def _log_slices(start: ArrayLike, *, what: str) -> NDArray[np.float64]:
    try:
        values = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: slices have to be numbers ({error})") from error
    if values.ndim != 1:
        raise DataError(f"{what}: a start has to be a 1-D sequence of slices, not {values.ndim}-D")
    bad = np.flatnonzero(~np.isnan(values) & ~((values > 0) & np.isfinite(values)))
    if bad.size:
        raise DataError(
            f"{what}, slice {bad[0]} is {values[bad[0]]}; values have to be positive and finite "
            f"(NaN marks a missing slice)"
        )
    return np.log(values[~np.isnan(values)])
