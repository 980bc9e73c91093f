"""Our own detectors, and our port of Perfherder's, asked through the functions the peers use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.detection.peers import Answer, as_lists
from benchmarks.detection.perfherder import find_alerts
from benchmarks.peers import looking
from detectors.changepoints import find_changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Local:
    """A detector of this repository, asked through the very same functions."""

    name: str
    detect: looking.Detect

    def changes(self, series: Sequence[NDArray[np.float64]]) -> Answer:
        """Return the changes of each whole series."""
        return self._answer(task="changes", series=as_lists(series))

    def looks(self, series: Sequence[NDArray[np.float64]], *, until_alarm: bool) -> Answer:
        """Return the changes found when each series is looked at after every commit."""
        series_lists = as_lists(series)
        return self._answer(task="looks", series=series_lists, first=2, until_alarm=until_alarm)

    def milliseconds(self, series: Sequence[NDArray[np.float64]], *, repeats: int) -> Answer:
        """Return the time that each whole series takes."""
        return self._answer(task="milliseconds", series=as_lists(series), repeats=repeats)

    def _answer(self, **request: Any) -> Answer:
        answer = looking.answer(request, self.detect)
        return Answer(found=answer["found"], seconds=answer["seconds"])


def our_changes(values: list[float]) -> list[int]:
    """Return where our own detector sees new levels begin.

    A zero among real series is a build that failed: handed on as missing, which zeros are not.
    """
    known = [value if value > 0.0 else math.nan for value in values]
    found = (change.index for change in find_changes(known))
    return [index for index in found if index is not None]


OURS: Final = Local(name="forkwatch", detect=our_changes)
PERFHERDER: Final = Local(name="Perfherder", detect=find_alerts)
