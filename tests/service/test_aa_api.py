"""The API about A/A checks: asked for by tokens that may, read by whoever may, refused with why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from service.core.tokens import Scope
from service.flows.tokens import Tokens
from service.web.aa_api import aa_router
from service.web.application import web_application
from service.web.credentials import Guard
from service.web.pages import missing_page
from tests.fakes.memory_fork import MemoryFork
from tests.fakes.walked_steps import WalkedSteps

if TYPE_CHECKING:
    from service.store.database import Database

WHERE = "/api/v1/host-classes/small/aa-checks"


class Caller:
    """Somebody who talks to the API of a service that has measured one commit."""

    def __init__(self, database: Database, *, public_read: bool = True) -> None:
        self.walked = WalkedSteps(database, MemoryFork("Import"))
        self.walked.walk()
        self.tokens = Tokens(database=database, clock=self.walked.clock)
        guard = Guard(tokens=self.tokens, public_read=public_read)
        router = aa_router(self.walked.checks, guard=guard)
        self.app = web_application([router], missing_page=missing_page)

    def token(self, name: str, *scopes: Scope) -> str:
        return self.tokens.create(name, scopes)[1]

    def call(self, method: str, path: str = WHERE, *, token: str | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(send())


@pytest.fixture
def caller(database: Database) -> Caller:
    return Caller(database)


def test_a_check_is_asked_for_and_seen(caller: Caller) -> None:
    ada = caller.token("ada", Scope.OPERATE)
    asked = caller.call("POST", token=ada)
    told = asked.json()

    assert asked.status_code == 201, asked.text
    assert (told["state"], told["asked_by"], told["via"]) == ("waiting", "token:ada", "api")
    assert told["sha"] == caller.walked.fork.commits[0].sha
    again = caller.call("POST", token=ada)
    assert again.status_code == 409
    assert "is under way" in again.json()["detail"]
    caller.walked.walk_aside(caller.walked.check)
    [listed] = caller.call("GET").json()
    assert (listed["id"], listed["state"], listed["host_name"]) == (told["id"], "done", "bench-1")
    assert [one["decision"] for one in listed["results"]] == ["no-change", "no-change"]
    assert caller.call("POST", token=ada).status_code == 201


def test_only_a_token_for_operating_spends_machine_time(caller: Caller) -> None:
    other = caller.token("bob", Scope.READ, Scope.SUBMIT, Scope.ACT)

    assert caller.call("POST").status_code == 401
    assert caller.call("POST", token=other).status_code == 403
    assert caller.call("GET").json() == []


def test_reading_may_need_a_token(database: Database) -> None:
    caller = Caller(database, public_read=False)

    assert caller.call("GET").status_code == 401
    assert caller.call("GET", token=caller.token("reader", Scope.READ)).status_code == 200


def test_another_host_class_is_not_found(caller: Caller) -> None:
    ada = caller.token("ada", Scope.OPERATE)
    refused = caller.call("POST", WHERE.replace("small", "large"), token=ada)

    assert refused.status_code == 404
    assert "measures on the host class 'small'" in refused.json()["detail"]
