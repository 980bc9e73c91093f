"""A history that grows: one value per commit comes in, the changes known so far are there to read.

It gives at every moment what `detectors.changepoints.find_changes` gives for the values so far; the
past is not scanned again. One more commit costs one row of the scan; reading `changes` costs time
in proportion to the length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from detectors.alarms import Scan, scan
from detectors.changepoints import judge
from detectors.evidence import check_confidence
from detectors.history import Commits, read_values

if TYPE_CHECKING:
    from detectors.change import Change


class ChangeStream:
    """Changes of a history that is appended to."""

    def __init__(self, *, confidence: float = 0.95) -> None:
        check_confidence(confidence)
        self._confidence = confidence
        # Arrays that double when full: appending stays cheap, and the past is never copied again.
        self._logs = np.empty(64)
        self._index = np.empty(64, dtype=np.int64)
        self._measured = 0
        self._length = 0
        self._scan = Scan()

    def __len__(self) -> int:
        return self._length

    def append(self, value: float) -> None:
        """Take the result of the next commit; NaN for a commit without one.

        Raises:
            DataError: the value is infinite, zero or negative; the stream is as it was before.
        """
        commits = read_values([value], first=self._length)
        self._length += 1
        if not commits.logs.size:
            return
        if self._measured == self._logs.size:
            self._logs = np.concatenate((self._logs, np.empty_like(self._logs)))
            self._index = np.concatenate((self._index, np.empty_like(self._index)))
        self._logs[self._measured] = commits.logs[0]
        self._index[self._measured] = self._length - 1
        self._measured += 1
        self._scan = scan(self._logs[: self._measured], self._scan)

    @property
    def changes(self) -> list[Change]:
        """Changes in the values so far, oldest first."""
        commits = Commits(
            logs=self._logs[: self._measured],
            index=self._index[: self._measured],
            n_input=self._length,
        )
        return list(judge(commits, self._scan.alarms, confidence=self._confidence)[0])
