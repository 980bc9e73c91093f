"""The one door to other programs: start them, bound them, and never leave one behind.

Command lines come in as lists, never as shell text. Output goes to a file or is kept up to a named
limit. Every child gets its own session, so that Ctrl-C reaches only us and we decide the order in
which things stop.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess  # noqa: TID251  this is the door that the ban points to
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from runner.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Kept from the end of a log: enough for the error, small enough for a document and a comment.
TAIL_BYTES: Final = 12_000
#: Output kept in memory from one command.
OUTPUT_BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Completed:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.returncode == 0 and not self.timed_out


class Process:
    """A running child with its whole session; `kill` ends all of it."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen

    @property
    def pid(self) -> int:
        """Process id of the direct child."""
        return self._popen.pid

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self._popen.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None if it still runs after `timeout_s` seconds."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        """Ask the child to end."""
        self._popen.terminate()

    def kill(self) -> None:
        """Kill the child and its session, and reap it."""
        if self._popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()


def start(argv: Sequence[str], *, output: IO[bytes], stdin: int = subprocess.DEVNULL) -> Process:
    """Start a program in a session of its own, its output going to `output`."""
    return Process(
        subprocess.Popen(  # noqa: S603  argument lists only, no shell
            list(argv),
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    )


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    log: Path | None = None,
) -> Completed:
    """Run a program to its end and return how it ended.

    Args:
        argv: Program and arguments.
        timeout_s: After so many seconds the program and its session are killed.
        cwd: Folder to run in.
        log: Append stdout and stderr to this file instead of returning them.
    """
    if log is not None:
        with log.open("ab") as sink:
            return _finish(argv, timeout_s=timeout_s, cwd=cwd, sink=sink)
    return _finish(argv, timeout_s=timeout_s, cwd=cwd, sink=None)


def _finish(
    argv: Sequence[str], *, timeout_s: float, cwd: Path | None, sink: IO[bytes] | None
) -> Completed:
    popen = subprocess.Popen(  # noqa: S603  argument lists only, no shell
        list(argv),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=sink if sink is not None else subprocess.PIPE,
        stderr=subprocess.STDOUT if sink is not None else subprocess.PIPE,
        start_new_session=True,
    )
    process = Process(popen)
    timed_out = False
    try:
        try:
            out, err = popen.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            process.kill()
            out, err = popen.communicate()
    finally:
        process.kill()
    return Completed(
        returncode=popen.returncode,
        stdout=(out or b"")[:OUTPUT_BYTES_MAX].decode(errors="replace"),
        stderr=(err or b"")[:OUTPUT_BYTES_MAX].decode(errors="replace"),
        timed_out=timed_out,
    )


def tail(path: Path) -> str:
    """Return the last `TAIL_BYTES` of a log, from a line's beginning; empty if there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    if size > TAIL_BYTES:
        text = text.partition("\n")[2]
    return text


def require(program: str, *, package: str) -> str:
    """Return the path of a program.

    Raises:
        HostError: It is not installed; names the Debian package that has it.
    """
    path = shutil.which(program)
    if path is None:
        raise HostError(f"{program} is not installed; try: apt-get install {package}")
    return path
