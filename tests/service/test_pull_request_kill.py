"""`kill -9` of the service while a pull request is on its way: nothing is lost or said twice."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pygit2
import pytest

from service.core.clock import SystemClock
from service.core.pull_requests import PullJobState
from service.core.settings import load_settings
from service.store import pull_jobs
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

    from tests.fakes.github_api.opened import OpenedGitHub

#: The act after which each life ends: the head is fetched, its runner started, looked at.
LIVES = ("pull_request:1", "start:1", "status:1")
#: Nobody waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 180


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenedGitHub]:
    with DoubleServer() as server, a_github(server) as opened:
        monkeypatch.setenv("FORKWATCH_GITHUB_REPOSITORY", REPOSITORY)
        monkeypatch.setenv("FORKWATCH_GITHUB_TOKEN", USER_TOKEN)
        monkeypatch.setenv("FORKWATCH_GITHUB_API_URL", server.url)
        monkeypatch.setenv("FORKWATCH_GITHUB_WEBHOOK_SECRET", SECRET)
        yield opened


class Operator:
    """Starts the service again each time it dies."""

    def __init__(self, folder: Path, fork: GitFork) -> None:
        home = folder / "home"
        self.settings = load_settings(home=home, port=free_port(), host_class="small")
        self._fork = fork
        self._log = folder / "log"

    def start(self, *, last_act: str = "never:0") -> WarmProcess:
        home, port = str(self.settings.home), str(self.settings.port)
        words = (home, str(self._fork.folder), port, last_act)
        return WarmProcess("tests.fakes.mortal_service", *words, log=self._log)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so; a service that is not up yet is not an answer."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"not in time:\n{self._log.read_text()}")

    def finished(self) -> bool:
        """Whether the branch is measured."""
        answer = httpx.get(f"{self.settings.base_url}/api/v1/commits?fork=demo", timeout=60)
        states = [commit["state"] for commit in answer.json()] if answer.is_success else []
        return states == ["finished"]


def test_killed_again_and_again_a_pull_request_is_told_once(
    tmp_path: Path, github: OpenedGitHub
) -> None:
    fork = GitFork(tmp_path / "fork.git")
    base = fork.push("Import")
    number = github.a_pull_request()
    head = fork.commit_aside("Slower speed=0.8", parent=base)
    own = pygit2.Repository(str(fork.folder))
    own.references.create(f"refs/pull/{number}/head", pygit2.Oid(hex=head))
    operator = Operator(tmp_path, fork)
    process = operator.start()
    operator.until(operator.finished)
    process.kill()
    process.wait(timeout=PATIENCE_SECONDS)

    body = body_of(pull_payload(number, head=head, at=SystemClock().now()))
    headers = {
        "X-GitHub-Event": "pull_request",
        "X-GitHub-Delivery": "1-2",
        "X-Hub-Signature-256": signature_of(body),
    }
    where = f"{operator.settings.base_url}/hooks/github"

    def told() -> bool:
        return httpx.post(where, content=body, headers=headers, timeout=60).is_success

    def states(of: str = head) -> list[str]:
        return [status["state"] for sha, status in github.world.statuses if sha == of]

    first = operator.start(last_act=LIVES[0])
    # It may die of the news before it has answered.
    operator.until(lambda: first.poll() is not None or told())
    deaths = [first.wait(timeout=PATIENCE_SECONDS)]
    deaths += [operator.start(last_act=act).wait(timeout=PATIENCE_SECONDS) for act in LIVES[1:]]
    process = operator.start()
    # Once more when its first words are on GitHub and perhaps not noted.
    operator.until(lambda: bool(states()))
    process.kill()
    process.wait(timeout=PATIENCE_SECONDS)
    process = operator.start()
    operator.until(lambda: bool(github.texts(number)))
    operator.until(lambda: "failure" in states())
    operator.until(lambda: "success" in states(base))
    # What would be said twice is said twice within seconds.
    operator.until(told)
    process.send_signal(signal.SIGTERM)

    assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert deaths == [-signal.SIGKILL] * len(LIVES)
    # A life that came late may have had nothing to say but the end.
    assert states() in (["pending", "failure"], ["failure"])
    # Whichever life came to say it, and whatever was left out: the end is said once.
    assert states(base)[-1] == "success"
    assert states(base).count("success") == 1
    assert len(github.texts(number)) == 1
    database = Database(operator.settings.data_url)
    with database.reading() as session:
        [job] = pull_jobs.of_pull(session, "demo", number)
    database.close()
    assert job.state is PullJobState.JUDGED
    measured = operator.settings.home_folder / "jobs" / job.id / "measured"
    assert measured.read_text() == "once\n"
