"""The door for Buildkite's webhooks: what it signed is done once, and nothing else is done."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from service.core.buildkite import AGE_SECONDS_MAX, BODY_BYTES_MAX, BuildEnded
from service.core.errors import CodeHostError
from service.store import deliveries
from service.web.application import web_application
from service.web.buildkite_hooks import AGE_MAX, buildkite_router
from service.web.pages import missing_page
from service.web.problems import MEDIA_TYPE
from tests.fakes.buildkite_hooks import SECRET, build_payload, job_payload, signed
from tests.fakes.hub_signature import body_of
from tests.fakes.memory_fork import AT, StillClock

if TYPE_CHECKING:
    from service.store.database import Database


@dataclass
class Door:
    """Somebody in Buildkite's place, and what the service made of it."""

    database: Database
    clock: StillClock = field(default_factory=StillClock)
    ended: list[BuildEnded] = field(default_factory=list)
    secret: str | None = SECRET
    #: Whether a job waits for what ends.
    waits: bool = True
    trouble: Exception | None = None

    def send(self, payload: Any, **headers: str) -> httpx.Response:
        """Send a payload as Buildkite signs it, or with other headers."""
        body = payload if isinstance(payload, bytes) else body_of(payload)
        given = headers or {"X-Buildkite-Signature": signed(body, at=self.clock.now())}
        return self.post(body, given)

    def post(self, body: bytes, headers: dict[str, Any]) -> httpx.Response:
        router = buildkite_router(
            self.database, clock=self.clock, secret=self.secret, ended=self._hear
        )
        app = web_application([router], missing_page=missing_page)

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.post("/hooks/buildkite", content=body, headers=headers)

        return asyncio.run(send())

    def _hear(self, build: BuildEnded) -> bool:
        if self.trouble is not None:
            raise self.trouble
        self.ended.append(build)
        return self.waits


@pytest.fixture
def door(database: Database) -> Door:
    return Door(database)


def test_the_end_of_a_build_is_taken_and_told(door: Door) -> None:
    answer = door.send(build_payload(number=12, state="canceled"))

    assert (answer.status_code, answer.json()) == (202, {"result": "accepted", "why": ""})
    assert door.ended == [BuildEnded(pipeline="acme/forkwatch", number=12, state="canceled", at=AT)]


def test_our_signer_and_the_standard_library_agree() -> None:
    seconds = int(AT.timestamp())
    wanted = hmac.new(SECRET.encode(), b"%d.body" % seconds, hashlib.sha256).hexdigest()

    assert signed(b"body", at=AT) == f"timestamp={seconds},signature={wanted}"


def test_a_token_in_place_of_a_signature_is_taken_too(door: Door) -> None:
    good = door.send(build_payload(), **{"X-Buildkite-Token": SECRET})
    bad = door.send(build_payload(number=13), **{"X-Buildkite-Token": SECRET + "x"})

    assert (good.status_code, bad.status_code) == (202, 401)
    assert [build.number for build in door.ended] == [12]


def test_a_wrong_signature_is_not_saved_by_a_right_token(door: Door) -> None:
    """Whoever may choose the headers has not seen the secret in them."""
    wrong = signed(body_of(build_payload()), at=AT, secret="another secret of somebody")
    answer = door.send(
        build_payload(), **{"X-Buildkite-Signature": wrong, "X-Buildkite-Token": SECRET}
    )

    assert answer.status_code == 401
    assert door.ended == []


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "timestamp=,signature=",
        "timestamp=1,signature=" + "0" * 64,
        signed(body_of(build_payload()) + b" ", at=AT),
        signed(body_of(build_payload()), at=AT).upper(),
        signed(body_of(build_payload()), at=AT)[:-1],
        signed(body_of(build_payload()), at=AT) + "0",
        signed(body_of(build_payload()), at=AT).replace("timestamp=1", "timestamp=2"),
        "signature=" + "0" * 64,
        "timestamp=1,signature=" + "é" * 64,
    ],
)
def test_what_buildkite_did_not_sign_changes_nothing(door: Door, forged: str) -> None:
    sent = {"X-Buildkite-Signature": forged.encode("latin-1")} if forged else {}
    answer = door.post(body_of(build_payload()), sent)

    assert answer.status_code == 401
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert door.ended == []
    assert door.send(build_payload()).status_code == 202


