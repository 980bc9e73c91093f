"""Operating put together: health, metrics, limits and pruning around a service's parts."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest
from dbos import DBOS, DBOSConfig
from fastapi import APIRouter, FastAPI

from service.app.operating import Operating
from service.core.settings import Settings, load_settings
from service.flows.retention import SCHEDULE_NAME
from service.flows.tokens import Tokens
from service.store import migrate, runs
from service.store.database import Database
from service.web.application import web_application
from service.web.credentials import Guard
from service.web.pages import missing_page
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.old_runs import YEAR, a_run_with_seconds
from tests.fakes.stored_fork import SHAS, a_fork, git_commit, measured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path


@dataclass
class Followed:
    """A branch that is followed, or not."""

    alive: bool = True
    looked_at: datetime | None = AT


@dataclass
class Running:
    """The operating parts of a service in a home of its own, DBOS not launched."""

    settings: Settings
    database: Database
    operated: Operating
    branch: Followed

    def app(self) -> FastAPI:
        guard = Guard(tokens=Tokens(database=self.database, clock=StillClock()), public_read=True)
        posted = APIRouter()

        @posted.post("/orders")
        def order() -> str:
            return "done"

        routers = [*self.operated.routers(self.branch, guard=guard), posted]
        return self.operated.around(web_application(routers, missing_page=missing_page))


@contextmanager
def running(home: Path, **chosen: object) -> Iterator[Running]:
    settings = load_settings(home=home, disk_free_min=0, **chosen)
    migrate.upgrade(settings.data_url)
    database = Database(settings.data_url)
    DBOS(
        config=DBOSConfig(
            name="forkwatch",
            system_database_url=settings.flows_url,
            executor_id="service",
            application_version="1",
            console_log_level="WARNING",
        )
    )
    try:
        operated = Operating(settings, database=database, clock=StillClock(AT + YEAR))
        yield Running(settings, database, operated, Followed())
    finally:
        DBOS.destroy(destroy_registry=True)
        database.close()


def ask(app: FastAPI, *calls: tuple[str, str]) -> list[httpx.Response]:
    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return [await client.request(method, path) for method, path in calls]

    return asyncio.run(send())


def test_a_service_is_ready_once_its_flows_run_and_its_branch_is_followed(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        app = service.app()
        [before] = ask(app, ("GET", "/readyz"))
        DBOS.launch()
        [ready] = ask(app, ("GET", "/readyz"))
        service.branch.alive = False
        [after, alive] = ask(app, ("GET", "/readyz"), ("GET", "/healthz"))

    assert before.json()["detail"] == "flows: does not answer; the log says why"
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
    assert after.json()["detail"].startswith("branch: not followed any more")
    assert alive.status_code == 200


def test_metrics_tell_of_flows_requests_and_messages(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        app = service.app()
        DBOS.launch()
        service.operated.told("github", ok=False)
        [_, answer] = ask(app, ("POST", "/orders"), ("GET", "/metrics"))

    text = answer.text
    assert 'forkwatch_request_seconds_count{method="POST",route="/orders",status="200"} 1.0' in text
    assert 'forkwatch_messages_total{channel="github",outcome="failed"} 1.0' in text
    assert "forkwatch_store_up 1.0" in text
    assert "forkwatch_poll_age_seconds 3.1536e+07" in text
    assert "# TYPE forkwatch_flows gauge" in text


def test_whoever_asks_too_often_is_refused_and_counted(tmp_path: Path) -> None:
    with running(tmp_path, requests_per_minute=2) as service:
        answers = ask(service.app(), *[("POST", "/orders")] * 3, ("GET", "/metrics"))

    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    text = service.operated.metrics.text().decode()
    assert 'count{method="POST",route="none",status="429"} 1.0' in text
    assert 'count{method="GET",route="none",status="429"} 1.0' in text


def test_a_limit_of_none_is_no_limit(tmp_path: Path) -> None:
    with running(tmp_path, requests_per_minute=0) as service:
        answers = ask(service.app(), *[("POST", "/orders")] * 700)

    assert {answer.status_code for answer in answers} == {200}


@pytest.mark.parametrize("days", [0, 30])
def test_pruning_is_as_the_settings_say(tmp_path: Path, days: int) -> None:
    with running(tmp_path, keep_seconds_days=days) as service:
        with service.database.writing() as session:
            a_fork(session, git_commit(SHAS[0]))
            a_run_with_seconds(session, measured("run-1", SHAS[0], scan=2.0, point=60000.0))
        DBOS.launch()
        service.operated.start()
        DBOS.trigger_schedule(SCHEDULE_NAME).get_result()
        service.operated.retention.catch_up().get_result()
        with service.database.reading() as session:
            document = runs.document(session, "run-1")

    slices = [piece for start in document.starts for piece in start.slices]
    assert any(piece.per_second_ops_s for piece in slices) == (days == 0)
