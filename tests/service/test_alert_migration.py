"""Alerts from before they had a life: the migration says of them what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from service.store import alerts, migrate
from service.store.database import Database, make_engine
from tests.fakes.run_documents import sha

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

NOW = "2026-11-03 06:30:00+00:00"
A, B = sha("a"), sha("b")


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    engine = make_engine(url)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(query))]
    engine.dispose()
    return found


def put(connection: Connection, table: str, **values: object) -> None:
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({marks})"), values)


def an_old_alert(url: str) -> None:
    """Store an alert as revision 0002 has them."""
    engine = make_engine(url)
    with engine.begin() as connection:
        put(connection, "forks", name="demo", branch="main", first_seen_at=NOW)
        commit = {"fork": "demo", "tree": A, "author": "Ada", "committed_at": NOW, "reason": ""}
        for position, one in enumerate((A, B)):
            put(
                connection,
                "commits",
                **commit,
                sha=one,
                subject=f"Commit {position}",
                position=position,
                state="finished",
                seen_at=NOW,
            )
        job = {"fork": "demo", "sha": B, "kind": "confirm", "host_class": "small"}
        put(
            connection,
            "jobs",
            **job,
            id="job-1",
            run="run-1",
            state="stored",
            order_json="{}",
            attempts=1,
            created_at=NOW,
        )
        put(
            connection,
            "runs",
            **job,
            id="run-1",
            job="job-1",
            branch="main",
            suite="commit",
            config="default",
            variant="rel",
            host_name="bench-1",
            outcome="measured",
            starts=3,
            created_at=NOW,
            finished_at=NOW,
            stored_at=NOW,
            digest="0" * 64,
            document_gzip=b"",
        )
        put(
            connection,
            "alerts",
            id="alert-1",
            fork="demo",
            sha=B,
            baseline_sha=A,
            state="open",
            workloads="[]",
            run="run-1",
            opened_at=NOW,
        )
    engine.dispose()


def test_an_open_alert_becomes_a_confirmed_one_and_open_again_on_the_way_back(
    empty_url: str,
) -> None:
    migrate.upgrade(empty_url, "0002")
    an_old_alert(empty_url)

    migrate.upgrade(empty_url, "0003")
    database = Database(empty_url)
    with database.reading() as session:
        alert = alerts.find(session, "alert-1")
        assert alert is not None
        assert alerts.of_commit(session, "demo", B) == alert
        [commit] = alerts.commits_of(session, "alert-1")
    database.close()
    assert (alert.state, alert.owner, alert.closed_at) == ("confirmed", None, None)
    assert (commit.sha, commit.part, commit.run, commit.at) == (
        B,
        "opened",
        "run-1",
        alert.opened_at,
    )

    migrate.downgrade(empty_url, "0002")
    assert rows(empty_url, "SELECT state FROM alerts") == [("open",)]
