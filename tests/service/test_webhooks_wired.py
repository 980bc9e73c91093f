"""The composed service has the door for webhooks, and what is behind it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
from dbos import DBOS

from service.app.compose import compose
from service.core.settings import load_settings
from service.store import migrate
from tests.fakes.hub_signature import SECRET, body_of, signature_of
from tests.fakes.memory_fork import MemoryAlerts, StillClock
from tests.fakes.memory_pulls import MemoryPulls, PatientRunners
from tests.fakes.webhook_payloads import REPOSITORY, push_payload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.app.compose import Service


@contextmanager
def composed(home: Path, **chosen: Any) -> Iterator[Service]:
    home.mkdir(exist_ok=True)
    settings = load_settings(home=home, **chosen)
    migrate.upgrade(settings.data_url)
    fork = MemoryPulls("One")
    service = compose(
        settings,
        clock=StillClock(),
        code_host=fork,
        dispatcher=PatientRunners(fork),
        alerts=MemoryAlerts(),
    )
    try:
        yield service
    finally:
        DBOS.destroy(destroy_registry=True)
        service.database.close()


def push(service: Service, *, secret: str) -> int:
    """Tell the service about a push; return the status of its answer."""
    body = body_of(push_payload())
    headers = {
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": "1-2",
        "X-Hub-Signature-256": signature_of(body, secret),
    }

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=service.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/hooks/github", content=body, headers=headers)

    return asyncio.run(send()).status_code


def test_a_signed_push_wakes_the_watcher(tmp_path: Path) -> None:
    with composed(
        tmp_path,
        github_repository=REPOSITORY,
        github_token="t",
        github_webhook_secret=SECRET,
    ) as service:
        assert service.pulls is not None
        assert push(service, secret="somebody else's") == 401
        assert not service.watcher._woken.is_set()
        assert push(service, secret=SECRET) == 202
        assert service.watcher._woken.is_set()


def test_without_a_repository_or_a_secret_nothing_is_taken(tmp_path: Path) -> None:
    with composed(tmp_path / "one", github_webhook_secret=SECRET) as service:
        assert service.pulls is None
        assert push(service, secret=SECRET) == 503
    with composed(tmp_path / "two", github_repository=REPOSITORY, github_token="t") as service:
        assert push(service, secret=SECRET) == 503
