"""The whole service with real git, real folders of jobs and a double of GitHub: news become words.

A push and a pull request come in through the door for webhooks of a mirror that knows neither yet.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

import httpx
import pygit2
import pytest
from dbos import DBOS

from service.app.compose import compose
from service.channels.this_machine import ThisMachine
from service.core.clock import SystemClock
from service.core.settings import load_settings
from service.store import commits, migrate
from tests.fakes.git_fork import GitFork
from tests.fakes.github_api.credentials import USER_TOKEN
from tests.fakes.github_api.opened import REPOSITORY, a_github
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.hub_signature import SECRET, body_of, signature_of
from tests.fakes.webhook_payloads import pull_payload, push_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from service.app.compose import Service
    from tests.fakes.github_api.opened import OpenedGitHub

PATIENCE_SECONDS = 120
RUNNER = (sys.executable, "-m", "tests.fakes.leaving_runner")


class Forge:
    """A repository on GitHub, and the mirror of it that the service watches."""

    def __init__(self, folder: Path) -> None:
        self.origin = GitFork(folder / "origin.git")
        self.first = self.origin.push("Import")
        self.mirror = folder / "mirror.git"
        clone = pygit2.clone_repository(str(self.origin.folder), str(self.mirror), bare=True)
        clone.config["remote.origin.mirror"] = True

    def pull(self, number: int, subject: str) -> str:
        """Push a head to a pull request; return its hash."""
        head = self.origin.commit_aside(subject, parent=self.first)
        theirs = pygit2.Repository(str(self.origin.folder))
        theirs.references.create(f"refs/pull/{number}/head", pygit2.Oid(hex=head), force=True)
        return head


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return Forge(tmp_path)


@pytest.fixture
def github() -> Iterator[OpenedGitHub]:
    with DoubleServer() as server, a_github(server) as opened:
        yield opened


@pytest.fixture
def service(tmp_path: Path, forge: Forge, github: OpenedGitHub) -> Iterator[Service]:
    home = tmp_path / "home"
    home.mkdir()
    settings = load_settings(
        home=home,
        host_class="small",
        repository=forge.mirror,
        poll_seconds=0.2,
        github_repository=REPOSITORY,
        github_token=USER_TOKEN,
        github_api_url=github.url,
        github_webhook_secret=SECRET,
    )
    migrate.upgrade(settings.data_url)
    service = compose(settings, dispatcher=ThisMachine(home, command=RUNNER))
    service.start()
    yield service
    service.stop()
    DBOS.destroy(destroy_registry=True)
    service.database.close()


def tell(service: Service, event: str, payload: dict[str, Any]) -> None:
    """Send a webhook as GitHub does."""
    body = body_of(payload)
    headers = {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": f"{event}-1".replace("_", "-"),
        "X-Hub-Signature-256": signature_of(body),
    }

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=service.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/hooks/github", content=body, headers=headers)

    answer = asyncio.run(send())
    assert answer.status_code == 202, answer.text


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


def test_news_of_github_becomes_words_on_github(
    service: Service, forge: Forge, github: OpenedGitHub
) -> None:
    now = SystemClock().now()

    def seen(sha: str) -> bool:
        with service.database.reading() as session:
            return commits.find(session, "demo", sha) is not None

    def said(sha: str) -> list[tuple[str, str]]:
        found = [status for on, status in github.world.statuses if on == sha]
        return [(status["state"], status["description"]) for status in found]

    def states(sha: str) -> list[str]:
        return [state for state, _ in said(sha)]

    until(lambda: seen(forge.first))
    # A look now and then does not fetch: without the news nobody would know.
    pushed = forge.origin.push("Quiet")
    tell(service, "push", push_payload(at=now))
    until(lambda: seen(pushed))
    until(lambda: states(pushed)[-1:] == ["success"])
    until(lambda: states(forge.first)[-1:] == ["success"])
    # What was over before it could be said is left out; nothing is said twice.
    for sha in (forge.first, pushed):
        assert states(sha)[:-1] == ["pending"] * (len(states(sha)) - 1)
        assert len(said(sha)) == len(set(said(sha)))

    number = github.a_pull_request()
    head = forge.pull(number, "Slower speed=0.8")
    tell(service, "pull_request", pull_payload(number, head=head, at=now))

    until(lambda: github.texts(number))
    assert states(head) in (["pending", "failure"], ["failure"])
    [text] = github.texts(number)
    assert "scan is " in text
    assert f"git fetch origin pull/{number}/head" in text
