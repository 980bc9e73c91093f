"""The one door to other programs: start them, bound them, and never leave one behind.

Command lines come in as lists, never as shell text. Output goes to a file or is kept up to a named
limit. Every child gets its own session, so that Ctrl-C reaches only us and we decide the order in
which things stop.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import shutil
import signal
import stat
import subprocess  # noqa: TID251  this is the door that the ban points to
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from runner.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

#: Kept from the end of a log: enough for the error, small enough for a document and a comment.
TAIL_BYTES: Final = 12_000
#: Output kept in memory from one command.
OUTPUT_BYTES_MAX: Final = 16 * 1024 * 1024
#: Why a program was killed that said more than it may.
OUTPUT_FULL: Final = "it wrote too much output"
#: Pause between looks at a program that is watched. At 2 GB/s, what one processor fills, it is
#: 0.2 GB past a limit by then.
WATCH_PAUSE_S: Final = 0.1
#: A look is followed by a pause so many times as long: a tenth of one processor at the most.
PAUSE_FACTOR: Final = 10
_READ_BYTES: Final = 64 * 1024
#: Reads in a row from one pipe, which holds 1 MiB at the most, before looking at the clock again.
_READS_MAX: Final = 64
#: What a terminal would obey: control sequences, titles, and the escape before anything else.
_SEQUENCE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?", re.DOTALL
)
#: What remains of them, and what makes a text look other than it is (Unicode's bidi controls).
_UNREADABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


@dataclass(frozen=True, kw_only=True)
class Completed:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False
    #: Why it was killed; empty where it was not, or for its time alone.
    stopped_by: str = ""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.returncode == 0 and not self.timed_out and not self.stopped_by


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
        """Return the exit status, or None if it still runs after `timeout_s` seconds.

        Its end is seen at once, and waiting for it takes no time of a processor.
        """
        if self._popen.poll() is None:
            handle = os.pidfd_open(self._popen.pid)
            try:
                select.select([handle], [], [], timeout_s)
            finally:
                os.close(handle)
        return self._popen.poll()

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
    output_bytes_max: int = OUTPUT_BYTES_MAX,
    watch: Callable[[int], str] | None = None,
    end: Callable[[Process], None] = Process.kill,
    descriptors: Sequence[int] = (),
) -> Completed:
    """Run a program to its end and return how it ended.

    Args:
        argv: Program and arguments.
        timeout_s: After so many seconds the program and its session are killed.
        cwd: Folder to run in.
        log: Append stdout and stderr to this file instead of returning them.
        output_bytes_max: A program that says more is killed; what it said until then is kept.
        watch: Asked now and then with the program's process id; its answer, where it is not
            empty, is why the program has to be killed.
        end: How to kill it.
        descriptors: Open ones that it gets too, by their numbers.
    """
    popen = subprocess.Popen(  # noqa: S603  argument lists only, no shell
        list(argv),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if log is not None else subprocess.PIPE,
        start_new_session=True,
        pass_fds=descriptors,
    )
    process = Process(popen)
    streams = [stream for stream in (popen.stdout, popen.stderr) if stream is not None]
    sinks: list[IO[bytes]] = [io.BytesIO(), io.BytesIO()]
    with contextlib.ExitStack() as stack:
        if log is not None:
            sinks = [stack.enter_context(log.open("ab"))]
        for stream in streams:
            stack.enter_context(stream)
        stack.callback(process.kill)
        reading = _Reading(dict(zip(streams, sinks, strict=False)), output_bytes_max)
        stopped_by, timed_out = _follow(process, reading, timeout_s=timeout_s, watch=watch)
        if stopped_by or timed_out:
            end(process)
        reading.take(0)
    said = [sink.getvalue() if isinstance(sink, io.BytesIO) else b"" for sink in sinks]
    return Completed(
        returncode=popen.returncode,
        stdout=said[0].decode(errors="replace"),
        stderr=said[-1].decode(errors="replace"),
        timed_out=timed_out,
        stopped_by=stopped_by,
    )


class _Reading:
    """What a program says, taken from its pipes up to a limit."""

    def __init__(self, sinks: Mapping[IO[bytes], IO[bytes]], bytes_max: int) -> None:
        self._sinks = {stream.fileno(): sink for stream, sink in sinks.items()}
        for descriptor in self._sinks:
            os.set_blocking(descriptor, False)
        self._left = bytes_max

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def take(self, timeout_s: float, *, ended: int | None = None) -> bool:
        """Take what there is, waiting for it; return whether the process `ended` has ended."""
        poll = select.poll()
        for descriptor in (*self._sinks, *(() if ended is None else (ended,))):
            poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(timeout_s * 1000)]
        for descriptor in ready:
            if descriptor != ended:
                self._drain(descriptor)
        return ended in ready

    def _drain(self, descriptor: int) -> None:
        for _ in range(_READS_MAX):
            if self.is_full:
                return
            try:
                data = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                del self._sinks[descriptor]
                return
            self._sinks[descriptor].write(data[: self._left])
            self._left -= len(data)


def _follow(
    process: Process,
    reading: _Reading,
    *,
    timeout_s: float,
    watch: Callable[[int], str] | None,
) -> tuple[str, bool]:
    """Wait until a program ends or has to; return why it has to, and whether its time is over."""
    deadline = time.monotonic() + timeout_s
    look_at = time.monotonic() + WATCH_PAUSE_S
    handle = os.pidfd_open(process.pid)
    try:
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "", True
            until = deadline if watch is None else min(deadline, look_at)
            if reading.take(max(0.0, until - now), ended=handle):
                return "", False
            if reading.is_full:
                return OUTPUT_FULL, False
            if watch is not None and time.monotonic() >= look_at:
                # Of a processor: where it is kept from us for a minute, that is no time to pause.
                began = time.thread_time()
                reason = watch(process.pid)
                if reason:
                    return reason, False
                spent_s = time.thread_time() - began
                look_at = time.monotonic() + max(WATCH_PAUSE_S, PAUSE_FACTOR * spent_s)
    finally:
        os.close(handle)


def tail(path: Path, *, bytes_max: int = TAIL_BYTES) -> str:
    """Return the last bytes of a log, from a line's beginning; empty if there is none."""
    try:
        # Where code could put something in the log's place, it must neither be followed nor wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:  # noqa: PTH123  a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - bytes_max))
        text = file.read(bytes_max).decode(errors="replace")
    if size > bytes_max:
        text = text.partition("\n")[2]
    return readable(text)


def readable(text: str) -> str:
    """Return `text` without anything that a terminal or page would obey instead of show."""
    plain = _SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNREADABLE.sub("\N{REPLACEMENT CHARACTER}", plain)


def require(program: str, *, package: str) -> str:
    """Return the path of a program.

    Raises:
        HostError: It is not installed; names the Debian package that has it.
    """
    path = shutil.which(program)
    if path is None:
        raise HostError(f"{program} is not installed; try: apt-get install {package}")
    return path
