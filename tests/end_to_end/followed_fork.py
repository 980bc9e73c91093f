"""A service in a process of its own that follows a fork, and what it says over HTTP."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from runner import shell
from tests.fakes.free_ports import free_port


class FollowedFork:
    """Starts, kills and asks a service; every restart works in the same home."""

    def __init__(self, repository: Path, home: Path, **settings: object) -> None:
        self.repository, self.home = repository, home
        home.mkdir(exist_ok=True)
        self.port = free_port()
        self._settings = [f"FORKWATCH_{name.upper()}={value}" for name, value in settings.items()]
        self._process: shell.Process | None = None

    def start(self) -> None:
        words = ["env", *self._settings, sys.executable, "-m", "forkwatch", "serve"]
        words += ["--home", str(self.home), "--repository", str(self.repository)]
        words += ["--port", str(self.port), "--poll-seconds", "0.5"]
        with (self.home / "service.log").open("ab") as log:
            self._process = shell.start(words, output=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def kill_runner(self) -> bool:
        """Kill the runner that works now, if there is one."""
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if "run" in words and "--job" in words and str(self.home) in words[-1]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
                    return True
        return False

    def get(self, path: str, **params: Any) -> Any:
        answer = httpx.get(f"http://127.0.0.1:{self.port}{path}", params=params, timeout=30)
        return answer.raise_for_status().json()

    def commits(self) -> list[dict[str, Any]]:
        """Every commit known, oldest first; none while the service is not up."""
        try:
            forks = self.get("/api/v1/forks")
            found = self.get("/api/v1/commits", fork=forks[0]["name"]) if forks else []
        except (httpx.TransportError, httpx.HTTPStatusError):
            return []
        return found[::-1]

    def wait_until_judged(self, count: int, *, seconds: float) -> list[dict[str, Any]]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            commits = self.commits()
            if len(commits) == count and all(one["state"] == "finished" for one in commits):
                return commits
            time.sleep(0.5)
        raise AssertionError(f"not judged in time: {shell.tail(self.home / 'service.log')}")
