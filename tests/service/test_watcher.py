from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from service.core.errors import CodeHostError
from service.core.model import CommitOutcome, CommitState
from service.core.settings import load_settings
from service.flows.watcher import Watcher
from service.store import commits, events, forks
from tests.fakes.memory_fork import AT, MemoryFork, StillClock
from workloads.errors import PlanError

if TYPE_CHECKING:
    from service.core.model import CommitRecord
    from service.store.database import Database

PATIENCE_SECONDS = 120


class Begun(list[str]):
    """The flows that were begun, by subject."""

    def begin(self, commit: CommitRecord) -> None:
        self.append(commit.subject)


def a_watcher(database: Database, fork: MemoryFork, begun: Begun, **chosen: object) -> Watcher:
    return Watcher(
        database=database,
        clock=StillClock(),
        code_host=fork,
        settings=load_settings(poll_seconds=0.01, **chosen),
        begin=begun.begin,
    )


def test_new_commits_are_begun_once_and_oldest_first(database: Database) -> None:
    fork, begun = MemoryFork("One", "Two"), Begun()
    watcher = a_watcher(database, fork, begun)
    watcher.look()
    watcher.look()
    fork.push("Three")
    watcher.look()

    assert begun == ["One", "Two", "Three"]
    with database.reading() as session:
        found = forks.find(session, "demo")
        last = commits.newest(session, "demo", limit=1)[0]
        seen = events.of_commit(session, "demo", last.sha)
    assert found is not None
    assert found.branch == "main"
    assert (last.state, last.seen_at) == (CommitState.WAITING, AT)
    assert [event.message for event in seen] == ["seen on main: Three"]


def test_a_fork_seen_first_is_begun_at_its_last_few_commits(database: Database) -> None:
    """And older ones are not brought up by a later look."""
    fork, begun = MemoryFork(*(str(number) for number in range(9))), Begun()
    watcher = a_watcher(database, fork, begun, backfill_commits=3)
    watcher.look()
    fork.push("9")
    watcher.look()

    assert begun == ["6", "7", "8", "9"]


def test_after_a_restart_unfinished_commits_are_begun_again(database: Database) -> None:
    """The service may have been killed between writing a commit down and beginning its flow."""
    fork = MemoryFork("One", "Two")
    a_watcher(database, fork, Begun()).look()
    with database.writing() as session:
        commits.finish(
            session,
            "demo",
            fork.commits[0].sha,
            outcome=CommitOutcome.BASELINE,
            reason="",
            at=AT,
        )
    begun = Begun()
    restarted = a_watcher(database, fork, begun)
    restarted.look()
    restarted.look()

    assert begun == ["Two"]


def test_trouble_with_the_repository_or_plan_does_not_end_the_watch(database: Database) -> None:
    fork, begun = MemoryFork("One"), Begun()
    fork.broken = True
    watcher = a_watcher(database, fork, begun)
    with pytest.raises(CodeHostError):
        watcher.look()
    watcher.start()
    time.sleep(0.1)
    assert watcher.alive
    fork.plan, good = "nonsense", fork.plan
    fork.broken = False
    with pytest.raises(PlanError):
        watcher.look()
    fork.plan = good
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not begun and time.monotonic() < deadline:
        time.sleep(0.01)
    watcher.stop()

    assert begun == ["One"]
    assert not watcher.alive
