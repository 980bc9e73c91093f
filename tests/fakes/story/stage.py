"""The stage of the story: the whole service between a GitHub, a Slack and runners of our own.

with a_stage(folder, seed=SEED) as stage:
    stage.push([Deed(...)])
    stage.press("acknowledge", alert)

Everything comes in through the service's own doors, signed as GitHub and Slack sign it. Whatever is
done here is over, with all that follows from it, before the next thing happens.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import httpx
from dbos import DBOS

from service.app.compose import compose
from service.core.model import CommitState
from service.core.settings import load_settings
from service.flows.bisect_flow import BISECT_QUEUE
from service.flows.pull_request_flow import GITHUB_CONCURRENCY, GITHUB_QUEUE
from service.store import alerts, commits, digests, events, migrate
from tests.fakes.github_api.credentials import APP_ID, private_key
from tests.fakes.github_api.opened import REPOSITORY, a_github
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.hub_signature import SECRET, body_of, signature_of
from tests.fakes.loopback import Loopback
from tests.fakes.memory_fork import StillClock
from tests.fakes.slack_api import CHANNEL, TOKEN, SlackDouble, SlackServer
from tests.fakes.slack_requests import SECRET as SLACK_SECRET
from tests.fakes.slack_requests import a_press, signed
from tests.fakes.story.bench import Bench
from tests.fakes.story.fork import FORK, StoryFork
from tests.fakes.story.runners import StoryRunners
from tests.fakes.webhook_payloads import pull_payload, push_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from service.app.compose import Service
    from service.core.model import Alert, CommitRecord, Event
    from service.core.settings import Settings
    from tests.fakes.github_api.opened import OpenedGitHub
    from tests.fakes.story.fork import Deed

#: A Monday morning.
BEGIN: Final = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
ADDRESS: Final = "https://perf.example.org"
ADA, EVE = "U0ADA", "U0EVE"
#: Nothing waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS: Final = 120
#: Between looks at queues, and at branch and jobs: only how long the story takes depends on them.
_QUEUE_SECONDS: Final = 0.05
_POLL_SECONDS: Final = 0.2
_DBOS_UNDER_WAY: Final = ("PENDING", "ENQUEUED")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Everything that the story has."""

    service: Service
    fork: StoryFork
    runners: StoryRunners
    clock: StillClock
    github: OpenedGitHub
    slack: SlackDouble
    door: httpx.Client
    deliveries: Iterator[int] = field(default_factory=lambda: count(1))

    def wait_until(self, moment: datetime) -> None:
        """Let the time come; it may not have passed already."""
        left = moment - self.clock.now()
        assert left >= timedelta(), f"it is {self.clock.now()}, later than {moment}"
        self.clock.advance(left)

    def push(self, deeds: Sequence[Deed]) -> list[str]:
        """Push commits to the branch, and have GitHub tell of it; return their hashes."""
        at = self.clock.now()
        pushed = self.fork.push(deeds, at=at)
        self._tell("push", push_payload(at=at))
        self._until(lambda: self._is_followed(pushed[-1]))
        self.settle()
        return pushed

    def open_pull(self, deed: Deed) -> tuple[int, str]:
        """Open a pull request, and have GitHub tell of it; return its number and its head."""
        at, number = self.clock.now(), self.github.a_pull_request()
        head = self.fork.open(number, deed, at=at)
        self._tell("pull_request", pull_payload(number, head=head, at=at))
        self.settle()
        return number, head

    def push_pull(self, number: int, deed: Deed, *, before: str, parent: str) -> str:
        """Replace the head of a pull request, and have GitHub tell of it; return the new one."""
        at = self.clock.now()
        head = self.fork.open(number, deed, parent=parent, at=at)
        payload = pull_payload(number, action="synchronize", head=head, before=before, at=at)
        self._tell("pull_request", payload)
        self.settle()
        return head

    def press(self, action: str, alert: Alert, *, user: str = ADA, settled: bool = True) -> None:
        """Have somebody press a button below an alert on Slack."""
        now = self.clock.now()
        first = self.slack.first_messages()[0]
        where = {"type": "message", "message_ts": first["ts"], "channel_id": CHANNEL}
        body = a_press(
            action,
            alert=alert.id,
            user=user,
            moment=f"{int(now.timestamp())}.{next(self.deliveries):06d}",
            container=where,
        )
        answer = self.door.post("/hooks/slack", content=body, headers=signed(body, at=now))
        assert answer.status_code == httpx.codes.OK, answer.text
        if settled:
            self.settle()

    def settle(self, *, while_held: bool = False) -> None:
        """Wait until nothing is left to do; with `while_held` but for what runners hold up."""
        left = {"bisect", "measure_bisect"} if while_held else set()

        def quiet() -> bool:
            if while_held and not self.runners.held:
                return False
            found = DBOS.list_workflows(status=list(_DBOS_UNDER_WAY), load_input=False)
            return {one.name for one in found} <= left

        self._until(quiet)

    def alert(self, sha: str) -> Alert:
        """Return the alert that a commit has a part in."""
        with self.service.database.reading() as session:
            found = alerts.of_commit(session, FORK, sha)
        assert found is not None, f"{sha} has no alert"
        return found

    def commit(self, sha: str) -> CommitRecord:
        """Return a commit as the service knows it."""
        with self.service.database.reading() as session:
            found = commits.find(session, FORK, sha)
        assert found is not None, f"{sha} was never seen"
        return found

    def events(self, sha: str) -> list[Event]:
        """Return what the service wrote down about a commit, in order."""
        with self.service.database.reading() as session:
            return events.of_commit(session, FORK, sha)

    def digest(self) -> str:
        """Have the digests written and sent that are due; return the newest."""
        self.service.digests.catch_up().get_result()
        self.settle()
        with self.service.database.reading() as session:
            return digests.newest(session, FORK)[0].text

    def _tell(self, event: str, payload: dict[str, Any]) -> None:
        body = body_of(payload)
        headers = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": f"delivery-{next(self.deliveries)}",
            "X-Hub-Signature-256": signature_of(body),
        }
        answer = self.door.post("/hooks/github", content=body, headers=headers)
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text

    def _is_followed(self, sha: str) -> bool:
        with self.service.database.reading() as session:
            found = commits.find(session, FORK, sha)
            return found is not None and found.state is CommitState.FINISHED

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it never came to be"
            time.sleep(_QUEUE_SECONDS)


