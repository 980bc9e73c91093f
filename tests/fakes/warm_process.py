"""Programs of the tests' own as processes that have their imports already.

A service takes seconds to import what it needs, and a test that kills it ten times pays ten times.
One process imports it once, does nothing else, and is forked for each of them. A process here is
used like one of `subprocess`; its program is a module with `run(words)`.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import subprocess  # noqa: TID251  for the error that tests know
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: What is imported beforehand; any other program is imported by its own process.
PROGRAMS = (
    "tests.fakes.mortal_service",
    "tests.fakes.mortal_bisects",
    "tests.fakes.unhurried_service",
)
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([*PROGRAMS])


class WarmProcess:
    """A process under way."""

    def __init__(
        self, program: str, *words: str, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start it.

        Args:
            program: The module.
            words: Its arguments.
            log: What it says goes to the end of this file.
            environment: What its environment has besides that of this process.
        """
        self._words = (program, *words)
        whole = {**os.environ, **(environment or {})}  # noqa: TID251  and some more of our own
        # As a daemon it does not outlive the tests, whatever they come to.
        self._process = _FORKING.Process(
            target=_run, args=(program, words, log, whole), name=program, daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return how it ended, None where it has not; a signal is a number below zero."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return how it ended."""
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(self._words, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self._process.is_alive():
            # It may end between the two.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self.send_signal(signal.SIGKILL)


def _run(program: str, words: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
    """Be that program, in a process that was just forked."""
    os.environ.clear()  # noqa: TID251  the forked process has the environment of another time
    os.environ.update(environment)  # noqa: TID251  as above
    with log.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    importlib.import_module(program).run(list(words))
