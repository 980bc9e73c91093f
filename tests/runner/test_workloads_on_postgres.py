from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.postgres_server import INSTALLED, PostgresServer
from tests.runner.sql_servers import attempt, load, postgres_client, run
from workloads.catalog import SUITES, find_workload

#: What the longest range asks for; lists of a thousand name some ids twice, which is fine here.
ROWS = 20_000
EVENTS = 20
ORDER = tuple(
    sorted(SUITES["full-32"], key=lambda name: (find_workload(name).writes, name == "delete"))
)


@pytest.fixture(scope="module")
def server():
    if not list(Path(INSTALLED).glob("*/bin/initdb")):
        pytest.skip("apt-get install postgresql")
    with PostgresServer() as one:
        yield one


@pytest.fixture(scope="module")
def loaded(server) -> list[str]:
    client = postgres_client(server, "postgres")
    load(client, rows=ROWS)
    return client


@pytest.mark.parametrize("name", ORDER)
def test_it_runs(loaded, name):
    workload = find_workload(name)

    ran = run(loaded, workload, rows=ROWS, words=(f"--events={EVENTS}", "--time=0"))

    assert ran.events == EVENTS
    assert ran.queries == EVENTS * len(workload.statements)
    assert ran.ignored == 0


def test_a_statement_that_fails_stops_the_workload_with_what_the_server_said(loaded):
    client = [*loaded, "--tables=2"]

    for name in ORDER:
        done = attempt(client, find_workload(name), rows=ROWS, words=("--time=5",))
        assert not done.ok, name
        assert 'relation "sbtest.sbtest2" does not exist' in done.stdout + done.stderr, name


def test_without_a_primary_key_the_index_takes_its_place(server):
    database = server.new_database().partition("?")[0].rpartition("/")[2]
    client = postgres_client(server, database)
    load(client, rows=200, more=("--primary-key=off",))

    for name in ("point-query", "read-write(10)", "insert"):
        words = ("--events=50", "--time=0")
        assert run(client, find_workload(name), rows=200, words=words).events == 50
