"""A real service in a process of its own, with runners that measure by reading subjects."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from service.core.settings import load_settings
from tests.fakes.free_ports import free_port
from tests.fakes.warm_process import WarmProcess

if TYPE_CHECKING:
    from collections.abc import Callable

#: Two processors may have a dozen processes to start.
PATIENCE_SECONDS = 180
#: The real service; the acts after which it would die never come.
PROGRAM = "tests.fakes.mortal_service"


class ServiceProcess:
    """Starts, asks and stops a service; every start works in the same home."""

    def __init__(self, home: Path, repository: Path, *, program: str = PROGRAM) -> None:
        self.home, self.repository = home, repository
        self.port = free_port()
        self.settings = load_settings(home=home, port=self.port, host_class="small")
        self.log = home.with_suffix(".log")
        self._program = program
        self._process: WarmProcess | None = None

    def start(self, last: str = "never:0", **environment: str) -> None:
        words = (str(self.home), str(self.repository), str(self.port), last)
        self._process = WarmProcess(self._program, *words, log=self.log, environment=environment)

    def get(self, path: str) -> Any:
        """Return the answer's JSON, or None where there is none yet."""
        try:
            answer = httpx.get(f"{self.settings.base_url}{path}", timeout=60)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None

    def wait_until(self, what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            ended = self._process is not None and self._process.poll() is not None
            assert not ended, f"the service ended:\n{self.log.read_text()}"
            if what():
                return
            time.sleep(0.05)
        raise AssertionError(f"it did not come in time:\n{self.log.read_text()}")

    def wait_until_finished(self, count: int) -> None:
        """Wait until so many commits are known and all of them are finished."""

        def finished() -> bool:
            found = self.get("/api/v1/commits?fork=demo") or []
            return [commit["state"] for commit in found] == ["finished"] * count

        self.wait_until(finished)

    def ask_to_stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait_for_end(self) -> tuple[int, float]:
        """Return the exit status and how long the end took."""
        assert self._process is not None
        began = time.monotonic()
        status = self._process.wait(timeout=PATIENCE_SECONDS)
        self._process = None
        return status, time.monotonic() - began

    def stop(self) -> int:
        """Stop it in order, and return its exit status."""
        self.ask_to_stop()
        return self.wait_for_end()[0]

    def kill(self) -> None:
        """Leave no process behind, whatever the test came to."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
