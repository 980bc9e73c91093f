"""A dispatcher that runs jobs on this machine, one detached `forkwatch run --job FOLDER` each.

Orders come in, folders under `<home>/jobs` go out. The runner lives in its own session and outlives
the service; a restarted service finds it again by the lock it holds. Nothing here reads a document.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Final

from results.atomic import write_atomically
from results.job import DOCUMENT_FILE, LOCK_FILE, ORDER_FILE
from service.core.errors import DispatchError
from service.core.model import JobStatus
from service.core.settings import runner_environment

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from results.job import JobOrder

_log = logging.getLogger("forkwatch.dispatch")

#: The program; the folder of the job is its last argument.
RUNNER: Final = (sys.executable, "-m", "forkwatch", "run", "--job")
#: Held through an inherited descriptor from before the runner's first instruction to its last, so
#: that there is no moment at which a started runner looks lost.
STARTED_FILE: Final = "started"
#: The runner's process, which leads its own session.
PID_FILE: Final = "pid"
LOG_FILE: Final = "log"
#: A run document has at most some ten thousand slices; one that is larger is not ours.
DOCUMENT_BYTES_MAX: Final = 256 * 1024 * 1024
_JOB_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


class ThisMachine:
    """Starts runners here and looks after them through files."""

    def __init__(
        self,
        home: Path,
        *,
        command: Sequence[str] = RUNNER,
        cpus: Collection[int] = (),
    ) -> None:
        """Remember where and how.

        Args:
            home: Folder of the service.
            command: The runner's program and its arguments before the job's folder.
            cpus: Processors that runners may use; this process' own where empty.
        """
        self._jobs = home / "jobs"
        self._command = tuple(command)
        self._cpus = frozenset(cpus)

    def start(self, order: JobOrder) -> None:
        """Start a runner, unless one works on the job already."""
        folder = self._folder(order.job)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / STARTED_FILE).open("ab") as started:
            try:
                fcntl.flock(started, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _log.info("job %s has a runner already", order.job)
                return
            write_atomically(folder / ORDER_FILE, order.model_dump_json(), mode=0o600)
            child = self._spawn(folder, started.fileno())
        # The runner's imports take far longer than this line: it sees these processors.
        if self._cpus:
            os.sched_setaffinity(child.pid, self._cpus)
        # Closing our descriptor left the lock with the child, which inherited it.
        write_atomically(folder / PID_FILE, f"{child.pid}\n")
        _log.info("job %s: runner %d started in %s", order.job, child.pid, folder)
        # Somebody has to hear of the child's end, or it stays behind as a zombie.
        # Its line in the log is about the same commit.
        hear = partial(copy_context().run, _hear_of_end, order.job, child)
        threading.Thread(target=hear, daemon=True).start()

    def status(self, job: str) -> JobStatus:
        """Return what became of a job."""
        folder = self._folder(job)
        if (folder / DOCUMENT_FILE).exists():
            return JobStatus.FINISHED
        if self._has_runner(folder):
            return JobStatus.ALIVE
        # The runner may have finished between the two looks.
        return JobStatus.FINISHED if (folder / DOCUMENT_FILE).exists() else JobStatus.LOST

    def stop(self, job: str) -> None:
        """Ask the runner's whole session to end, if there is one."""
        folder = self._folder(job)
        # A process id alone may belong to somebody else by now; the lock says it is still ours.
        if not _is_locked(folder / STARTED_FILE):
            return
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.killpg(int((folder / PID_FILE).read_text()), signal.SIGTERM)

    def collect(self, job: str) -> bytes:
        """Return the run document of a finished job as JSON."""
        path = self._folder(job) / DOCUMENT_FILE
        try:
            if path.stat().st_size > DOCUMENT_BYTES_MAX:
                raise DispatchError(f"{path} is larger than {DOCUMENT_BYTES_MAX} bytes")
            return path.read_bytes()
        except OSError as error:
            raise DispatchError(f"{path} cannot be read: {error.strerror}") from error

    def _spawn(self, folder: Path, started: int) -> subprocess.Popen[bytes]:
        try:
            with (folder / LOG_FILE).open("ab") as log:
                return subprocess.Popen(  # noqa: S603  our own program and a folder we named
                    [*self._command, str(folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=runner_environment(),
                    start_new_session=True,
                    pass_fds=(started,),
                )
        except OSError as error:
            raise DispatchError(f"{self._command[0]} cannot be started: {error}") from error

    def _has_runner(self, folder: Path) -> bool:
        # The runner's own lock is looked at only while none of ours can be starting: taking it,
        # even for a moment, would turn a runner away.
        return _is_locked(folder / STARTED_FILE) or _is_locked(folder / LOCK_FILE)

    def _folder(self, job: str) -> Path:
        assert _JOB_NAME.fullmatch(job), "jobs are named by the service, never from outside"
        return self._jobs / job


def _hear_of_end(job: str, child: subprocess.Popen[bytes]) -> None:
    _log.info("job %s: runner ended with status %d", job, child.wait())


def _is_locked(path: Path) -> bool:
    """Whether a process holds the lock on this file."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