@pytest.mark.parametrize("seconds", [-AGE_SECONDS_MAX - 1, AGE_SECONDS_MAX + 1])
def test_a_signature_has_an_age(door: Door, seconds: int) -> None:
    body = body_of(build_payload())
    old = signed(body, at=AT + timedelta(seconds=seconds))

    assert door.post(body, {"X-Buildkite-Signature": old}).status_code == 401
    assert door.ended == []


def test_a_delivery_that_comes_again_is_done_once_however_it_is_signed(door: Door) -> None:
    first = door.send(build_payload())
    door.clock.advance(timedelta(minutes=3))
    again = door.send(build_payload())
    by_token = door.send(build_payload(), **{"X-Buildkite-Token": SECRET})

    assert (first.status_code, again.status_code, by_token.status_code) == (202, 200, 200)
    assert again.json()["result"] == by_token.json()["result"] == "duplicate"
    assert len(door.ended) == 1


def test_what_a_token_brings_is_not_older_than_what_is_remembered(door: Door) -> None:
    assert deliveries.KEPT > AGE_MAX
    door.clock.advance(AGE_MAX + timedelta(seconds=1))
    answer = door.send(build_payload(), **{"X-Buildkite-Token": SECRET})

    assert (answer.status_code, answer.json()["result"]) == (200, "ignored")
    assert door.ended == []


def test_what_could_not_be_done_or_nobody_waited_for_may_come_again(door: Door) -> None:
    door.trouble = CodeHostError("away")
    assert door.send(build_payload()).status_code == 503
    door.trouble, door.waits = None, False
    early = door.send(build_payload())
    door.waits = True

    assert (early.status_code, early.json()["result"]) == (200, "ignored")
    assert door.send(build_payload()).status_code == 202


@pytest.mark.parametrize(
    "payload",
    [
        {"event": "ping", "service": {"id": "1"}},
        job_payload(),
        build_payload(event="build.running", state="running"),
        build_payload(event="build.failing", state="failing"),
        build_payload(state="blocked"),
        build_payload(blocked=True),
        build_payload(number=0),
        build_payload(number=True),
        build_payload(number="12"),
        build_payload(number=2**31),
        build_payload(state=["passed"]),
        build_payload(finished_at=None, created_at="soon"),
        build_payload() | {"pipeline": None},
        build_payload() | {"pipeline": {"slug": "../etc", "url": ""}},
        build_payload(url="") | {"pipeline": {"slug": "forkwatch"}, "organization": None},
        build_payload() | {"event": {"a": 1}},
        {"event": "agent.connected"},
        {"event": "build.finished"},
        {},
        [],
        "text",
        None,
    ],
)
def test_what_nothing_follows_from_is_answered_and_forgotten(door: Door, payload: Any) -> None:
    answer = door.send(payload)

    assert (answer.status_code, answer.json()["result"]) == (200, "ignored")
    assert answer.json()["why"]
    assert door.ended == []


def test_a_build_that_buildkite_skipped_has_ended(door: Door) -> None:
    payload = build_payload(event="build.skipped", state="skipped", finished_at=None)

    assert door.send(payload).status_code == 202
    assert door.ended[0].state == "skipped"


def test_the_organization_is_found_in_either_place(door: Door) -> None:
    named = build_payload(number=1) | {"organization": {"slug": "acme"}}
    named["pipeline"] = {"slug": "forkwatch"}
    door.send(named)
    door.send(build_payload(number=2))

    assert [build.pipeline for build in door.ended] == ["acme/forkwatch"] * 2


def test_without_a_secret_the_door_is_closed_and_says_why(door: Door) -> None:
    door.secret = None
    answer = door.send(build_payload())

    assert answer.status_code == 503
    assert "FORKWATCH_BUILDKITE_WEBHOOK_SECRET" in answer.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe\x00", b"[" * 50_000])
def test_a_signed_body_that_is_not_json_is_refused(door: Door, body: bytes) -> None:
    assert door.send(body).status_code == 422


def test_a_body_has_a_size(door: Door) -> None:
    large = build_payload() | {"more": "x" * BODY_BYTES_MAX}

    assert door.send(large).status_code == 413
    assert door.ended == []
