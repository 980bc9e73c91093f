"""News of a run's end at the door for webhooks: heard once, and only where somebody waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import delete

from service.core.model import JobStatus
from service.store.delivery_tables import DeliveryRow
from service.web.application import web_application
from service.web.pages import missing_page
from service.web.webhooks import NewsDesk, webhooks_router
from tests.fakes.dispatch_scene import FLOW, JOB, Scene, a_scene, order
from tests.fakes.hub_signature import SECRET, body_of, signature_of
from tests.fakes.webhook_payloads import REPOSITORY, when, written

if TYPE_CHECKING:
    from service.store.database import Database


def nothing(_news: Any) -> bool:
    """Do nothing."""
    return False


@pytest.fixture
def scene(kept_database: Database) -> Scene:
    with kept_database.writing() as session:
        session.execute(delete(DeliveryRow))
    scene = a_scene(kept_database)
    scene.anew().start(order())
    return scene


def delivered(scene: Scene, guid: str, *, run: int = 100, conclusion: str = "cancelled") -> Any:
    """Deliver the news that a run is over; return the answer."""
    desk = NewsDesk(
        pushed=nothing,
        pull_request_changed=nothing,
        commented=nothing,
        run_ended=scene.anew().heard,
    )
    router = webhooks_router(
        scene.database, clock=scene.clock, secret=SECRET, repository=REPOSITORY, desk=desk
    )
    app = web_application([router], missing_page=missing_page)
    body = body_of(
        {
            "action": "completed",
            "workflow_run": {
                "id": run,
                "conclusion": conclusion,
                "updated_at": written(when(0)),
                "name": "forkwatch job",
            },
            "repository": {"full_name": REPOSITORY},
        }
    )
    headers = {
        "X-GitHub-Event": "workflow_run",
        "X-GitHub-Delivery": guid,
        "X-Hub-Signature-256": signature_of(body),
    }

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/hooks/github", content=body, headers=headers)

    answer = asyncio.run(send())
    return answer.json() | {"status": answer.status_code}


def test_the_end_of_a_run_loses_its_job_at_once(scene: Scene) -> None:
    assert delivered(scene, "one") == {"result": "accepted", "why": "", "status": 202}
    assert scene.anew().status(JOB) is JobStatus.LOST
    assert scene.woken == [FLOW]
    assert delivered(scene, "one")["result"] == "duplicate"
    assert delivered(scene, "two")["result"] == "duplicate"


def test_the_end_of_anybody_elses_run_is_nothing_to_us(scene: Scene) -> None:
    answer = delivered(scene, "one", run=7)

    assert answer == {"result": "ignored", "why": "nobody waits for that run", "status": 200}
    assert scene.anew().status(JOB) is JobStatus.ALIVE
    assert scene.woken == []
