"""Fixtures of the instrument: a tiny fork, a home that keeps what was built, a silent watcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner import checkout, datasets
from runner.build import Builder
from runner.servers.mysql_family import ServerSpec
from runner.settings import Home, RunnerSettings
from tests.runner.tiny_fork import PLAN, TinyFork
from workloads.plan import DatasetPlan, parse_plan

#: The dataset of tests that load one.
ROWS = DatasetPlan(rows=2000)


class SilentProgress:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, str]] = []
        self.pieces = 0
        self.starts: list[int] = []
        self.looks: list[tuple[str, str]] = []

    def stage(self, name: str, detail: str) -> None:
        self.stages.append((name, detail))

    def piece(self, start: int, piece: object) -> None:
        self.pieces += 1

    def start(self, start, *, of: int) -> None:
        self.starts.append(start.index)

    def look(self, workload: str, look) -> None:
        self.looks.append((workload, look.stop.value))


@pytest.fixture
def tiny_fork(tmp_path: Path) -> TinyFork:
    return TinyFork(tmp_path / "fork")


@pytest.fixture
def progress() -> SilentProgress:
    return SilentProgress()


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> RunnerSettings:
    # One home for all tests, so that equal trees are built and equal datasets loaded once.
    # Nobody looks at the host: tests are themselves a load, and say so where that is the matter.
    return RunnerSettings(home=tmp_path_factory.mktemp("home"), watch_host=False)


@pytest.fixture
def home(settings: RunnerSettings) -> Home:
    return Home(settings.home)


@pytest.fixture
def own_home(tmp_path: Path) -> Home:
    """A home in which nothing was built or loaded yet."""
    return Home(tmp_path / "own-home")


@pytest.fixture
def spec(home, settings, tiny_fork) -> ServerSpec:
    plan = parse_plan(PLAN)
    builder = Builder(home=home, settings=settings, repository=tiny_fork.folder)
    installed = builder.build(checkout.resolve(tiny_fork.folder, "HEAD"), "rel", plan.builds["rel"])
    return ServerSpec(
        engine="mariadb",
        installed=installed,
        program="sbin/mariadbd",
        install_db=None,
        options=plan.configs["default"].options,
    )


@pytest.fixture
def snapshot(spec, home):
    return datasets.ensure(datasets.describe("small", ROWS, spec), ROWS, spec, home)
