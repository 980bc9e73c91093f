"""The door for webhooks: what GitHub signed is done once, and nothing else is done at all."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from service.channels.github.webhooks import (
    CommentMade,
)
from service.core.errors import CodeHostError
from service.store import deliveries
from service.web.application import web_application
from service.web.pages import missing_page
from service.web.problems import MEDIA_TYPE
from service.web.webhooks import AGE_MAX, NewsDesk, webhooks_router
from tests.fakes.hub_signature import SECRET, body_of, signature_of
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.webhook_payloads import (
    REPOSITORY,
    comment_payload,
    pull_payload,
    push_payload,
)

if TYPE_CHECKING:
    from service.store.database import Database

LIMIT = 100_000


@dataclass
class Door:
    """Somebody in GitHub's place, and what the service made of it."""

    database: Database
    clock: StillClock = field(default_factory=StillClock)
    done: list[Any] = field(default_factory=list)
    secret: str | None = SECRET
    trouble: Exception | None = None
    guids: int = 0

    def send(
        self,
        event: str,
        payload: Any,
        *,
        guid: str | None = None,
        signature: str | None = None,
        **headers: str,
    ) -> httpx.Response:
        body = payload if isinstance(payload, bytes) else body_of(payload)
        self.guids += 1
        given = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": guid or f"72d3162e-cc78-11e3-81ab-{self.guids:012x}",
            "X-Hub-Signature-256": signature_of(body) if signature is None else signature,
            "Content-Type": "application/json",
            **headers,
        }
        return self.post(body, {name: value for name, value in given.items() if value})

    def post(self, body: bytes, headers: dict[str, str]) -> httpx.Response:
        router = webhooks_router(
            self.database,
            clock=self.clock,
            secret=self.secret,
            repository=REPOSITORY,
            desk=NewsDesk(
                pushed=self._note, pull_request_changed=self._note, commented=self._commented
            ),
            body_bytes_max=LIMIT,
        )
        app = web_application([router], missing_page=missing_page)

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.post("/hooks/github", content=body, headers=headers)

        return asyncio.run(send())

    def _note(self, news: Any) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.done.append(news)

    def _commented(self, news: CommentMade) -> bool:
        self._note(news)
        return "/forkwatch" in news.text


@pytest.fixture
def door(database: Database) -> Door:
    return Door(database)


def test_what_github_signed_is_taken_and_done(door: Door) -> None:
    answers = [
        door.send("push", push_payload()),
        door.send("pull_request", pull_payload()),
        door.send("issue_comment", comment_payload("/forkwatch run")),
    ]

    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert [answer.json()["result"] for answer in answers] == ["accepted"] * 3
    assert door.done[0] == "main"
    assert (door.done[1].number, door.done[1].head_sha) == (7, "a" * 40)
    assert (door.done[2].comment, door.done[2].login) == (4711, "ada")


def test_our_signer_and_the_standard_library_agree() -> None:
    """The signer of these tests is written by hand; it must be the same function."""
    for secret in ("short", "x" * 64, "y" * 200, "ключ"):
        expected = hmac.new(secret.encode(), b"body", hashlib.sha256).hexdigest()

        assert signature_of(b"body", secret) == f"sha256={expected}"


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "sha256=",
        "sha256=" + "0" * 64,
        signature_of(body_of(push_payload()), "another secret of somebody"),
        signature_of(body_of(push_payload()) + b" "),
        signature_of(body_of(push_payload())).upper(),
        signature_of(body_of(push_payload())).removeprefix("sha256="),
        signature_of(body_of(push_payload()))[:-1],
        signature_of(body_of(push_payload())) + "0",
        "sha1=" + hashlib.sha1(body_of(push_payload())).hexdigest(),
        "sha256=" + "é" * 64,
    ],
)
def test_what_github_did_not_sign_changes_nothing(door: Door, forged: str) -> None:
    body = body_of(push_payload())
    headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "1-2"}
    sent = {"X-Hub-Signature-256": forged.encode("latin-1")} if forged else {}

    answer = door.post(body, {**headers, **sent})

    assert answer.status_code == 401
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert door.done == []
    # And the GUID is not used up by it.
    assert door.send("push", push_payload(), guid="1-2").status_code == 202


def test_one_changed_byte_breaks_the_signature(door: Door) -> None:
    body = body_of(pull_payload())
    for place in range(0, len(body), 97):
        changed = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]

        assert door.send("pull_request", changed, signature=signature_of(body)).status_code == 401
    assert door.done == []


def test_a_delivery_that_comes_again_is_done_once(door: Door) -> None:
    first = door.send("pull_request", pull_payload(), guid="1-2")
    second = door.send("pull_request", pull_payload(), guid="1-2")

    assert (first.status_code, second.status_code) == (202, 200)
    assert second.json()["result"] == "duplicate"
    assert len(door.done) == 1


