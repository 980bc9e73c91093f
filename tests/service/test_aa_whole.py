"""The composed service on real DBOS: a check that is due is ordered, measured and shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dbos import DBOS

from service.app.compose import compose
from service.core.aa_checks import AaState
from service.core.settings import load_settings
from service.store import migrate
from tests.fakes.memory_fork import MemoryAlerts, MemoryFork, StillClock
from tests.fakes.moving_runners import MovingRunners

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Nothing below waits on purpose; this only bounds a hang.
PATIENCE_SECONDS = 120


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < deadline, "it did not come to its end"
        time.sleep(0.05)


def test_a_check_that_is_due_is_measured_after_the_commit(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, host_class="small", poll_seconds=0.05, aa_check_days=7)
    migrate.upgrade(settings.data_url)
    fork = MemoryFork("One")
    runners = MovingRunners(fork)
    service = compose(
        settings, clock=StillClock(), code_host=fork, dispatcher=runners, alerts=MemoryAlerts()
    )
    past = service.histories
    try:
        DBOS.launch()
        service.flow.open_queue()
        service.watcher.look()
        # Nothing is measured yet, so nothing can be checked with.
        past.begin_waiting()

        def checked() -> bool:
            past.begin_waiting()
            found = past.checks.newest("small")
            return bool(found) and found[0].state is AaState.DONE

        until(checked)
        [check] = past.checks.newest("small")
    finally:
        DBOS.destroy(destroy_registry=True)
        service.database.close()
    assert [order.job for order in runners.orders[1:]] == [check.id]
    assert check.asked_by == "forkwatch"
