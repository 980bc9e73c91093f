"""History: what a host showed before, as lines of JSON in a file of bounded length.

Values that pydantic can write come in, and come out in the order of their times. A line that a
crash or an older version left behind is passed over: a history is never worth failing a job for.
"""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from runner.errors import HostError
from runner.host.storage import why_not_written, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: A busy host does 50 jobs a day with two looks at six figures: ten days and under a megabyte.
LINES_MAX: Final = 5_000

Line = TypeVar("Line", bound=BaseModel)


class History(Generic[Line]):
    """One file of lines of one kind."""

    def __init__(self, path: Path, kind: type[Line], *, lines_max: int = LINES_MAX) -> None:
        self._path, self._kind, self._lines_max = path, kind, lines_max

    def read(self) -> Sequence[Line]:
        """Return the readable lines, oldest first."""
        try:
            # A power cut may leave any bytes.
            texts = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        found = []
        for text in texts:
            try:
                found.append(self._kind.model_validate_json(text))
            except ValidationError:
                continue
        return found

    def append(self, lines: Sequence[Line]) -> None:
        """Add lines at the end; the oldest go when there are too many.

        Raises:
            HostError: The disk is full or broken; a job's own files would fare no better.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                kept = [*self.read(), *lines][-self._lines_max :]
                write_whole(self._path, "".join(f"{line.model_dump_json()}\n" for line in kept))
        except OSError as error:
            raise HostError(f"{why_not_written(self._path, error)}; make room") from error
