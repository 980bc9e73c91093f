"""Ready means that every part can work; the problem names those that cannot, and no secret."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError

from service.app.readiness import (
    STANDING_MAX,
    FlowWatch,
    branch_fault,
    database_fault,
    disk_fault,
    service_parts,
)
from service.core.settings import load_settings
from service.store import migrate
from service.store.database import Database
from service.store.flow_tables import FlowTables
from service.web.application import web_application
from service.web.health import Part, health_router
from service.web.pages import missing_page
from tests.fakes.memory_fork import StillClock

if TYPE_CHECKING:
    from pathlib import Path


def ask(parts: list[Part], path: str = "/readyz") -> tuple[int, Any]:
    app = web_application([health_router(parts)], missing_page=missing_page)

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path)

    answer = asyncio.run(get())
    return answer.status_code, answer.json()


def fails() -> str | None:
    raise ConnectionError("postgresql://fw:hunter2@db is away")


RIGHT = Part(name="right", fault=lambda: None)
WRONG = Part(name="disk", fault=lambda: "it is full")
AWAY = Part(name="database", fault=fails)


def test_a_service_whose_parts_are_right_is_ready() -> None:
    assert ask([RIGHT]) == (200, {"status": "ready"})
    assert ask([]) == (200, {"status": "ready"})


def test_every_part_that_fails_is_named_in_one_problem() -> None:
    status, problem = ask([WRONG, RIGHT, AWAY])

    assert (status, problem["status"], problem["title"]) == (503, 503, "Service Unavailable")
    assert problem["detail"] == ("disk: it is full; database: does not answer; the log says why")


def test_a_process_that_answers_is_alive_whatever_its_parts_do() -> None:
    assert ask([WRONG, AWAY], "/healthz") == (200, {"status": "ok"})


def test_a_database_of_this_version_is_right(database: Database) -> None:
    assert database_fault(database) is None


def test_a_database_of_another_version_says_what_to_run(empty_url: str) -> None:
    database = Database(empty_url)
    try:
        without = database_fault(database)
        migrate.upgrade(empty_url, "0001")
        old = database_fault(database)
    finally:
        database.close()

    assert without is not None
    assert without.startswith("at revision none, ")
    assert old is not None
    assert "at revision 0001" in old
    assert "forkwatch db upgrade" in old


def test_a_full_disk_names_the_setting(tmp_path: Path) -> None:
    assert disk_fault(tmp_path, free_min=0) is None
    fault = disk_fault(tmp_path, free_min=2**62)
    assert fault is not None
    assert "FORKWATCH_DISK_FREE_MIN" in fault
    assert str(tmp_path) not in fault


def test_a_branch_that_nobody_follows_is_a_fault() -> None:
    assert branch_fault(followed=True) is None
    assert "restart" in (branch_fault(followed=False) or "")


def flows_with(url: str, *rows: tuple[str, str, str | None]) -> FlowTables:
    """Return the table of flows as DBOS has it, with these (name, status, queue)."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE workflow_status (name, status, queue_name)")
        for row in rows:
            connection.exec_driver_sql("INSERT INTO workflow_status VALUES (?, ?, ?)", row)
    engine.dispose()
    return FlowTables(url)


def test_a_queue_that_stands_for_long_is_a_fault_and_one_that_moves_is_none(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'flows.sqlite'}"
    flows = flows_with(
        url,
        ("watch_commit", "ENQUEUED", "measure-small"),
        ("watch_commit", "ENQUEUED", "busy"),
        ("watch_commit", "PENDING", "busy"),
        ("watch_commit", "PENDING", None),
        ("tell_alert", "SUCCESS", None),
    )
    clock = StillClock()
    watch = FlowWatch(flows, clock)

    assert watch.fault() is None
    clock.advance(STANDING_MAX - timedelta(seconds=1))
    assert watch.fault() is None
    clock.advance(timedelta(seconds=1))
    assert "nobody takes from measure-small;" in (watch.fault() or "")

    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE workflow_status SET status = 'PENDING'")
    engine.dispose()
    assert watch.fault() is None
    flows.close()


def test_flows_are_counted_by_name_and_status(tmp_path: Path) -> None:
    flows = flows_with(
        f"sqlite:///{tmp_path / 'flows.sqlite'}",
        *[("watch_commit", "ENQUEUED", "q")] * 3,
        ("watch_commit", "PENDING", "q"),
        ("tell_alert", "ERROR", None),
    )

    assert flows.under_way() == {("watch_commit", "enqueued"): 3, ("watch_commit", "pending"): 1}
    flows.close()


def test_flows_without_a_database_are_an_error(tmp_path: Path) -> None:
    flows = FlowTables(f"sqlite:///{tmp_path / 'none' / 'flows.sqlite'}")

    with pytest.raises(SQLAlchemyError):
        flows.under_way()
    flows.close()


def test_a_service_has_these_parts(database: Database, tmp_path: Path) -> None:
    flows = flows_with(f"sqlite:///{tmp_path / 'flows.sqlite'}")
    parts = service_parts(
        load_settings(home=tmp_path, disk_free_min=0),
        database=database,
        clock=StillClock(),
        flows=flows,
        following=lambda: False,
    )

    assert [part.name for part in parts] == ["database", "flows", "branch", "disk"]
    assert [part.name for part in parts if part.fault() is not None] == ["branch"]
    flows.close()
