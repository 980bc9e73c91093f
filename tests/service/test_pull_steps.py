"""The steps of a pull request's flow by themselves: each may be done again after a crash."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from service.channels.github.webhooks import PullRequestChanged, read_news
from service.core.model import JobStatus
from service.core.pull_requests import PullJobState
from service.core.settings import load_settings
from service.flows.pull_steps import PullSteps
from service.flows.steps import Sight
from service.store import pull_jobs
from tests.fakes.hub_signature import body_of
from tests.fakes.memory_fork import StillClock
from tests.fakes.memory_pulls import MemoryChecks, MemoryPulls, MemoryTalk, Mood, PatientRunners
from tests.fakes.webhook_payloads import REPOSITORY, pull_payload, when

if TYPE_CHECKING:
    from service.core.pull_requests import PullJob
    from service.store.database import Database


class Bench:
    """The steps with everything in memory but the store."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.fork = MemoryPulls("Import")
        self.runners = PatientRunners(self.fork)
        self.clock = StillClock()
        self.checks, self.talk = MemoryChecks(Mood()), MemoryTalk(Mood())
        self.steps = PullSteps(
            database=database,
            clock=self.clock,
            code_host=self.fork,
            dispatcher=self.runners,
            checks=self.checks,
            comments=self.talk,
            settings=load_settings(host_class="small", job_timeout_minutes=60),
        )

    def opened(self, subject: str, **named: Any) -> PullJob:
        """Note a pull request and return its job."""
        head = self.fork.open(7, subject)
        event = read_news(
            "pull_request", body_of(pull_payload(7, head=head)), repository=REPOSITORY
        )
        assert isinstance(event, PullRequestChanged)
        job = self.steps.note(event).job
        assert job is not None
        return job

    def now(self, job: PullJob) -> PullJob:
        with self.database.reading() as session:
            found = pull_jobs.find(session, job.id)
        assert found is not None
        return found


@pytest.fixture
def bench(database: Database) -> Bench:
    return Bench(database)


def test_every_step_may_be_done_twice(bench: Bench) -> None:
    job, steps = bench.opened("Slower speed=0.8"), bench.steps
    for _ in range(2):
        assert steps.order(job.id)
    ordered = bench.now(job).order
    for _ in range(2):
        steps.dispatch(job.id, 1)
    for _ in range(2):
        assert steps.look(job.id, 1) is Sight.STORED
    for _ in range(2):
        steps.judge(job.id)
        bench.clock.advance(timedelta(minutes=1))
    for _ in range(2):
        steps.show(job.id)

    judged = bench.now(job)
    assert (judged.state, judged.order) == (PullJobState.JUDGED, ordered)
    assert judged.finished_at == judged.created_at
    assert bench.runners.starts_of(job.id) == 1
    assert len(bench.checks.shown) == len(bench.talk.stuck) == 1
    # Nothing is left to be measured.
    assert not steps.order(job.id)


def test_a_job_that_was_superseded_while_its_runner_started_is_stopped(bench: Bench) -> None:
    job = bench.opened("Takes long wait=yes")
    bench.steps.order(job.id)
    bench.steps.dispatch(job.id, 1)
    with bench.database.writing() as session:
        [over] = pull_jobs.supersede(session, "demo", 7, keep_sha=None, said="closed", at=when(60))
    assert over.state is PullJobState.SUPERSEDED

    assert bench.steps.look(job.id, 1) is Sight.GIVE_UP
    assert bench.runners.stopped == [job.id]
    # What is over stays so, whoever comes late.
    bench.steps.judge(job.id)
    bench.steps.give_up(job.id, "SomeError")
    bench.steps.dispatch(job.id, 2)
    assert bench.now(job) == over
    assert bench.runners.starts_of(job.id) == 1


def test_a_job_that_takes_too_long_is_stopped(bench: Bench) -> None:
    """Counted from its first runner: it may have waited for a machine all night."""
    job = bench.opened("Takes long wait=yes")
    bench.clock.advance(timedelta(hours=12))
    bench.steps.order(job.id)
    bench.steps.dispatch(job.id, 1)
    assert bench.steps.look(job.id, 1) is Sight.WAIT
    bench.clock.advance(timedelta(hours=1, seconds=1))

    assert bench.steps.look(job.id, 1) is Sight.GIVE_UP
    assert bench.runners.status(job.id) is JobStatus.LOST
    bench.steps.judge(job.id)
    assert "took too long" in bench.now(job).said


def test_what_failed_here_is_not_told_to_the_world(bench: Bench) -> None:
    job = bench.opened("Tidy up")
    bench.steps.give_up(job.id, "CodeHostError")
    bench.steps.show(job.id)

    [check] = bench.checks.shown.values()
    assert check.title == "the service could not go on (CodeHostError); its log says more"


def test_a_plan_that_gives_no_order_is_said(bench: Bench) -> None:
    job = bench.opened("Tidy up")
    bench.fork.plan = bench.fork.plan.replace("[suites.commit]", "[suites.nightly]")

    assert not bench.steps.order(job.id)
    failed = bench.now(job)
    assert failed.state is PullJobState.FAILED
    assert "the plan of the default branch cannot be used" in failed.said


def test_what_is_over_is_not_written_over_by_what_was(bench: Bench) -> None:
    """GitHub may keep whoever shows a job waiting, and the job ends meanwhile."""
    job = bench.opened("Slower speed=0.8")

    class SlowDoor(nullcontext[None]):
        def __enter__(self) -> None:
            bench.steps.give_up(job.id, "SomeError")

    replace(bench.steps, alone=SlowDoor()).show(job.id)

    [check] = bench.checks.of(job.candidate_sha)
    assert check.conclusion is not None