def test_a_replay_under_another_guid_or_event_is_refused(door: Door) -> None:
    """The signature covers the body alone: whoever has seen one delivery can send it again."""
    door.send("pull_request", pull_payload(), guid="1-2")

    again = door.send("pull_request", pull_payload(), guid="3-4")
    other = door.send("push", pull_payload(), guid="5-6")

    assert (again.status_code, again.json()["result"]) == (200, "duplicate")
    assert other.status_code == 200
    assert len(door.done) == 1


def test_what_is_older_than_github_sends_again_is_ignored(door: Door) -> None:
    door.clock.advance(AGE_MAX + timedelta(seconds=1))
    answers = [
        door.send("push", push_payload()),
        door.send("pull_request", pull_payload()),
        door.send("issue_comment", comment_payload("/forkwatch run")),
    ]

    assert [answer.json()["result"] for answer in answers] == ["ignored"] * 3
    assert door.done == []
    recent = pull_payload(at=AT + AGE_MAX)
    assert door.send("pull_request", recent).status_code == 202


def test_deliveries_are_kept_for_longer_than_they_can_come_again(door: Door) -> None:
    assert deliveries.KEPT > AGE_MAX
    door.send("pull_request", pull_payload(), guid="1-2")
    door.clock.advance(deliveries.KEPT + timedelta(days=1))
    later = pull_payload(at=AT + deliveries.KEPT)
    door.send("pull_request", later, guid="3-4")

    with door.database.reading() as session:
        assert not deliveries.is_known(session, guid="1-2", digest="")
        assert deliveries.is_known(session, guid="3-4", digest="")


def test_what_could_not_be_done_may_be_delivered_again(door: Door) -> None:
    door.trouble = CodeHostError("the repository is away")
    failed = door.send("pull_request", pull_payload(), guid="1-2")
    door.trouble = None
    again = door.send("pull_request", pull_payload(), guid="1-2")

    assert (failed.status_code, again.status_code) == (503, 202)
    assert len(door.done) == 1


def test_the_same_delivery_at_the_same_moment_is_written_down_once(database: Database) -> None:
    for expected in (True, False):
        with database.writing() as session:
            assert (
                deliveries.record_once(session, guid="1", digest="d", event="push", at=AT)
                is expected
            )
    with database.writing() as session:
        assert not deliveries.record_once(session, guid="2", digest="d", event="push", at=AT)


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("push", push_payload() | {"repository": {"full_name": "acme/other"}}),
        ("push", push_payload() | {"ref": "refs/tags/v1"}),
        ("ping", {"zen": "Design for failure.", "hook_id": 1}),
        ("star", {"action": "created", "repository": {"full_name": REPOSITORY}}),
        ("installation", {"action": "deleted"}),
        ("issue_comment", comment_payload("/forkwatch run", action="edited")),
        ("issue_comment", comment_payload("/forkwatch run", action="deleted")),
        ("issue_comment", comment_payload("well done")),
        ("a_new_event", {"repository": {"full_name": REPOSITORY}}),
        ("push", []),
        ("push", "text"),
        ("push", None),
    ],
)
def test_what_nothing_follows_from_is_answered_and_forgotten(
    door: Door, event: str, payload: Any
) -> None:
    answer = door.send(event, payload, guid="1-2")

    assert (answer.status_code, answer.json()["result"]) == (200, "ignored")
    assert answer.json()["why"]
    with door.database.reading() as session:
        assert not deliveries.is_known(session, guid="1-2", digest="")


def test_the_case_of_a_repository_does_not_matter(door: Door) -> None:
    payload = push_payload() | {"repository": {"full_name": REPOSITORY.upper()}}

    assert door.send("push", payload).status_code == 202


def test_without_a_secret_the_door_is_closed_and_says_why(door: Door) -> None:
    door.secret = None
    answer = door.send("push", push_payload())

    assert answer.status_code == 503
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert "FORKWATCH_GITHUB_WEBHOOK_SECRET" in answer.json()["detail"]
    assert door.done == []


def test_a_body_has_a_size(door: Door) -> None:
    payload = push_payload() | {"commits": ["x" * LIMIT]}

    assert door.send("push", payload).status_code == 413
    assert door.done == []


@pytest.mark.parametrize("body", [b"", b"{", b"payload=%7B%7D", b"\xff\xfe\x00", b"[" * 50_000])
def test_a_signed_body_that_is_not_json_is_refused(door: Door, body: bytes) -> None:
    answer = door.send("push", body)

    assert answer.status_code == 422
    assert "application/json" in answer.json()["detail"]


@pytest.mark.parametrize("lacking", ["X-GitHub-Event", "X-GitHub-Delivery"])
@pytest.mark.parametrize("value", ["", "no such thing!", "x" * 65])
def test_headers_have_their_form(door: Door, lacking: str, value: str) -> None:
    answer = door.send("push", push_payload(), **{lacking: value})

    assert answer.status_code == 422
    assert door.done == []
