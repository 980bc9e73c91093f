"""Lock files: in comes a path; it is held alone or with others for as long as a block runs.

The kernel lets go of a lock when its owner dies, however that happens.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def exclusive(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock alone.

    Raises:
        BlockingIOError: Somebody else holds it, and we were not to wait.
    """
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold the lock with others that share it, once nobody holds it alone."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield
