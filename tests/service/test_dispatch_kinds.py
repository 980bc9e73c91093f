"""Pull requests and bisects through a CI: their steps see what they see of a runner here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.channels.github.webhooks import PullRequestChanged, read_news
from service.core.bisections import BisectJobState
from service.core.pull_requests import PullJobState
from service.core.settings import load_settings
from service.flows.bisect_steps import BisectSteps
from service.flows.pull_steps import PullSteps
from service.flows.steps import Sight
from service.store import bisect_jobs, migrate, pull_jobs
from service.store.database import Database
from tests.fakes.dispatch_scene import Scene
from tests.fakes.hub_signature import body_of
from tests.fakes.memory_pulls import MemoryChecks, MemoryPulls, MemoryTalk, Mood
from tests.fakes.scripted_measurement import measure
from tests.fakes.stored_bisects import BisectCaller
from tests.fakes.webhook_payloads import REPOSITORY, pull_payload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.core.pull_requests import PullJob
    from tests.fakes.memory_fork import MemoryFork

ATTEMPTS = 2


def measured_elsewhere(scene: Scene, job: str, fork: MemoryFork) -> None:
    """Let the newest run fetch the order of a job, measure, and bring the run."""
    given = scene.taken(job).order
    assert given.credential is not None
    document = measure(given, fork.subjects)
    scene.bring(given.credential.get_secret_value(), document, job)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    migrate.upgrade(url)
    scene = Scene(Database(url))
    yield scene
    scene.database.close()


class Pulls:
    """A pull request whose pair a CI measures."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.fork = scene, MemoryPulls("Import")
        self.steps = PullSteps(
            database=scene.database,
            clock=scene.clock,
            code_host=self.fork,
            dispatcher=scene.anew(),
            checks=MemoryChecks(Mood()),
            comments=MemoryTalk(Mood()),
            settings=load_settings(host_class="small", runner_attempts_max=ATTEMPTS),
        )
        head = self.fork.open(7, "Slower speed=0.8")
        event = read_news(
            "pull_request", body_of(pull_payload(7, head=head)), repository=REPOSITORY
        )
        assert isinstance(event, PullRequestChanged)
        noted = self.steps.note(event).job
        assert noted is not None
        self.job = noted.id
        assert self.steps.order(self.job)
        self.steps.dispatch(self.job, 1)

    def now(self) -> PullJob:
        with self.scene.database.reading() as session:
            found = pull_jobs.find(session, self.job)
        assert found is not None
        return found


def test_a_pull_request_is_judged_by_the_pair_that_a_ci_brings(scene: Scene) -> None:
    pulls = Pulls(scene)
    assert pulls.steps.look(pulls.job, 1) is Sight.WAIT
    (asked,) = scene.ci.asks
    assert asked.candidate == pulls.now().candidate_sha

    measured_elsewhere(scene, pulls.job, pulls.fork)
    assert pulls.steps.look(pulls.job, 1) is Sight.STORED
    pulls.steps.judge(pulls.job)
    assert pulls.now().state is PullJobState.JUDGED
    assert "slower" in pulls.now().said


def test_a_pull_request_that_a_ci_loses_says_why(scene: Scene) -> None:
    pulls = Pulls(scene)
    scene.ci.end(scene.ci.last(), "timed_out")
    assert pulls.steps.look(pulls.job, 1) is Sight.RESTART
    pulls.steps.dispatch(pulls.job, 2)
    scene.ci.end(scene.ci.last(), "cancelled")
    assert pulls.steps.look(pulls.job, 2) is Sight.GIVE_UP
    pulls.steps.judge(pulls.job)

    assert pulls.now().state is PullJobState.FAILED
    assert pulls.now().said.endswith(
        "its runner was lost 2 times or took too long; its run ended as 'cancelled' without a run "
        "document: https://ci.example/101"
    )


def test_a_pull_request_that_nobody_wants_any_more_ends_its_run(scene: Scene) -> None:
    pulls = Pulls(scene)
    pulls.steps.stop(pulls.job)

    assert scene.ci.cancelled == ["100"]


class Bisects:
    """A bisect whose first pair a CI measures."""

    def __init__(self, scene: Scene) -> None:
        self.scene, caller = scene, BisectCaller(scene.database)
        for subject in ("Import", "Quiet", "Slower speed=0.9", "After it speed=0.9"):
            caller.fork.push(subject)
        self.fork = caller.fork
        self.steps = BisectSteps(
            database=scene.database,
            clock=scene.clock,
            code_host=self.fork,
            dispatcher=scene.anew(),
            settings=load_settings(host_class="small", runner_attempts_max=ATTEMPTS),
        )
        bisect = caller.ask()
        assert self.steps.begin(bisect.id)
        job = self.steps.next_job(bisect.id)
        assert job is not None
        self.job = job
        self.steps.dispatch(self.job, 1)


def test_a_bisect_goes_on_from_the_pair_that_a_ci_brings(scene: Scene) -> None:
    bisects = Bisects(scene)
    assert bisects.steps.look(bisects.job, 1) is Sight.WAIT

    measured_elsewhere(scene, bisects.job, bisects.fork)
    assert bisects.steps.look(bisects.job, 1) is Sight.STORED
    bisects.steps.observe(bisects.job, "")
    with scene.database.reading() as session:
        found = bisect_jobs.find(session, bisects.job)
    assert found is not None
    assert found.state is BisectJobState.OBSERVED


def test_a_commit_whose_pair_a_ci_loses_says_why(scene: Scene) -> None:
    bisects = Bisects(scene)
    for attempt in range(1, ATTEMPTS + 1):
        bisects.steps.dispatch(bisects.job, attempt)
        scene.ci.end(scene.ci.last(), "failure")
        sight = bisects.steps.look(bisects.job, attempt)
    assert sight is Sight.GIVE_UP
    bisects.steps.observe(bisects.job, "")
    with scene.database.reading() as session:
        found = bisect_jobs.find(session, bisects.job)

    assert found is not None
    assert "its run ended as 'failure' without a run document" in found.said
