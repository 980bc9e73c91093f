"""What Slack sends: signed, fresh and once, or it changes nothing."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import httpx
import pytest

from service.channels.slack.clicks import read_click
from service.core.errors import BadDocumentError
from service.core.slack import SlackClick
from service.web.application import web_application
from service.web.pages import missing_page
from service.web.slack_interactions import BODY_BYTES_MAX, slack_router
from tests.fakes.memory_fork import StillClock
from tests.fakes.slack_api import CHANNEL
from tests.fakes.slack_requests import SECRET, a_press, signed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.store.database import Database


class Taken:
    """The service as Slack sees it, and the clicks that it took."""

    def __init__(self, database: Database, *, secret: str | None = SECRET) -> None:
        self.clicks: list[SlackClick] = []
        self.clock = StillClock()
        router = slack_router(database, clock=self.clock, secret=secret, begin=self.clicks.append)
        self._app = web_application([router], missing_page=missing_page)

    def answer(self, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """Send a body with these headers; return the answer."""
        raw = {name: value.encode() for name, value in headers.items()}

        async def post() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.post("/hooks/slack", content=body, headers=raw)

        return asyncio.run(post())

    def post(self, body: bytes, **changes: str) -> int:
        """Send a body as Slack does; return the status."""
        return self.answer(body, {**signed(body, at=self.clock.now()), **changes}).status_code


@pytest.fixture
def taken(database: Database) -> Taken:
    return Taken(database)


def test_a_press_is_taken_and_answered_with_nothing(taken: Taken) -> None:
    body = a_press()
    answer = taken.answer(body, signed(body, at=taken.clock.now()))

    assert (answer.status_code, answer.content) == (200, b"")
    (click,) = taken.clicks
    assert (click.user, click.channel, click.action, click.alert) == (
        "U0ADA",
        CHANNEL,
        "acknowledge",
        "alert-1",
    )


def test_a_forged_request_changes_nothing(taken: Taken) -> None:
    body = a_press()
    genuine = signed(body, at=taken.clock.now())

    assert taken.post(body, **{"x-slack-signature": "v0=" + "0" * 64}) == 401
    assert taken.post(body, **{"x-slack-signature": ""}) == 401
    assert taken.post(a_press("accept"), **genuine) == 401
    assert taken.post(body, **signed(body, at=taken.clock.now(), secret="another-secret")) == 401
    assert taken.answer(body, {}).status_code == 401
    assert taken.clicks == []
    # And it does not use up the genuine one.
    assert taken.post(body) == 200


@pytest.mark.parametrize("timestamp", ["", "now", "-5", "1" * 11, "١٢٣"])
def test_a_time_that_is_none_is_refused(taken: Taken, timestamp: str) -> None:
    body = a_press()
    headers = {**signed(body, at=taken.clock.now())}
    headers["x-slack-request-timestamp"] = timestamp

    answer = taken.answer(body, headers)

    assert answer.status_code == 401


@pytest.mark.parametrize(("seconds", "status"), [(-301, 401), (-299, 200), (299, 200), (301, 401)])
def test_a_request_is_good_for_five_minutes(taken: Taken, seconds: int, status: int) -> None:
    body = a_press()
    then = taken.clock.now() + timedelta(seconds=seconds)

    assert taken.post(body, **signed(body, at=then)) == status


def test_a_request_counts_once(taken: Taken) -> None:
    body = a_press()
    first = signed(body, at=taken.clock.now())

    assert taken.post(body, **first) == 200
    assert taken.post(body, **first) == 409
    taken.clock.advance(timedelta(seconds=200))
    assert taken.post(body, **first) == 409
    # Once it is forgotten, it is too old.
    taken.clock.advance(timedelta(days=1))
    taken.post(a_press("mute"))
    assert taken.post(body, **first) == 401
    assert len(taken.clicks) == 2


def test_the_same_press_in_two_requests_has_one_key(taken: Taken) -> None:
    taken.post(a_press())
    taken.clock.advance(timedelta(seconds=5))
    taken.post(a_press())
    taken.post(a_press(moment="1800000200.000001"))

    keys = [click.key for click in taken.clicks]
    assert keys[0] == keys[1] != keys[2]


def test_a_large_body_is_refused_before_it_is_read(taken: Taken) -> None:
    assert taken.post(b"payload=" + b"x" * BODY_BYTES_MAX) == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"ssl_check=1&token=x",
        urlencode({"payload": json.dumps({"type": "view_submission"})}).encode(),
        urlencode({"payload": json.dumps({"type": "block_actions"})}).encode(),
        a_press(actions=[]),
        a_press(actions=["x"]),
        a_press("self-destruct"),
        a_press(actions=[{"action_id": "acknowledge", "value": "alert-1"}]),
    ],
)
def test_what_is_not_for_us_is_no_click(body: bytes) -> None:
    assert read_click(body) is None


@pytest.mark.parametrize(
    "body",
    [
        b"payload=%FF",
        b"payload={",
        b"payload=[1]",
        b"payload=" + b"[" * 50_000,
        b"&".join([b"a=b"] * 30),
        a_press(user="ada"),
        a_press(user={"id": 7}),
        a_press(channel={"id": "alerts"}),
        a_press(channel=None),
        a_press(container={"message_ts": "yesterday"}),
        a_press(alert="../../etc"),
        a_press(alert="a" * 201),
        a_press(moment="now"),
    ],
)
def test_what_slack_would_never_send_is_an_error(body: bytes) -> None:
    with pytest.raises(BadDocumentError):
        read_click(body)


def test_neither_of_them_begins_anything(taken: Taken) -> None:
    assert taken.post(b"ssl_check=1&token=x") == 200
    assert taken.post(a_press("self-destruct")) == 200
    assert taken.post(a_press(alert="../../etc")) == 422
    assert taken.clicks == []


def test_without_a_secret_nothing_is_taken(database: Database) -> None:
    service = Taken(database, secret=None)

    answer = service.answer(a_press(), {})

    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert "FORKWATCH_SLACK_SIGNING_SECRET" in answer.json()["detail"]
