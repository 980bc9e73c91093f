"""A service that has only what follows a branch and shows its commits, on real DBOS and a database.

with a_commit_world(MemoryPulls("Import"), home, checks=github.checks) as world:
    world.look()
    until_quiet()
"""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbos import DBOS, DBOSConfig

from service.core.settings import load_settings
from service.flows.commit_checks import CommitChecks, CommitCheckSteps
from service.flows.commit_flow import CommitFlow
from service.flows.pull_request_flow import GITHUB_CONCURRENCY, GITHUB_QUEUE
from service.flows.steps import Steps
from service.flows.watcher import Watcher
from service.store import commits, migrate
from service.store.database import Database
from tests.fakes.memory_fork import MemoryAlerts, StillClock
from tests.fakes.memory_pulls import MemoryPulls, PatientRunners

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from service.core.model import CommitRecord
    from service.core.ports import CheckSink
    from service.core.settings import Settings

#: Nothing waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 120
QUEUE_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class CommitWorld:
    """Everything around commits of a branch."""

    database: Database
    fork: MemoryPulls
    runners: PatientRunners
    settings: Settings
    steps: CommitCheckSteps
    watcher: Watcher

    def look(self) -> None:
        """Begin what is new on the branch."""
        self.watcher.look()

    def commit(self, sha: str) -> CommitRecord:
        """Return a commit as the service knows it."""
        with self.database.reading() as session:
            found = commits.find(session, "demo", sha)
        assert found is not None, f"{sha} was never seen"
        return found

    def release(self) -> None:
        """Wait for a runner that is kept at work, and let it come to its end."""
        until(lambda: self.runners.at_work)
        (job,) = self.runners.at_work
        self.runners.release(job)


def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


def until_quiet() -> None:
    """Wait until no flow is left."""
    until(lambda: not DBOS.list_workflows(status=["PENDING", "ENQUEUED"], load_input=False))


@contextmanager
def a_commit_world(
    fork: MemoryPulls,
    home: Path,
    *,
    checks: CheckSink,
    alone: Any = None,
    url: str | None = None,
    **chosen: object,
) -> Iterator[CommitWorld]:
    """Open a world around a fork, whose commits show how they are in `checks`.

    Args:
        fork: The branch; `wait=yes` in a subject keeps the runner of the commit at work.
        home: Folder of the service.
        checks: Where commits show it.
        alone: Held by whoever reads and then shows.
        url: Of the database; SQLite in the home where absent.
        chosen: Other settings.
    """
    home.mkdir(exist_ok=True)
    settings = load_settings(
        home=home, host_class="small", poll_seconds=0.05, database_url=url, **chosen
    )
    migrate.upgrade(settings.data_url)
    database, clock, runners = Database(settings.data_url), StillClock(), PatientRunners(fork)
    _make_dbos(settings)
    shown = CommitCheckSteps(
        database=database, checks=checks, settings=settings, alone=alone or nullcontext()
    )
    flow = CommitFlow(
        Steps(
            database=database,
            clock=clock,
            code_host=fork,
            dispatcher=runners,
            alerts=MemoryAlerts(),
            settings=settings,
        ),
        shown=CommitChecks(shown, step_pause_seconds=0.01).told,
        step_pause_seconds=0.01,
    )
    watcher = Watcher(
        database=database,
        clock=clock,
        code_host=fork,
        settings=settings,
        begin=flow.enqueue,
        shown=flow.show,
    )
    try:
        DBOS.launch()
        _open_queues(flow)
        yield CommitWorld(
            database=database,
            fork=fork,
            runners=runners,
            settings=settings,
            steps=shown,
            watcher=watcher,
        )
    finally:
        DBOS.destroy(destroy_registry=True)
        database.close()


def _open_queues(flow: CommitFlow) -> None:
    for name, limit in ((flow.queue, 1), (GITHUB_QUEUE, GITHUB_CONCURRENCY)):
        DBOS.register_queue(name, global_concurrency=limit, polling_interval_sec=QUEUE_SECONDS)


def _make_dbos(settings: Settings) -> None:
    DBOS(
        config=DBOSConfig(
            name="forkwatch",
            system_database_url=settings.flows_url,
            executor_id="test",
            application_version="1",
            console_log_level="WARNING",
        )
    )
