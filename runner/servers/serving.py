"""Serving: a server as a context manager, whatever its engine.

It runs from its artifact inside the sandbox, on a Unix socket in a private directory, pinned to its
processors. Leaving the context stops it cleanly, or kills it when it does not stop; a killed runner
takes it along, because the sandbox dies with its parent.
"""

from __future__ import annotations

import contextlib
import signal
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from runner import leavings, shell, watchdog
from runner.errors import ServerError, StageError
from runner.sandbox import Bind, Sandbox, hand_over
from runner.servers import programs
from runner.servers.engine import RunningServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from runner.servers.engine import Engine, ServerSpec
    from runner.warden import Verdicts

READY_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 120.0
#: A client notices the end of its connection before we can notice that of the process.
DEATH_S: Final = 1.0
#: A full shutdown after a load merges and purges what the load left.
LOADED_STOP_TIMEOUT_S: Final = 600.0
_POLL_S: Final = 0.02


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What is special about starting and stopping one engine's servers."""

    engine: Engine
    #: Program and arguments; data lies in `data`, the socket belongs into `run`.
    words: Sequence[str]
    #: Name of the socket in `run`.
    socket: str
    #: Returns the version of a server that answers at a socket, an empty text while none does.
    greeting: Callable[[Path], str]
    #: What asks the first process for a clean end.
    stop_signal: signal.Signals = signal.SIGTERM
    binds: tuple[Bind, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def view(spec: ServerSpec, data: Path, *more: Bind) -> tuple[Bind, ...]:
    """Return what a sandbox has to show for a server to run on its data."""
    return (*programs.view(spec), Bind(host=data, inside="data", writable=True), *more)


@contextmanager
def serve(
    serving: Serving,
    spec: ServerSpec,
    data: Path,
    *,
    cpus: Sequence[int],
    loading: bool = False,
) -> Iterator[RunningServer]:
    """Start a server on `data` and give it once it answers; stop it at the end.

    Raises:
        ServerError: It ended or did not answer in time (stage `start`), or died while it was in
            use or did not stop in time (stage `stop`); carries the end of its error log.
    """
    # A socket's path may have 108 bytes, which a home folder easily exceeds.
    scratch = Path(tempfile.mkdtemp(prefix=watchdog.SCRATCH))
    run = scratch / "run"
    run.mkdir()
    # Not where the server could put something else in its place.
    log = scratch / "error.log"
    hand_over(run)
    binds = view(spec, data, *serving.binds, Bind(host=run, inside="run", writable=True))
    sandbox = Sandbox(binds=binds, environment=serving.environment, limits=spec.limits)
    socket, began = run / serving.socket, time.monotonic()
    try:
        with (
            sandbox.running(serving.words, log=log, cpus=cpus) as (process, verdicts),
            _naming_the_limit(verdicts, log),
        ):
            version = wait_until_ready(process, socket, log, greeting=serving.greeting)
            pids = _inner_pids(process.pid)
            server = RunningServer(
                engine=serving.engine,
                socket=socket,
                pids=pids,
                version=version,
                error_log=log,
                data=data,
                spec=spec,
                startup_s=round(time.monotonic() - began, 3),
                loading=loading,
            )
            with _noticing_death(process, log):
                yield server
            timeout_s = LOADED_STOP_TIMEOUT_S if loading else STOP_TIMEOUT_S
            _stop(process, pids, log, stop_signal=serving.stop_signal, timeout_s=timeout_s)
    finally:
        leavings.remove(scratch)


@contextmanager
def _noticing_death(process: shell.Process, log: Path) -> Iterator[None]:
    """Say that the server died, in its own words, where a client only says that it is gone."""
    try:
        yield
    except StageError as error:
        if process.wait(DEATH_S) is None:
            raise
        raise ServerError("measure", f"the server died: {error}", shell.tail(log)) from error


@contextmanager
def _naming_the_limit(verdicts: Verdicts, log: Path) -> Iterator[None]:
    """Say which limit ended the server, where one did, instead of what that led to."""
    try:
        yield
    except StageError as error:
        reason = verdicts.reason()
        if not reason:
            raise
        stage = error.stage if isinstance(error, ServerError) else "measure"
        raise ServerError(stage, f"the server was ended: {reason}", shell.tail(log)) from error


def wait_until_ready(
    process: shell.Process, path: Path, log: Path, *, greeting: Callable[[Path], str]
) -> str:
    """Return the server's version as soon as it greets a client.

    Raises:
        ServerError: It ended, or did not answer in time.
    """
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        status = process.poll()
        if status is not None:
            raise ServerError("start", f"the server ended with {status}", shell.tail(log))
        version = greeting(path)
        if version:
            return version
        time.sleep(_POLL_S)
    raise ServerError(
        "start", f"the server did not answer within {READY_TIMEOUT_S:.0f} s", shell.tail(log)
    )


def _inner_pids(outer: int) -> tuple[int, ...]:
    """Return the server's processes below the sandbox's own two, parents before children."""
    children = psutil.Process(outer).children(recursive=True)
    found = []
    for child in children:
        # A server that forks has some that live for an instant.
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name() != "bwrap":
                found.append(child.pid)
    return tuple(found)


def _runs(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be reaped."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _stop(
    process: shell.Process,
    pids: tuple[int, ...],
    log: Path,
    *,
    stop_signal: signal.Signals,
    timeout_s: float,
) -> None:
    """Ask the server to end and wait for it."""
    first = pids[:1]
    if process.poll() is not None or not all(_runs(pid) for pid in first):
        raise ServerError("measure", "the server died", shell.tail(log))
    for pid in first:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).send_signal(stop_signal)
    status = process.wait(timeout_s)
    if status is None:
        raise ServerError(
            "stop", f"the server did not stop within {timeout_s:.0f} s", shell.tail(log)
        )
    # Killed a moment before we asked, it may still have looked alive.
    if status != 0:
        raise ServerError("stop", f"the server died with status {status}", shell.tail(log))
