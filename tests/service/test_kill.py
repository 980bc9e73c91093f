"""`kill -9` of the service at its worst moments: nothing is lost, measured or said twice."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from service.core.model import CommitOutcome, EventKind, JobState
from service.core.settings import load_settings
from service.store import alerts, commits, events, jobs, runs, samples, series
from service.store.database import Database
from tests.fakes.free_ports import free_port
from tests.fakes.git_fork import GitFork
from tests.fakes.warm_process import WarmProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The act after which each life of the service ends.
LIVES = ("plan_text:2", "start:1", "now:9", "start:1", "status:4", "start:2", "raise_alert:1")
BRANCH = ("Import", "Quiet", "Quiet too", "Slower scan speed=0.88", "After it speed=0.88")
#: Nobody waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 180


class Operator:
    """Starts the service again each time it dies."""

    def __init__(self, folder: Path, fork: GitFork) -> None:
        self.home = folder / "home"
        self.port = free_port()
        self._fork = fork
        self._log = folder / "log"
        self.settings = load_settings(home=self.home, port=self.port, host_class="small")

    def start(self, *, last_act: str = "never:0") -> WarmProcess:
        words = (str(self.home), str(self._fork.folder), str(self.port), last_act)
        return WarmProcess("tests.fakes.mortal_service", *words, log=self._log)

    def wait_until_finished(self, process: WarmProcess, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            assert process.poll() is None, f"the service ended:\n{self._log.read_text()}"
            try:
                answer = httpx.get(f"{self.settings.base_url}/api/v1/commits?fork=demo", timeout=60)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.is_success:
                states = [commit["state"] for commit in answer.json()]
                if states == ["finished"] * count:
                    return
            time.sleep(0.1)
        raise AssertionError(f"not finished in time:\n{self._log.read_text()}")


def test_killed_again_and_again_every_commit_is_judged_once(tmp_path: Path) -> None:
    fork = GitFork(tmp_path / "fork.git")
    shas = [fork.push(subject) for subject in BRANCH]
    operator = Operator(tmp_path, fork)
    deaths = 0
    for last_act in LIVES:
        process = operator.start(last_act=last_act)
        deaths += process.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL
    process = operator.start()
    operator.wait_until_finished(process, len(BRANCH))
    process.send_signal(signal.SIGTERM)

    assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert deaths == len(LIVES)
    database = Database(operator.settings.data_url)
    try:
        check_history(database, operator.home, shas)
    finally:
        database.close()


def check_history(database: Database, home: Path, shas: list[str]) -> None:
    with database.reading() as session:
        found = {sha: commits.find(session, "demo", sha) for sha in shas}
        every_job = [job for sha in shas for job in jobs.of_commit(session, "demo", sha)]
        every_run = [run for sha in shas for run in runs.of_commit(session, "demo", sha)]
        [alert] = alerts.newest(session)
        log = [event for sha in shas for event in events.of_commit(session, "demo", sha)]
        stored = series.of_fork(session, "demo", metric="throughput_ops_s")
        counts = {
            run.id: sum(len(samples.of_runs(session, key.id, [run.id])) for key in stored)
            for run in every_run
        }
    outcomes = [commit.outcome for commit in found.values() if commit is not None]
    assert len(outcomes) == len(shas)
    assert outcomes[0] is CommitOutcome.BASELINE
    assert outcomes[3] is CommitOutcome.REGRESSION
    # One or two runs before them may be too few to show that nothing changed.
    quiet = {CommitOutcome.NO_CHANGE, CommitOutcome.INCONCLUSIVE}
    assert {outcomes[1], outcomes[2], outcomes[4]} <= quiet
    assert {job.state for job in every_job} == {JobState.STORED}
    assert sorted(run.job for run in every_run) == sorted(job.id for job in every_job)
    assert all(counts.values())
    # Runners outlive the service, so each job was measured once, whoever asked for it again.
    for job in every_job:
        assert (home / "jobs" / job.id / "measured").read_text() == "once\n", job.id
    assert alert.sha == shas[3]
    assert [path.name for path in (home / "alerts").iterdir()] == [f"{alert.id}.md"]
    finished = [event.sha for event in log if event.kind is EventKind.FINISHED]
    assert finished == shas
    assert sum(event.kind is EventKind.ALERTED for event in log) == 1


def test_a_runner_that_is_killed_is_started_again(tmp_path: Path) -> None:
    fork = GitFork(tmp_path / "fork.git")
    fork.push("Import")
    operator = Operator(tmp_path, fork)
    process = operator.start()
    for pid in runner_pids(operator.home):
        os.kill(pid, signal.SIGKILL)
    operator.wait_until_finished(process, 1)
    events_ = httpx.get(f"{operator.settings.base_url}/api/v1/events", timeout=60).json()
    ready = httpx.get(f"{operator.settings.base_url}/readyz", timeout=60)
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert [event["kind"] for event in events_].count("runner-lost") == 1
    assert events_[-1]["message"].startswith("baseline: first run")
    assert ready.json() == {"status": "ready"}


def runner_pids(home: Path) -> Iterator[int]:
    """Wait for the first runner and give its process id."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = list(home.glob("jobs/*/pid"))
        if found:
            yield int(found[0].read_text())
            return
        time.sleep(0.01)
    raise AssertionError("no runner was started")
