"""One branch walked by the real flow on real DBOS; each test makes one claim about one commit."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from dbos import DBOS

from detectors.verdict import Decision
from results.metric import THROUGHPUT
from results.slice import SideName
from service.app.compose import compose
from service.core.alert_records import AuditSubject
from service.core.model import AlertState, CommitOutcome, CommitState, EventKind, JobKind, JobState
from service.core.settings import load_settings
from service.store import (
    alerts,
    audit,
    commits,
    events,
    jobs,
    migrate,
    runs,
    samples,
    series,
    verdicts,
)
from tests.fakes.memory_fork import MemoryAlerts, MemoryFork, MemoryRunners, StillClock
from tests.fakes.memory_tracker import MemoryTracker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from results.job import JobOrder
    from service.app.compose import Service
    from service.core.model import CommitRecord, Event
    from service.core.ports import AlertSink
    from tests.fakes.postgres_server import PostgresServer

#: Nothing below waits on purpose; this only bounds a hang.
PATIENCE_SECONDS = 120

BRANCH = (
    "Import",  # 1
    "Quiet",  # 2
    "Does not build outcome=build-failed",  # 3
    "Documentation outcome=unchanged",  # 4
    "Looked slow luck=0.88",  # 5
    "Its runner is lost lose=2",  # 6
    "Its runner is always lost lose=99",  # 7
    "Slower scan speed=0.9",  # 8
    "After it speed=0.9",  # 9
    "Faster again speed=1.05",  # 10
    "The host was noisy outcome=unstable",  # 11
)


@dataclass(frozen=True, kw_only=True)
class Walked:
    """A branch that was walked to its end."""

    service: Service
    fork: MemoryFork
    runners: MemoryRunners
    alerts: MemoryAlerts

    def commit(self, number: int) -> CommitRecord:
        with self.service.database.reading() as session:
            found = commits.find(session, "demo", self.fork.commits[number - 1].sha)
        assert found is not None
        return found

    def events(self, number: int) -> list[Event]:
        with self.service.database.reading() as session:
            return events.of_commit(session, "demo", self.fork.commits[number - 1].sha)

    def kinds(self, number: int) -> list[EventKind]:
        return [event.kind for event in self.events(number)]


@contextmanager
def running(
    fork: MemoryFork, home: Path, *, sink: AlertSink | None = None, **chosen: object
) -> Iterator[Walked]:
    """Run the service without its web server; the watcher looks when it is told to."""
    settings = load_settings(home=home, host_class="small", poll_seconds=0.05, **chosen)
    home.mkdir(exist_ok=True)
    migrate.upgrade(settings.data_url)
    runners, told = MemoryRunners(fork), MemoryAlerts()
    service = compose(
        settings, clock=StillClock(), code_host=fork, dispatcher=runners, alerts=sink or told
    )
    try:
        DBOS.launch()
        service.flow.open_queue()
        yield Walked(service=service, fork=fork, runners=runners, alerts=told)
    finally:
        DBOS.destroy(destroy_registry=True)


def walk(walked: Walked) -> None:
    """Begin the flows of new commits and wait until all are finished."""
    walked.service.watcher.look()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with walked.service.database.reading() as session:
            if not commits.unfinished(session, "demo"):
                return
        time.sleep(0.05)
    raise AssertionError("the flows did not finish")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def walked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walked]:
    chosen = {}
    if request.param == "postgresql":
        # Data and flows in one database: the tables of DBOS live in a schema of their own.
        server: PostgresServer = request.getfixturevalue("postgres")
        chosen["database_url"] = server.new_database()
    with running(MemoryFork(*BRANCH), tmp_path_factory.mktemp("home"), **chosen) as found:
        walk(found)
        assert found.service.watcher.look() == []
        found.service.flow.enqueue(found.commit(8))
        time.sleep(1)
    # The library has one instance for all, so it is gone before the first test; the data is not.
    yield found
    found.service.database.close()


def test_every_commit_is_finished_in_branch_order(walked: Walked) -> None:
    expected = [
        CommitOutcome.BASELINE,
        CommitOutcome.NO_CHANGE,
        CommitOutcome.BUILD_FAILED,
        CommitOutcome.UNCHANGED,
        CommitOutcome.NO_CHANGE,
        CommitOutcome.NO_CHANGE,
        CommitOutcome.FAILED,
        CommitOutcome.REGRESSION,
        CommitOutcome.NO_CHANGE,
        CommitOutcome.IMPROVEMENT,
        CommitOutcome.UNSTABLE,
    ]
    found = [walked.commit(number) for number in range(1, len(BRANCH) + 1)]

    assert [commit.outcome for commit in found] == expected
    assert {commit.state for commit in found} == {CommitState.FINISHED}
    started = list(dict.fromkeys(order.candidate for order in walked.runners.orders))
    assert started == [commit.sha for commit in walked.fork.commits]


def test_the_first_commit_seeds_the_baseline_and_says_so(walked: Walked) -> None:
    assert "first run of scan, point-query" in walked.commit(1).reason
    assert walked.kinds(1) == [
        EventKind.SEEN,
        EventKind.DISPATCHED,
        EventKind.STORED,
        EventKind.BASELINE,
        EventKind.FINISHED,
    ]


def test_a_quiet_commit_costs_one_job_and_tells_nobody(walked: Walked) -> None:
    quiet = walked.commit(2)

    with walked.service.database.reading() as session:
        [job] = jobs.of_commit(session, "demo", quiet.sha)
        [run] = runs.of_commit(session, "demo", quiet.sha)
        assert len(verdicts.of_commit(session, "demo", quiet.sha)) == 2
        assert alerts.of_commit(session, "demo", quiet.sha) is None
    assert (job.kind, job.state, job.attempts, job.run) == (
        JobKind.SINGLE,
        JobState.STORED,
        1,
        run.id,
    )
    assert EventKind.SUSPICIOUS not in walked.kinds(2)


def test_a_commit_that_does_not_build_or_changes_nothing_says_why(walked: Walked) -> None:
    assert "does not build" in walked.commit(3).reason
    assert walked.commit(4).reason
    with walked.service.database.reading() as session:
        for number in (3, 4):
            assert verdicts.of_commit(session, "demo", walked.commit(number).sha) == []


def test_a_suspicion_that_is_cleared_stays_silent(walked: Walked) -> None:
    commit = walked.commit(5)

    with walked.service.database.reading() as session:
        found = verdicts.of_commit(session, "demo", commit.sha)
        assert alerts.of_commit(session, "demo", commit.sha) is None
    by_stage = {(v.stage, v.series.workload): v for v in found}
    assert by_stage[JobKind.SINGLE, "scan"].suspicious
    assert not by_stage[JobKind.CONFIRM, "scan"].suspicious
    # What was not suspicious is measured beside it, so that the reader knows how it fared.
    assert not by_stage[JobKind.SINGLE, "point-query"].suspicious
    assert by_stage[JobKind.CONFIRM, "point-query"].decision is Decision.NO_CHANGE
    assert EventKind.CONFIRM_JUDGED in walked.kinds(5)
    assert EventKind.ALERTED not in walked.kinds(5)


def test_a_confirm_is_paired_with_the_nearest_measured_commit(walked: Walked) -> None:
    """Commits 3 and 4 were not measured, so commit 5 is paired with commit 2."""
    confirm = next(
        order
        for order in walked.runners.orders
        if order.candidate == walked.commit(5).sha and order.baseline
    )

    assert confirm.baseline == walked.commit(2).sha
    assert confirm.workloads == ("scan", "point-query")
    assert confirm.starts == 10
    assert confirm.unchanged_from is None


def test_a_lost_runner_is_started_again(walked: Walked) -> None:
    with walked.service.database.reading() as session:
        [job] = jobs.of_commit(session, "demo", walked.commit(6).sha)
    orders = [order for order in walked.runners.orders if order.job == job.id]

    assert job.attempts == 3
    assert walked.kinds(6).count(EventKind.RUNNER_LOST) == 2
    # Each attempt has its own credential and is the same in all else.
    assert len({order.credential for order in orders}) == 3
    assert len({order.model_dump_json(exclude={"credential"}) for order in orders}) == 1


def test_a_runner_that_is_always_lost_is_given_up_with_a_bound(walked: Walked) -> None:
    with walked.service.database.reading() as session:
        [job] = jobs.of_commit(session, "demo", walked.commit(7).sha)

    assert job.state is JobState.ABANDONED
    assert walked.runners.starts_of(job.id) == 3
    assert "brought no run after 3 attempts" in walked.commit(7).reason


def test_a_confirmed_regression_raises_one_alert(walked: Walked) -> None:
    commit = walked.commit(8)

    with walked.service.database.reading() as session:
        [alert] = alerts.newest(session)
    assert alert.sha == commit.sha
    # The newest measured commit before it is the lost-and-found one.
    assert alert.baseline_sha == walked.commit(6).sha
    [slower] = alert.workloads
    assert slower.workload == "scan"
    assert slower.low < math.log(0.9) < slower.high < 0
    assert list(walked.alerts.told) == [alert.id]
    assert walked.alerts.calls == 1
    assert f"/alerts/{alert.id}" in walked.alerts.told[alert.id][1]
    assert "scan" in commit.reason
    assert walked.kinds(8)[-4:] == [
        EventKind.CONFIRM_JUDGED,
        EventKind.ALERTED,
        EventKind.FINISHED,
        # By commit 10, which makes up for the loss.
        EventKind.ALERT_CHANGED,
    ]


def test_the_commit_that_makes_up_for_the_loss_closes_the_alert(walked: Walked) -> None:
    with walked.service.database.reading() as session:
        [alert] = alerts.newest(session)
        linked = [(one.part, one.sha) for one in alerts.commits_of(session, alert.id)]
        [entry] = audit.history(session, AuditSubject.ALERT, alert.id)
    assert alert.state is AlertState.FIXED
    assert linked == [("opened", walked.commit(8).sha), ("fixed", walked.commit(10).sha)]
    assert (entry.actor, entry.details["commit"]) == ("forkwatch", walked.commit(10).sha)
    assert entry.told_at is not None


def test_after_an_accepted_change_the_new_level_is_the_baseline(walked: Walked) -> None:
    """Commit 9 is as slow as commit 8: it is compared with the confirm's candidate alone."""
    with walked.service.database.reading() as session:
        found = verdicts.of_commit(session, "demo", walked.commit(9).sha)
        confirm = next(
            job
            for job in jobs.of_commit(session, "demo", walked.commit(8).sha)
            if job.kind is JobKind.CONFIRM
        )
        by_workload = {v.series.workload: v for v in found}
        key = by_workload["scan"].series
        sides = samples.of_runs(session, key.id, [confirm.run])
    assert by_workload["scan"].baseline_inputs == ((confirm.run, "candidate"),)
    assert len(by_workload["point-query"].baseline_inputs) > 1
    assert {side for _, side in sides} == {SideName.BASELINE, SideName.CANDIDATE}


