"""The composed service on real DBOS: a push goes before the past, and both are finished."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dbos import DBOS

from service.app.compose import compose
from service.core.backfills import BackfillOrder, BackfillState
from service.core.bridges import BridgeState
from service.core.model import CommitOutcome, JobStatus
from service.core.settings import load_settings
from service.store import bridges, commits, migrate
from tests.fakes.memory_fork import MemoryAlerts, MemoryFork, StillClock
from tests.fakes.moving_runners import MovingRunners

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Nothing below waits on purpose; this only bounds a hang.
PATIENCE_SECONDS = 120


class GatedRunners(MovingRunners):
    """Runners that work for as long as the gate is shut."""

    shut = True

    def status(self, job: str) -> JobStatus:
        found = super().status(job)
        return JobStatus.ALIVE if self.shut and found is JobStatus.FINISHED else found


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < deadline, "it did not come to its end"
        time.sleep(0.05)


def test_news_goes_before_history_and_both_are_finished(tmp_path: Path) -> None:
    settings = load_settings(
        home=tmp_path, host_class="small", poll_seconds=0.05, backfill_commits=1
    )
    migrate.upgrade(settings.data_url)
    fork = MemoryFork("Past 0", "Past 1", "Past 2", "One")
    runners = GatedRunners(fork)
    service = compose(
        settings, clock=StillClock(), code_host=fork, dispatcher=runners, alerts=MemoryAlerts()
    )
    try:
        DBOS.launch()
        service.flow.open_queue()
        service.watcher.look()
        until(lambda: len(runners.orders) == 1)
        past = service.histories
        past.asks.ask("demo", 3, order=BackfillOrder.SPREAD, actor="operator", via="shell")
        past.begin_waiting()
        past.begin_waiting()
        runners.compiler = "g++ 13.1.0"
        fork.push("Two")
        service.watcher.look()
        runners.shut = False
        until(lambda: past.asks.newest("demo")[0].backfill.state is BackfillState.DONE)
        past.begin_waiting()

        def related() -> bool:
            with service.database.reading() as session:
                return [one.state for one in bridges.newest(session, "demo")] == [
                    BridgeState.RELATED
                ]

        until(related)
        with service.database.reading() as session:
            two = commits.find(session, "demo", fork.commits[4].sha)
    finally:
        DBOS.destroy(destroy_registry=True)
        service.database.close()
    started = [order.candidate for order in runners.orders]
    shas = [commit.sha for commit in fork.commits]
    assert started == [shas[3], shas[4], shas[2], shas[0], shas[1], shas[3]]
    assert two is not None
    assert two.outcome is CommitOutcome.BASELINE
