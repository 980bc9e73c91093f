"""Sole use: one measurement at a time on a host, whoever asked for it.

The service, a person at a terminal and the timer of the A/A check can all begin a job on one home.
Two that measure at once would each be a disturbance to the other, so the second one waits. What a
job builds or loads meanwhile is seen by the accounts of each slice.
"""

from __future__ import annotations

import contextlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from runner import locks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runner.progress import Progress

#: Held alone while measuring; the kernel lets go of it when its owner dies.
LOCK: Final = "measuring.lock"


@contextmanager
def sole_use(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the host for as long as the block runs, after whoever measures there now.

    Args:
        folder: The host's folder in the home.
        progress: Told when there is somebody to wait for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locks.exclusive(folder / LOCK, wait=False))
        except BlockingIOError:
            progress.stage("host", "another job measures on this host; waiting for its end")
            held.enter_context(locks.exclusive(folder / LOCK))
        yield
