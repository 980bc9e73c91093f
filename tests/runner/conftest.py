"""Fixtures of the instrument: a tiny fork, a home that keeps what was built, a silent watcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.settings import Home, RunnerSettings
from tests.runner.tiny_fork import TinyFork


class SilentProgress:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, str]] = []
        self.pieces = 0
        self.starts: list[int] = []

    def stage(self, name: str, detail: str) -> None:
        self.stages.append((name, detail))

    def piece(self, start: int, piece: object) -> None:
        self.pieces += 1

    def start(self, start, *, of: int) -> None:
        self.starts.append(start.index)


@pytest.fixture
def tiny_fork(tmp_path: Path) -> TinyFork:
    return TinyFork(tmp_path / "fork")


@pytest.fixture
def progress() -> SilentProgress:
    return SilentProgress()


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> RunnerSettings:
    # One home for all tests, so that equal trees are built and equal datasets loaded once.
    return RunnerSettings(home=tmp_path_factory.mktemp("home"))


@pytest.fixture
def home(settings: RunnerSettings) -> Home:
    return Home(settings.home)


@pytest.fixture
def own_home(tmp_path: Path) -> Home:
    """A home in which nothing was built or loaded yet."""
    return Home(tmp_path / "own-home")
