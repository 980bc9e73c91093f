"""The API about backfills: asked for by tokens that may, read by whoever may, refused with why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from service.core.tokens import Scope
from service.flows.tokens import Tokens
from service.web.application import web_application
from service.web.backfill_api import BODY_BYTES_MAX, backfills_router
from service.web.credentials import Guard
from service.web.pages import missing_page
from tests.fakes.memory_fork import MemoryFork
from tests.fakes.walked_steps import WalkedSteps

if TYPE_CHECKING:
    from service.store.database import Database

WHERE = "/api/v1/forks/demo/backfill"


class Caller:
    """Somebody who talks to the API of a service whose branch has a past."""

    def __init__(self, database: Database, *, public_read: bool = True) -> None:
        fork = MemoryFork(*(f"Past {number}" for number in range(5)), "One")
        self.walked = WalkedSteps(database, fork, backfill_commits=1)
        self.walked.watcher.look()
        self.tokens = Tokens(database=database, clock=self.walked.clock)
        guard = Guard(tokens=self.tokens, public_read=public_read)
        router = backfills_router(self.walked.asks, guard=guard)
        self.app = web_application([router], missing_page=missing_page)
        self.operating = self.token("ada", Scope.OPERATE)

    def token(self, name: str, *scopes: Scope) -> str:
        return self.tokens.create(name, scopes)[1]

    def call(
        self, method: str, path: str = WHERE, *, token: str | None = None, **named: Any
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers, **named)

        return asyncio.run(send())

    def ask(self, body: object, *, token: str | None = None) -> httpx.Response:
        return self.call("POST", token=token or self.operating, json=body)


@pytest.fixture
def caller(database: Database) -> Caller:
    return Caller(database)


def test_a_backfill_is_asked_for_seen_and_ended(caller: Caller) -> None:
    asked = caller.ask({"commits": 3, "order": "oldest-first"})
    told = asked.json()

    assert asked.status_code == 201, asked.text
    assert (told["state"], told["asked_by"], told["via"]) == ("under-way", "token:ada", "api")
    assert told["commits"] == [commit.sha for commit in caller.walked.fork.commits[2:5]]
    caller.walked.walk_aside(caller.walked.backfill, most=1)
    [listed] = caller.call("GET").json()
    assert (listed["backfill"]["id"], listed["done"]) == (told["id"], 1)
    ended = caller.call("POST", f"{WHERE}/cancel", token=caller.operating)
    assert (ended.status_code, ended.json()["backfill"]["state"]) == (200, "cancelled")


def test_only_a_token_for_operating_spends_machine_time(caller: Caller) -> None:
    other = caller.token("bob", Scope.READ, Scope.SUBMIT, Scope.ACT)

    assert caller.call("POST", json={"commits": 1}).status_code == 401
    assert caller.ask({"commits": 1}, token=other).status_code == 403
    assert caller.call("POST", f"{WHERE}/cancel", token=other).status_code == 403
    assert caller.call("GET").json() == []


def test_reading_may_need_a_token(database: Database) -> None:
    caller = Caller(database, public_read=False)
    reader = caller.token("reader", Scope.READ)

    assert caller.call("GET").status_code == 401
    assert caller.call("GET", token=reader).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"commits": 0},
        {"commits": 501},
        {"commits": "many"},
        {"commits": 1, "order": "newest"},
        {"commits": 1, "more": 1},
        [],
    ],
)
def test_a_body_that_is_no_order_is_refused(caller: Caller, body: object) -> None:
    assert caller.ask(body).status_code == 422


def test_what_is_not_possible_says_why(caller: Caller) -> None:
    assert caller.call("POST", f"{WHERE}/cancel", token=caller.operating).status_code == 404
    assert caller.ask({"commits": 2}).status_code == 201
    again = caller.ask({"commits": 2})
    assert again.status_code == 409
    assert "under way" in again.json()["detail"]
    elsewhere = caller.call(
        "POST", WHERE.replace("demo", "other"), token=caller.operating, json={"commits": 1}
    )
    assert elsewhere.status_code == 404


def test_a_body_has_a_size(caller: Caller) -> None:
    large = {"commits": 1, "order": "x" * BODY_BYTES_MAX}

    assert caller.ask(large).status_code == 413
