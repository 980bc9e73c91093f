"""Whoever asks too often is refused for as long as it takes, and nobody else is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Response

from service.web.application import web_application
from service.web.pages import missing_page
from service.web.rate_limits import Limiter, RateLimits, address_of

LIMIT = 5


@dataclass
class Now:
    """Seconds that pass when told to."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Door:
    """An application behind limits, and its callers."""

    per_minute: int = LIMIT
    now: Now = field(default_factory=Now)
    webhook_status: int = 202
    answered: int = 0

    def __post_init__(self) -> None:
        router = APIRouter()

        @router.get("/api/v1/commits")
        @router.get("/api/v1/runs/{run}")
        @router.post("/api/v1/runs")
        def answer(run: str = "") -> str:
            self.answered += 1
            return run

        @router.post("/hooks/github")
        def hook() -> Response:
            self.answered += 1
            return Response(status_code=self.webhook_status)

        self.app = web_application([router], missing_page=missing_page)
        self.app.add_middleware(RateLimits, per_minute=self.per_minute, monotonic=self.now)

    def call(
        self, method: str, path: str, *, of: str = "192.0.2.1", **headers: str
    ) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, client=(of, 5000))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(send())

    def statuses(self, count: int, method: str, path: str, **named: Any) -> list[int]:
        return [self.call(method, path, **named).status_code for _ in range(count)]


@pytest.fixture
def door() -> Door:
    return Door()


def test_a_minutes_worth_may_come_at_once_and_then_one_by_one() -> None:
    now = Now()
    limiter = Limiter(6, monotonic=now)
    for _ in range(6):
        assert limiter.wait_s("ada") == 0
        limiter.spend("ada")

    assert limiter.wait_s("ada") == 10
    assert limiter.wait_s("bob") == 0
    now.seconds += 4
    assert limiter.wait_s("ada") == 6
    now.seconds += 6
    assert limiter.wait_s("ada") == 0
    limiter.spend("ada")
    assert limiter.wait_s("ada") == 10
    now.seconds += 3600
    waits = []
    for _ in range(7):
        waits.append(limiter.wait_s("ada"))
        limiter.spend("ada")
    assert waits == [0] * 6 + [10], "a pause is worth one burst and no more"


def test_the_memory_of_callers_has_an_end() -> None:
    limiter = Limiter(1, callers_max=3, monotonic=Now())
    for number in range(1000):
        limiter.spend(f"caller {number}")

    assert len(limiter._full_at) == 3
    assert limiter.wait_s("caller 999") > 0
    assert limiter.wait_s("caller 0") == 0


def test_too_many_are_refused_with_the_time_to_come_back(door: Door) -> None:
    assert door.statuses(LIMIT, "POST", "/api/v1/runs") == [200] * LIMIT

    answer = door.call("POST", "/api/v1/runs")
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "12"
    assert answer.headers["content-type"] == "application/problem+json"
    assert "come back in 12 s" in answer.json()["detail"]
    assert door.answered == LIMIT

    door.now.seconds += 12
    assert door.statuses(2, "POST", "/api/v1/runs") == [200, 429]


def test_what_is_refused_costs_nothing(door: Door) -> None:
    door.statuses(LIMIT + 50, "POST", "/api/v1/runs")
    door.now.seconds += 12

    assert door.call("POST", "/api/v1/runs").status_code == 200


def test_cheap_reading_is_never_refused_and_costly_reading_is(door: Door) -> None:
    assert set(door.statuses(4 * LIMIT, "GET", "/api/v1/commits")) == {200}
    assert door.statuses(LIMIT + 1, "GET", "/api/v1/runs/run-1") == [200] * LIMIT + [429]
    assert door.call("GET", "/api/v1/commits").status_code == 200


def test_callers_have_limits_of_their_own(door: Door) -> None:
    door.statuses(LIMIT, "POST", "/api/v1/runs", of="192.0.2.1")

    assert door.call("POST", "/api/v1/runs", of="192.0.2.1").status_code == 429
    assert door.call("POST", "/api/v1/runs", of="192.0.2.2").status_code == 200


def test_a_token_is_one_caller_wherever_it_comes_from(door: Door) -> None:
    for number in range(LIMIT):
        answer = door.call(
            "POST", "/api/v1/runs", of=f"192.0.2.{number}", Authorization="Bearer fw_1_secret"
        )
        assert answer.status_code == 200

    late = door.call("POST", "/api/v1/runs", of="192.0.2.99", Authorization="Bearer fw_1_secret")
    other = door.call("POST", "/api/v1/runs", of="192.0.2.99", Authorization="Bearer fw_2_secret")
    assert (late.status_code, other.status_code) == (429, 200)


def test_made_up_tokens_do_not_help_an_address(door: Door) -> None:
    found = [
        door.call("POST", "/api/v1/runs", Authorization=f"Bearer guess-{number}").status_code
        for number in range(LIMIT + 1)
    ]

    assert found == [200] * LIMIT + [429]


def test_signed_webhooks_have_no_limit(door: Door) -> None:
    assert set(door.statuses(10 * LIMIT, "POST", "/hooks/github")) == {202}


def test_forged_webhooks_have_one_and_do_not_spend_what_others_have(door: Door) -> None:
    door.webhook_status = 401
    assert door.statuses(LIMIT + 1, "POST", "/hooks/github") == [401] * LIMIT + [429]

    door.webhook_status = 202
    assert door.call("POST", "/hooks/github").status_code == 429
    assert door.call("POST", "/hooks/github", of="198.51.100.7").status_code == 202
    assert door.call("POST", "/api/v1/runs").status_code == 200
    door.now.seconds += 12
    assert door.call("POST", "/hooks/github").status_code == 202


@pytest.mark.parametrize(
    ("host", "caller"),
    [
        ("192.0.2.1", "host 192.0.2.1"),
        ("::ffff:192.0.2.1", "host 192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "host 2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "host 2001:db8:1:2::/64"),
        ("testclient", "host testclient"),
    ],
)
def test_an_address_is_a_caller_and_so_is_a_network_of_ipv6(host: str, caller: str) -> None:
    assert address_of({"client": (host, 1)}) == caller


def test_a_caller_on_a_socket_of_the_file_system_is_one() -> None:
    assert address_of({"client": None}) == "host local"
    assert address_of({}) == "host local"
