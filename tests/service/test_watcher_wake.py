"""A watcher that is woken looks at once, and fetches first where the repository is a mirror."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from service.core.settings import load_settings
from service.flows.watcher import Watcher
from tests.fakes.memory_fork import StillClock
from tests.fakes.memory_pulls import MemoryPulls

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.core.model import CommitRecord
    from service.store.database import Database

PATIENCE_SECONDS = 120


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_push_is_seen_when_it_is_told_and_not_an_hour_later(database: Database) -> None:
    fork = MemoryPulls("One")
    begun: list[str] = []

    def begin(commit: CommitRecord) -> None:
        begun.append(commit.subject)

    watcher = Watcher(
        database=database,
        clock=StillClock(),
        code_host=fork,
        settings=load_settings(poll_seconds=3600),
        begin=begin,
    )
    watcher.start()
    until(lambda: begun == ["One"])
    assert fork.refreshed == []

    fork.push("Two")
    watcher.wake()
    until(lambda: begun == ["One", "Two"])
    assert fork.refreshed == ["main"]

    # What it was told while the repository was away is looked at with the next push.
    fork.broken = True
    fork.push("Three")
    watcher.wake()
    time.sleep(0.05)
    fork.broken = False
    watcher.wake()
    until(lambda: begun == ["One", "Two", "Three"])
    # An hour is not waited for.
    watcher.stop()
    assert not watcher.alive
