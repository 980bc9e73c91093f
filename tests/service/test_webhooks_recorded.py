"""Every payload that Octokit has recorded gets an answer, and no forged one gets in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from service.channels.github.webhooks import (
    CommentMade,
    Ignored,
    PullRequestChanged,
    Push,
    read_news,
)
from service.core.dispatching import RunEnded
from service.store import migrate
from service.store.database import Database
from service.web.application import web_application
from service.web.pages import missing_page
from service.web.webhooks import NewsDesk, webhooks_router
from tests.fakes.hub_signature import SECRET, body_of, signature_of
from tests.fakes.memory_fork import StillClock
from tests.fakes.webhook_examples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Most of them were recorded in this one.
RECORDED_IN = "Codertocat/Hello-World"


@dataclass
class Desk:
    """Remembers what was heard."""

    heard: list[Any] = field(default_factory=list)

    def note(self, news: Any) -> bool:
        self.heard.append(news)
        return True


@pytest.fixture
def door(tmp_path: Path) -> Iterator[tuple[Any, Desk]]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    migrate.upgrade(url)
    database, desk = Database(url), Desk()
    router = webhooks_router(
        database,
        clock=StillClock(),
        secret=SECRET,
        repository=RECORDED_IN,
        desk=NewsDesk(pushed=desk.note, pull_request_changed=desk.note, commented=desk.note),
    )
    yield web_application([router], missing_page=missing_page), desk
    database.close()


def answers(app: Any, *, forged: bool) -> list[httpx.Response]:
    """Return the answer to each recorded payload."""

    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            found = []
            for number, (event, payload) in enumerate(examples()):
                body = body_of(payload)
                headers = {
                    "X-GitHub-Event": event,
                    "X-GitHub-Delivery": f"guid-{number}",
                    "X-Hub-Signature-256": signature_of(body, "not it" if forged else SECRET),
                }
                found.append(await client.post("/hooks/github", content=body, headers=headers))
            return found

    return asyncio.run(send())


def test_there_are_as_many_as_we_know() -> None:
    found = examples()

    assert len(found) == 329
    assert {"push", "pull_request", "issue_comment", "ping"} <= {event for event, _ in found}


def test_every_recorded_payload_gets_an_answer(door: tuple[Any, Desk]) -> None:
    app, _ = door
    statuses = {answer.status_code for answer in answers(app, forged=False)}

    # They are years old: none of them is news.
    assert statuses == {200}


def test_no_forged_payload_gets_in(door: tuple[Any, Desk]) -> None:
    app, desk = door
    statuses = {answer.status_code for answer in answers(app, forged=True)}

    assert statuses == {401}
    assert desk.heard == []


def test_what_we_listen_to_is_read_from_what_github_really_sends() -> None:
    """Our own payloads are made by us; these show that they look like GitHub's."""
    kinds = {
        "push": Push,
        "pull_request": PullRequestChanged,
        "issue_comment": CommentMade,
        "workflow_run": RunEnded,
    }
    read: dict[str, int] = dict.fromkeys(kinds, 0)
    for event, payload in examples():
        repository = payload.get("repository", {}).get("full_name", "")
        news = read_news(event, body_of(payload), repository=repository or "nobody/nothing")
        if event not in kinds:
            assert isinstance(news, Ignored), event
        elif not isinstance(news, Ignored):
            assert isinstance(news, kinds[event])
            read[event] += 1

    # The other pushes are of tags, the other comments edited or deleted.
    assert read == {"push": 2, "pull_request": 29, "issue_comment": 5, "workflow_run": 2}
