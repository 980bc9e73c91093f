"""What is kept of hosts through revision 0011 and back: of runs all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from service.store import migrate
from service.store.database import make_engine
from tests.fakes.run_documents import sha

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

NOW = "2026-11-03 06:30:00+00:00"
A = sha("a")
NOISE = {
    "host_class": "small",
    "host_name": "bench-1",
    "fingerprint": "f",
    "at": NOW,
    "workload": "scan",
    "starts": 3,
    "slices": 6,
    "disturbed": 0,
    "steal_percent_max": 0.5,
    "starts_df": 0,
    "slices_df": 0,
    "pairs_df": 0,
}


def put(connection: Connection, table: str, **values: object) -> None:
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({marks})"), values)


def note_noise(url: str, run: str) -> None:
    engine = make_engine(url)
    with engine.begin() as connection:
        put(connection, "host_noise", run=run, **NOISE)
    engine.dispose()


def noisy_runs(url: str) -> list[str]:
    engine = make_engine(url)
    with engine.connect() as connection:
        found = [row[0] for row in connection.execute(text("SELECT run FROM host_noise"))]
    engine.dispose()
    return sorted(found)


def a_stored_run(url: str) -> None:
    """Store a run as revision 0010 has it."""
    job = {"fork": "demo", "sha": A, "kind": "single", "host_class": "small"}
    engine = make_engine(url)
    with engine.begin() as connection:
        put(connection, "forks", name="demo", branch="main", first_seen_at=NOW)
        put(
            connection,
            "commits",
            fork="demo",
            sha=A,
            tree=A,
            author="Ada",
            subject="Import",
            committed_at=NOW,
            position=0,
            state="finished",
            reason="",
            seen_at=NOW,
        )
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
    engine.dispose()


def test_the_noise_of_hosts_stays_and_that_of_checks_goes_with_them(empty_url: str) -> None:
    migrate.upgrade(empty_url, "0010")
    a_stored_run(empty_url)
    note_noise(empty_url, "run-1")

    migrate.upgrade(empty_url, "0011")
    assert noisy_runs(empty_url) == ["run-1"]
    # A check's: there is no such row among the runs.
    note_noise(empty_url, "run-aa-1")
    assert noisy_runs(empty_url) == ["run-1", "run-aa-1"]

    migrate.downgrade(empty_url, "0010")
    assert noisy_runs(empty_url) == ["run-1"]
    migrate.upgrade(empty_url)
    migrate.check(empty_url)
