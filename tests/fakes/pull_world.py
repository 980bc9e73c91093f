"""A service that has only what listens to GitHub, on real DBOS and a real database.

with a_pull_world(home) as world:
    head = world.fork.open(7, "Slower scan speed=0.8")
    world.news(pull_payload(7, head=head))
    world.until_over(7)
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from dbos import DBOS, DBOSConfig

from service.channels.github.webhooks import CommentMade, PullRequestChanged, read_news
from service.core.settings import load_settings
from service.flows.comment_orders import CommentOrders
from service.flows.comment_steps import CommentSteps
from service.flows.pull_request_flow import PullRequestFlow
from service.flows.pull_steps import PullSteps
from service.store import migrate, pull_jobs
from service.store.database import Database
from tests.fakes.hub_signature import body_of
from tests.fakes.memory_fork import StillClock
from tests.fakes.memory_pulls import (
    HeardActions,
    MemoryChecks,
    MemoryPulls,
    MemoryTalk,
    Mood,
    PatientRunners,
    Writers,
)
from tests.fakes.webhook_payloads import REPOSITORY, comment_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from service.core.pull_requests import PullJob
    from service.core.settings import Settings

#: Nothing waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 120
QUEUE = "measure-small"
BOT = "forkwatch[bot]"


@dataclass(kw_only=True)
class PullWorld:
    """Everything around pull requests."""

    database: Database
    fork: MemoryPulls
    runners: PatientRunners
    clock: StillClock
    mood: Mood
    checks: MemoryChecks
    talk: MemoryTalk
    writers: Writers
    actions: HeardActions
    steps: PullSteps
    pulls: PullRequestFlow
    orders: CommentOrders
    numbers: Iterator[int] = field(default_factory=lambda: count(7))
    comments: Iterator[int] = field(default_factory=lambda: count(4711))

    def news(self, payload: dict[str, Any]) -> None:
        """Hear of a pull request as through a webhook."""
        event = read_news("pull_request", body_of(payload), repository=REPOSITORY)
        assert isinstance(event, PullRequestChanged), event
        self.pulls.changed(event)

    def say(self, text: str, *, number: int, at: datetime, **named: Any) -> int:
        """Hear of a comment as through a webhook; return its id."""
        comment = next(self.comments)
        payload = comment_payload(text, number=number, comment=comment, at=at, **named)
        self.hear(payload)
        return comment

    def hear(self, payload: dict[str, Any]) -> None:
        """Hear of a comment."""
        event = read_news("issue_comment", body_of(payload), repository=REPOSITORY)
        assert isinstance(event, CommentMade), event
        self.orders.heard(event)

    def jobs(self, number: int) -> list[PullJob]:
        """Return the jobs of a pull request, oldest first."""
        with self.database.reading() as session:
            return pull_jobs.of_pull(session, "demo", number)[::-1]

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it never came to be"
            time.sleep(0.02)

    def until_over(self, number: int) -> list[PullJob]:
        """Wait until nothing is under way any more; return the jobs of a pull request."""
        self.until_quiet()
        return self.jobs(number)

    def until_answered(self, comment: int) -> str:
        """Wait until nothing is under way any more; return the answer to a comment, or nothing."""
        self.until_quiet()
        return self.talk.answers.get(comment, "")

    def until_quiet(self) -> None:
        """Wait until no flow is left but those that wait for a runner that is kept at work."""

        def quiet() -> bool:
            found = DBOS.list_workflows(status=["PENDING", "ENQUEUED"], load_input=False)
            waiting = {f"pull-measure:{job.id}" for job in self.steps.unfinished()}
            allowed = waiting if self.runners.at_work else set()
            return {one.workflow_id for one in found} <= allowed

        self.until(quiet)


@contextmanager
def a_pull_world(
    home: Path,
    url: str | None = None,
    *,
    checks: Any = None,
    talk: Any = None,
    writers: Any = None,
    **chosen: object,
) -> Iterator[PullWorld]:
    """Open a world, with a GitHub in memory or the parts given; no runner may be left in it."""
    home.mkdir(exist_ok=True)
    settings = load_settings(
        home=home, host_class="small", poll_seconds=0.05, database_url=url, **chosen
    )
    migrate.upgrade(settings.data_url)
    database, fork, clock, mood = (
        Database(settings.data_url),
        MemoryPulls("Import", "Quiet"),
        StillClock(),
        Mood(),
    )
    runners = PatientRunners(fork)
    checks, talk = checks or MemoryChecks(mood), talk or MemoryTalk(mood)
    writers, actions = writers or Writers("ada"), HeardActions()
    _make_dbos(settings)
    steps = PullSteps(
        database=database,
        clock=clock,
        code_host=fork,
        dispatcher=runners,
        checks=checks,
        comments=talk,
        settings=settings,
    )
    pulls = PullRequestFlow(steps, queue=QUEUE, step_pause_seconds=0.01, poll_seconds=0.05)
    carried = CommentSteps(
        database=database,
        clock=clock,
        code_host=fork,
        actions=actions,
        settings=settings,
        own_login=lambda: BOT,
    )
    orders = CommentOrders(
        carried, pulls, permissions=writers, comments=talk, step_pause_seconds=0.01
    )
    try:
        DBOS.launch()
        DBOS.register_queue(QUEUE, global_concurrency=1, polling_interval_sec=0.05)
        pulls.open_queue()
        yield PullWorld(
            database=database,
            fork=fork,
            runners=runners,
            clock=clock,
            mood=mood,
            checks=checks,
            talk=talk,
            writers=writers,
            actions=actions,
            steps=steps,
            pulls=pulls,
            orders=orders,
        )
    finally:
        DBOS.destroy(destroy_registry=True)
        database.close()


def _make_dbos(settings: Settings) -> None:
    DBOS(
        config=DBOSConfig(
            name="forkwatch",
            system_database_url=settings.flows_url,
            executor_id="test",
            application_version="1",
            console_log_level="WARNING",
        )
    )