@contextmanager
def a_stage(folder: Path, *, past: Sequence[Deed], seed: int) -> Iterator[Stage]:
    """Start a service that has a past of a few commits; give it when it has followed them.

    Args:
        folder: For everything.
        past: The commits that are there already.
        seed: Of all noise.
    """
    fork, clock = StoryFork(folder / "fork.git"), StillClock(BEGIN)
    tip = fork.push(past, at=BEGIN - timedelta(days=3))[-1]
    runners = StoryRunners(Bench(fork=fork, seed=seed), clock)
    with DoubleServer() as github_server, a_github(github_server) as github, _a_slack() as slack:
        settings = _settings(folder, fork=fork, github=github, slack=slack, backfill=len(past))
        migrate.upgrade(settings.data_url)
        service = compose(settings, clock=clock, dispatcher=runners)
        try:
            with Loopback(service.app) as listening, httpx.Client(base_url=listening.url) as door:
                runners.door = listening.url
                stage = Stage(
                    service=service,
                    fork=fork,
                    runners=runners,
                    clock=clock,
                    github=github,
                    slack=slack,
                    door=door,
                )
                service.start()
                _hurry(service)
                stage._until(lambda: stage._is_followed(tip))
                stage.settle()
                yield stage
        finally:
            service.stop()
            DBOS.destroy(destroy_registry=True)
            service.database.close()


@contextmanager
def _a_slack() -> Iterator[SlackDouble]:
    with SlackServer() as server:
        double = SlackDouble(server.url)
        server.double = double
        yield double


def _settings(
    folder: Path, *, fork: StoryFork, github: OpenedGitHub, slack: SlackDouble, backfill: int
) -> Settings:
    home, key = folder / "home", folder / "app.pem"
    home.mkdir()
    key.write_text(private_key())
    return load_settings(
        home=home,
        repository=fork.folder,
        host_class="bench",
        poll_seconds=_POLL_SECONDS,
        backfill_commits=backfill,
        public_url=ADDRESS,
        github_repository=REPOSITORY,
        github_app_id=APP_ID,
        github_private_key_file=key,
        github_api_url=github.url,
        github_webhook_secret=SECRET,
        slack_token=TOKEN,
        slack_channel=CHANNEL,
        slack_signing_secret=SLACK_SECRET,
        slack_writers=ADA,
        slack_api_url=f"{slack.url}/api/",
        # Every quiet commit would have its table on the page.
        github_commit_checks=False,
    )


def _hurry(service: Service) -> None:
    """Have the queues looked at more often: only how long the story takes depends on it."""
    limits = {service.flow.queue: 1, BISECT_QUEUE: 1, GITHUB_QUEUE: GITHUB_CONCURRENCY}
    for name, limit in limits.items():
        DBOS.register_queue(name, global_concurrency=limit, polling_interval_sec=_QUEUE_SECONDS)