def test_an_improvement_is_confirmed_and_moves_the_baseline_without_an_alert(
    walked: Walked,
) -> None:
    commit = walked.commit(10)

    assert "faster" in commit.reason
    with walked.service.database.reading() as session:
        assert alerts.of_commit(session, "demo", commit.sha) is None
        [key] = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        accepted = verdicts.accepted_changes(session, key.id, [commit.sha, walked.commit(8).sha])
    assert set(accepted) == {commit.sha, walked.commit(8).sha}


def test_an_unstable_run_is_kept_and_not_judged(walked: Walked) -> None:
    with walked.service.database.reading() as session:
        [run] = runs.of_commit(session, "demo", walked.commit(11).sha)
        assert verdicts.of_run(session, run.id) == []


def test_looking_again_begins_nothing_twice(walked: Walked) -> None:
    """After the walk the fixture looked, and enqueued a finished commit, once more."""
    kept = [order for order in walked.runners.orders if "lose" not in _said(order, walked)]
    jobs_started = [order.job for order in kept]

    assert len(jobs_started) == len(set(jobs_started))
    assert walked.alerts.calls == 1


def _said(order: JobOrder, walked: Walked) -> str:
    return walked.fork.subjects[order.candidate]


def test_a_loss_that_was_fixed_and_comes_back_is_one_alert_all_along(tmp_path: Path) -> None:
    words = ("Import", "Quiet", "More", "Slower speed=0.9", "Repaired", "Broken again speed=0.9")
    tracker = MemoryTracker()
    with running(MemoryFork(*words), tmp_path / "home", sink=tracker) as found:
        walk(found)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while tracker.calls < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        shas = [commit.sha for commit in found.fork.commits]
        with found.service.database.reading() as session:
            [alert] = alerts.newest(session)
            linked = [(one.part, one.sha) for one in alerts.commits_of(session, alert.id)]
    found.service.database.close()

    assert (alert.sha, alert.state) == (shas[5], AlertState.CONFIRMED)
    assert linked == [("opened", shas[3]), ("fixed", shas[4]), ("reopened", shas[5])]
    [issue] = tracker.issues.values()
    assert issue.open
    assert list(issue.said) == [f"closed:{shas[4]}", f"reopened:{shas[5]}"]


def test_a_confirm_that_brings_nothing_leaves_the_commit_inconclusive(tmp_path: Path) -> None:
    """And a plan that cannot be used fails its commit with the plan's own words."""

    fork = MemoryFork("Import", "Quiet", "More", "Slower speed=0.85 loseconfirm=9")
    with running(fork, tmp_path / "home") as found:
        walk(found)
        slower = found.commit(4)
        fork.plan = fork.plan.replace("[suites.commit]", "[suites.nightly]")
        fork.push("Without a suite")
        walk(found)
        broken = found.commit(5)
    found.service.database.close()

    assert slower.outcome is CommitOutcome.INCONCLUSIVE
    assert "not confirmed: the paired job brought no run after 3 attempts" in slower.reason
    assert found.alerts.calls == 0
    assert broken.outcome is CommitOutcome.FAILED
    assert "no suite 'commit'" in broken.reason
