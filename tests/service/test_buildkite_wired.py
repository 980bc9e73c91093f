"""The composed service has the door for Buildkite's webhooks, and takes what is signed for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
from dbos import DBOS

from service.app.compose import compose
from service.core.settings import load_settings
from service.store import migrate
from tests.fakes.buildkite_hooks import SECRET, build_payload, signed
from tests.fakes.hub_signature import body_of
from tests.fakes.memory_fork import AT, MemoryAlerts, MemoryFork, MemoryRunners, StillClock

if TYPE_CHECKING:
    from pathlib import Path


def answers(home: Path, **chosen: Any) -> list[tuple[int, str]]:
    """Return what a composed service says to a signed build, and to a forged one."""
    home.mkdir()
    settings = load_settings(home=home, **chosen)
    migrate.upgrade(settings.data_url)
    fork = MemoryFork("One")
    service = compose(
        settings,
        clock=StillClock(),
        code_host=fork,
        dispatcher=MemoryRunners(fork),
        alerts=MemoryAlerts(),
    )
    body = body_of(build_payload())
    good, forged = signed(body, at=AT), signed(body, at=AT, secret="somebody else's token")

    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=service.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return [
                await client.post(
                    "/hooks/buildkite", content=body, headers={"X-Buildkite-Signature": one}
                )
                for one in (good, forged)
            ]

    try:
        found = asyncio.run(send())
    finally:
        DBOS.destroy(destroy_registry=True)
        service.database.close()
    return [(answer.status_code, answer.json().get("result", "")) for answer in found]


def test_a_build_that_nobody_waits_for_is_ignored_and_a_forged_one_refused(tmp_path: Path) -> None:
    assert answers(tmp_path / "home", buildkite_webhook_secret=SECRET) == [
        (200, "ignored"),
        (401, ""),
    ]


def test_without_a_secret_nothing_is_taken(tmp_path: Path) -> None:
    assert answers(tmp_path / "home") == [(503, ""), (503, "")]
