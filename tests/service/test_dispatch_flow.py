"""A branch walked by the real flow on real DBOS, its jobs done by runners of a CI."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from dbos import DBOS

from service.app.compose import compose
from service.core.identity import CiSystem
from service.core.model import AlertState, CommitOutcome, EventKind
from service.core.settings import load_settings
from service.flows.dispatched_runs import DispatchedRuns
from service.flows.dispatching import CiDispatcher
from service.store import alerts, commits, dispatched_jobs, events, jobs, migrate
from service.store.database import Database
from tests.fakes.memory_fork import MemoryAlerts, MemoryFork, StillClock
from tests.fakes.working_ci import WorkingCi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.core.model import CommitRecord

#: Nothing below waits on purpose; this only bounds a hang.
PATIENCE_SECONDS = 120
BRANCH = (
    "Import",  # 1
    "Its run is cancelled and nobody says so cancel=1 silent=1",  # 2
    "Its run lands elsewhere elsewhere=1",  # 3
    "Its runs are always cancelled cancel=99",  # 4
    "Slower scan speed=0.9",  # 5
)


@dataclass(frozen=True, kw_only=True)
class Walked:
    """A branch that was walked to its end."""

    database: Database
    fork: MemoryFork
    ci: WorkingCi

    def commit(self, number: int) -> CommitRecord:
        with self.database.reading() as session:
            found = commits.find(session, "demo", self.fork.commits[number - 1].sha)
        assert found is not None
        return found

    def lost(self, number: int) -> list[str]:
        """Return what a commit's log says of runners that were lost."""
        with self.database.reading() as session:
            log = events.of_commit(session, "demo", self.fork.commits[number - 1].sha)
        return [event.message for event in log if event.kind is EventKind.RUNNER_LOST]


def walk(home: Path, ci: WorkingCi) -> Walked:
    """Follow a branch until every commit of it is finished."""
    settings = load_settings(home=home, host_class="small", poll_seconds=0.05)
    home.mkdir(exist_ok=True)
    migrate.upgrade(settings.data_url)
    database, clock = Database(settings.data_url), StillClock()
    dispatcher = CiDispatcher(
        database=database,
        clock=clock,
        runners={CiSystem.GITHUB: ci},
        system_of=lambda _name: CiSystem.GITHUB,
        wait=timedelta(hours=1),
    )
    ci.door = DispatchedRuns(dispatcher=dispatcher, job_time=timedelta(hours=1))
    service = compose(
        settings, clock=clock, code_host=ci.fork, dispatcher=dispatcher, alerts=MemoryAlerts()
    )
    try:
        DBOS.launch()
        service.flow.open_queue()
        service.watcher.look()
        _until_finished(database)
        ci.join()
    finally:
        DBOS.destroy(destroy_registry=True)
        service.database.close()
    return Walked(database=database, fork=ci.fork, ci=ci)


def _until_finished(database: Database) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with database.reading() as session:
            if not commits.unfinished(session, "demo"):
                return
        time.sleep(0.05)
    raise AssertionError("the flows did not finish")


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walked]:
    found = walk(tmp_path_factory.mktemp("home"), WorkingCi(fork=MemoryFork(*BRANCH)))
    yield found
    found.database.close()


def test_commits_are_judged_by_what_runners_elsewhere_bring(walked: Walked) -> None:
    assert [walked.commit(number).outcome for number in range(1, len(BRANCH) + 1)] == [
        CommitOutcome.BASELINE,
        CommitOutcome.NO_CHANGE,
        CommitOutcome.NO_CHANGE,
        CommitOutcome.FAILED,
        CommitOutcome.REGRESSION,
    ]
    assert walked.ci.faults == []


def test_a_suspicion_is_confirmed_by_a_dispatched_pair(walked: Walked) -> None:
    slow = walked.fork.commits[4].sha
    with walked.database.reading() as session:
        found = jobs.of_commit(session, "demo", slow)
        alert = alerts.of_commit(session, "demo", slow)
    pair = [ask for ask in walked.ci.asks if ask.candidate == slow]

    assert sorted(ask.job for ask in pair) == sorted(job.id for job in found)
    assert len(pair) == 2
    assert alert is not None
    assert alert.state is AlertState.CONFIRMED


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (2, "its run ended as 'cancelled' without a run document: https://ci.example/"),
        (3, "it landed on a machine of the host class 'large' and was ordered for 'small'"),
    ],
)
def test_a_run_that_brings_nothing_is_noted_and_another_begins(
    walked: Walked, number: int, said: str
) -> None:
    (lost,) = walked.lost(number)

    assert "was lost on attempt 1" in lost
    assert said in lost
    assert lost.endswith("starting another")


def test_a_job_that_is_lost_too_often_fails_with_the_reason(walked: Walked) -> None:
    assert len(walked.lost(4)) == 3
    assert "brought no run after 3 attempts" in walked.commit(4).reason
    assert "its run ended as 'cancelled'" in walked.commit(4).reason


def test_each_dispatch_has_one_run(walked: Walked) -> None:
    titles = [ask.title for ask in walked.ci.asks]

    assert len(set(titles)) == len(titles)
    with walked.database.reading() as session:
        found = [dispatched_jobs.newest(session, ask.job) for ask in walked.ci.asks]
    assert None not in found
