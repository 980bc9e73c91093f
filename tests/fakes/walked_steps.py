"""A branch walked by the service's real steps, without the engine that makes them durable.

walked = WalkedSteps(database, MemoryFork("Import", "Quiet"))
walked.walk()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.core.settings import load_settings
from service.flows.aa_checks import AaChecks
from service.flows.aa_steps import AaSteps
from service.flows.backfill import Backfills, BackfillSteps
from service.flows.bridge_steps import BridgeSteps
from service.flows.steps import Sight, Steps
from service.flows.watcher import Watcher
from service.store import alerts, commits
from tests.fakes.memory_fork import MemoryAlerts, StillClock
from tests.fakes.moving_runners import MovingRunners

if TYPE_CHECKING:
    from service.core.model import CommitRecord
    from service.core.settings import Settings
    from service.flows.aside_flow import AsideWork
    from service.store.database import Database
    from tests.fakes.memory_fork import MemoryFork


class WalkedSteps:
    """The steps of a service over a store, its branch and its runners."""

    def __init__(
        self,
        database: Database,
        fork: MemoryFork,
        *,
        runners: MovingRunners | None = None,
        **chosen: object,
    ) -> None:
        self.database, self.fork = database, fork
        self.runners = runners or MovingRunners(fork)
        self.alerts, self.clock = MemoryAlerts(), StillClock()
        self.settings: Settings = load_settings(**{"host_class": "small", **chosen})
        self.begun: list[CommitRecord] = []
        self.steps = Steps(
            database=database,
            clock=self.clock,
            code_host=fork,
            dispatcher=self.runners,
            alerts=self.alerts,
            settings=self.settings,
        )
        self.watcher = Watcher(
            database=database,
            clock=self.clock,
            code_host=fork,
            settings=self.settings,
            begin=self.begun.append,
        )
        self.asks = Backfills(database=database, clock=self.clock, code_host=fork)
        self.backfill = BackfillSteps(steps=self.steps)
        self.bridge = BridgeSteps(
            database=database,
            clock=self.clock,
            code_host=fork,
            dispatcher=self.runners,
            settings=self.settings,
        )

        self.checks = AaChecks(
            database=database, clock=self.clock, code_host=fork, settings=self.settings
        )
        self.check = AaSteps(
            database=database,
            clock=self.clock,
            code_host=fork,
            dispatcher=self.runners,
            settings=self.settings,
        )

    def walk(self) -> None:
        """Look at the branch, and do every step of the new commits, oldest first."""
        self.watcher.look()
        while self.begun:
            commit = self.begun.pop(0)
            single = self.steps.order_single(commit.fork, commit.sha)
            if single is not None:
                self._walk_job(single)

    def walk_aside(self, work: AsideWork, *, most: int = 1_000) -> None:
        """Do every step of what waits beside the branch, at most so many of them."""
        for about in work.waiting()[:most]:
            job = work.order(about)
            if job is not None:
                self._run(work, job)
                work.note(about)

    def commit(self, number: int) -> CommitRecord:
        """Return the n-th commit of the fork."""
        with self.database.reading() as session:
            found = commits.find(session, "demo", self.fork.commits[number - 1].sha)
        assert found is not None
        return found

    def alerts_by_sha(self) -> set[str]:
        """Return the commits with which an alert was raised."""
        with self.database.reading() as session:
            return {alert.sha for alert in alerts.newest(session)}

    def _walk_job(self, single: str) -> None:
        self._run(self.steps, single)
        confirm = self.steps.judge_single(single)
        if confirm is not None:
            self._run(self.steps, confirm)
            alert = self.steps.judge_confirm(confirm)
            if alert is not None:
                self.steps.tell(alert)
            self.steps.finish_confirmed(confirm)

    def _run(self, steps: Steps | AsideWork, job: str) -> None:
        attempt = 1
        steps.dispatch(job, attempt)
        while steps.look(job, attempt) is Sight.RESTART:
            attempt += 1
            steps.dispatch(job, attempt)
