"""Two processes of one service on PostgreSQL: where one is killed, the other goes on, once."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx
import pygit2
import pytest

from service.core.clock import SystemClock
from service.core.model import CommitOutcome, JobState
from service.core.pull_requests import PullJobState
from service.core.settings import load_settings
from service.store import commits, jobs, pull_jobs, runs
from service.store.database import Database
from tests.fakes.free_ports import free_port
from tests.fakes.git_fork import GitFork
from tests.fakes.github_api.credentials import USER_TOKEN
from tests.fakes.github_api.opened import REPOSITORY, a_github
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.hub_signature import SECRET, body_of, signature_of
from tests.fakes.warm_process import WarmProcess
from tests.fakes.webhook_payloads import pull_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.fakes.github_api.opened import OpenedGitHub
    from tests.fakes.postgres_server import PostgresServer

#: Nobody waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 180
#: Whoever starts a runner first dies of it. The other finds it at work and starts none.
AT_THE_FIRST_START = "start:1"
NEVER = "never:0"


class Replica:
    """One process of the service, started again by whoever wants it to live on."""

    def __init__(self, name: str, home: Path, fork: GitFork, url: str) -> None:
        self.name, self.home = name, home
        self.port = free_port()
        self.log = home.with_name(f"{name}.log")
        self.base_url = load_settings(home=home, port=self.port).base_url
        self._fork, self._url = fork, url
        self._process: WarmProcess | None = None

    def start(self, last_act: str) -> None:
        words = (str(self.home), str(self._fork.folder), str(self.port), last_act)
        chosen = {"FORKWATCH_DATABASE_URL": self._url, "FORKWATCH_REPLICA": self.name}
        self._process = WarmProcess(
            "tests.fakes.mortal_service", *words, log=self.log, environment=chosen
        )

    def ended(self) -> int | None:
        """Return how it ended, None while it lives."""
        assert self._process is not None
        return self._process.poll()

    def is_ready(self) -> bool:
        """Whether it lives and can work."""
        try:
            return httpx.get(f"{self.base_url}/readyz", timeout=60).is_success
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        """Stop it in good order."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(timeout=PATIENCE_SECONDS) == 0

    def kill(self) -> None:
        """Leave no process behind, whatever the test came to."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=PATIENCE_SECONDS)


class Pair:
    """Two replicas that share a home folder and a database."""

    def __init__(self, folder: Path, url: str) -> None:
        self.fork = GitFork(folder / "fork.git")
        self.home = folder / "home"
        self.both = [Replica(name, self.home, self.fork, url) for name in ("ada", "bob")]

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            logs = [one.log.read_text() for one in self.both if one.log.exists()]
            assert time.monotonic() < deadline, "\n".join(["it never came to be", *logs])
            time.sleep(0.05)

    def until_one_is_killed(self) -> tuple[Replica, Replica]:
        """Wait until one dies; return it and the one that lives on."""
        self.until(lambda: any(one.ended() is not None for one in self.both))
        dead, living = sorted(self.both, key=lambda one: one.ended() is None)
        assert (dead.ended(), living.ended()) == (-signal.SIGKILL, None), living.log.read_text()
        return dead, living

    def measured(self) -> list[str]:
        """Return how often each job was measured, as the runners noted it."""
        return [path.read_text() for path in self.home.glob("jobs/*/measured")]


@pytest.fixture
def url(postgres: PostgresServer, postgres_template: str) -> str:
    return postgres.new_database(like=postgres_template)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    found = Database(url)
    yield found
    found.close()


@pytest.fixture
def pair(tmp_path: Path, url: str) -> Iterator[Pair]:
    found = Pair(tmp_path, url)
    yield found
    for one in found.both:
        one.kill()


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenedGitHub]:
    with DoubleServer() as server, a_github(server) as opened:
        monkeypatch.setenv("FORKWATCH_GITHUB_REPOSITORY", REPOSITORY)
        monkeypatch.setenv("FORKWATCH_GITHUB_TOKEN", USER_TOKEN)
        monkeypatch.setenv("FORKWATCH_GITHUB_API_URL", server.url)
        monkeypatch.setenv("FORKWATCH_GITHUB_WEBHOOK_SECRET", SECRET)
        yield opened


def finished(database: Database) -> list[CommitOutcome | None]:
    """Return the outcomes of the commits that are finished, oldest first."""
    with database.reading() as session:
        found = commits.newest(session, "demo")[::-1]
    return [commit.outcome for commit in found if commit.outcome is not None]


def test_a_commit_that_one_had_is_finished_by_the_other(pair: Pair, database: Database) -> None:
    shas = [pair.fork.push("Import")]
    for one in pair.both:
        one.start(AT_THE_FIRST_START)
    dead, living = pair.until_one_is_killed()
    pair.until(lambda: len(finished(database)) == 1)
    # It comes back under its name, and finds its flow with another.
    dead.start(NEVER)
    pair.until(dead.is_ready)
    shas.append(pair.fork.push("Quiet"))
    # Now the other one may die, of the first runner that it starts itself.
    pair.until(lambda: len(finished(database)) == 2)

    with database.reading() as session:
        every_job = [job for sha in shas for job in jobs.of_commit(session, "demo", sha)]
        every_run = [run for sha in shas for run in runs.of_commit(session, "demo", sha)]
    assert finished(database)[0] is CommitOutcome.BASELINE
    assert [job.state for job in every_job] == [JobState.STORED] * 2
    assert [run.job for run in every_run] == [job.id for job in every_job]
    assert pair.measured() == ["once\n"] * 2
    assert f"replica {dead.name} is gone" in living.log.read_text()
    if living.ended() is None:
        living.stop()
    dead.stop()


def test_a_pull_request_that_one_had_is_told_once_by_the_other(
    pair: Pair, database: Database, github: OpenedGitHub
) -> None:
    base = pair.fork.push("Import")
    number = github.a_pull_request()
    head = pair.fork.commit_aside("Slower speed=0.8", parent=base)
    own = pygit2.Repository(str(pair.fork.folder))
    own.references.create(f"refs/pull/{number}/head", pygit2.Oid(hex=head))
    first = pair.both[0]
    first.start(NEVER)
    pair.until(lambda: len(finished(database)) == 1)
    first.stop()

    for one in pair.both:
        one.start(AT_THE_FIRST_START)
    pair.until(lambda: all(one.is_ready() for one in pair.both))
    body = body_of(pull_payload(number, head=head, at=SystemClock().now()))
    headers = {
        "X-GitHub-Event": "pull_request",
        "X-GitHub-Delivery": "1-2",
        "X-Hub-Signature-256": signature_of(body),
    }
    where = f"{first.base_url}/hooks/github"
    # It may die of the news before it has answered.
    with suppress(httpx.TransportError):
        assert httpx.post(where, content=body, headers=headers, timeout=60).is_success
    _, living = pair.until_one_is_killed()

    def states() -> list[str]:
        return [status["state"] for sha, status in github.world.statuses if sha == head]

    pair.until(lambda: "failure" in states() and bool(github.texts(number)))
    with database.reading() as session:
        [job] = pull_jobs.of_pull(session, "demo", number)
    pair.until(lambda: not flows_left(living))
    living.stop()

    assert job.state is PullJobState.JUDGED
    assert states() in (["pending", "failure"], ["failure"])
    assert len(github.texts(number)) == 1
    assert (pair.home / "jobs" / job.id / "measured").read_text() == "once\n"


def flows_left(replica: Replica) -> bool:
    """Whether any flow is under way, as the metrics say."""
    said = httpx.get(f"{replica.base_url}/metrics", timeout=60).text
    return any(
        line.startswith("forkwatch_flows{") and not line.endswith(" 0.0")
        for line in said.splitlines()
    )
