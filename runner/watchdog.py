"""The watchdog: kills what a killed runner leaves behind.

bubblewrap dies with its parent, but only once it has asked the kernel for that: a runner killed in
the first milliseconds of a sandbox would leave a server running for ever. So a second process waits
on a pipe that only the runner holds open. When the pipe ends, however the runner did, it kills
every process that carries the runner's mark in its environment or arguments, until none is left.

`guard()` is the runner's side; `python -m runner.watchdog MARK` is the other process.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from runner import leavings, shell

if TYPE_CHECKING:
    from collections.abc import Iterator

#: In the environment of everything in a sandbox, and therefore in bubblewrap's arguments.
VARIABLE: Final = "FORKWATCH_RUNNER"
#: Differs for every runner, and is no process id that could be used again.
MARK: Final = f"{os.getpid()}-{secrets.token_hex(8)}"
#: Begins the names of folders for sockets and logs, which go with the runner as well.
SCRATCH: Final = f"forkwatch-{MARK}-"
#: A process may be between fork and exec, still without the mark, at the first looks.
LOOKS: Final = 8
LOOK_PAUSE_S: Final = 0.25


@contextmanager
def guard() -> Iterator[None]:
    """Have everything in this process' sandboxes killed should this process be killed."""
    read_end, write_end = os.pipe()
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123  a device, not a path of ours
            process = shell.start(
                [sys.executable, "-m", "runner.watchdog", MARK], output=nowhere, stdin=read_end
            )
    finally:
        os.close(read_end)
    try:
        yield
    finally:
        # A byte says that all is well: nothing is left to kill.
        os.write(write_end, b".")
        os.close(write_end)
        process.wait(LOOKS * LOOK_PAUSE_S)
        process.kill()


def _watch(mark: str) -> None:
    """Wait until the runner ends, and clean up unless it said goodbye."""
    if os.read(sys.stdin.fileno(), 1):
        return
    for _ in range(LOOKS):
        for process in marked(mark):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(LOOK_PAUSE_S)
    for folder in Path(tempfile.gettempdir()).glob(f"forkwatch-{mark}-*"):
        leavings.remove(folder)


def marked(mark: str) -> list[psutil.Process]:
    """Return every process with this mark, without this one."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid == os.getpid():
                continue
            if mark in process.cmdline() or process.environ().get(VARIABLE) == mark:
                found.append(process)
    return found


if __name__ == "__main__":
    _watch(sys.argv[1])
