"""`forkwatch serve` in a process of its own, on a store that is there already.

A folder and the address of a store come in, the address of the service goes out. It watches an
empty repository, so that nothing but requests keeps it busy, and refuses nobody for asking often.
"""

from __future__ import annotations

import socket
import sys
import time
from typing import TYPE_CHECKING, Final, Self

import httpx
import pygit2

from runner import shell

if TYPE_CHECKING:
    from pathlib import Path

#: Imports, migrations and the first flows; two cores may be busy with others.
START_SECONDS_MAX: Final = 120
#: The service ends within 8 s by itself.
STOP_SECONDS_MAX: Final = 30


class Served:
    """Use it as a context."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self._folder, self._database_url = folder, database_url
        self._port = _free_port()

    @property
    def url(self) -> str:
        """Base address."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        repository = self._folder / "repository"
        pygit2.init_repository(str(repository), initial_head="main")
        settings = {
            "FORKWATCH_DATABASE_URL": self._database_url,
            "FORKWATCH_DBOS_URL": f"sqlite:///{self._folder / 'flows.sqlite'}",
            "FORKWATCH_REQUESTS_PER_MINUTE": "0",
        }
        words = ["env", *(f"{name}={value}" for name, value in settings.items())]
        words += [sys.executable, "-m", "forkwatch", "serve", "--home", str(self._folder)]
        words += ["--repository", str(repository), "--port", str(self._port)]
        with (self._folder / "log").open("wb") as log:
            self._process = shell.start(words, output=log)
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        if self._process.wait(STOP_SECONDS_MAX) is None:
            self._process.kill()

    def _wait(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < until and self._process.poll() is None:
            try:
                if httpx.get(f"{self.url}/healthz", timeout=5).is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        self._process.kill()
        raise RuntimeError(f"the service did not start:\n{(self._folder / 'log').read_text()}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port
