from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from runner.errors import ClientError
from runner.sysbench import parse_step
from tests.runner.processes import until
from tests.runner.sql_servers import ROCKSDB, Mariadb, sysbench
from tests.runner.two_servers import forget, options_of, play, server_of
from workloads.insert_benchmark import LOADER, SUITES, WORKLOADS, threads_of
from workloads.insert_benchmark_output import read_step

ROWS = 4000
STEPS = {workload.name: workload for workload in WORKLOADS}
ENGINES = ("mariadb", "myrocks", "postgres")


@pytest.fixture(scope="module", params=ENGINES)
def server(request):
    if request.param == "myrocks" and not ROCKSDB.exists():
        pytest.skip("apt-get install mariadb-plugin-rocksdb")
    with server_of(request.param.replace("myrocks", "mariadb")) as one:
        # What `empty` makes tables in.
        one.storage_engine = "rocksdb" if request.param == "myrocks" else ""
        yield one


@pytest.fixture
def empty(server):
    forget(server)
    words = [f"--storage-engine={server.storage_engine}"] if server.storage_engine else []
    play(server, LOADER, "--tables=2", *words, "prepare")
    return server


def words_of(workload, *words: str, clients: int = 1) -> list[str]:
    threads = threads_of(workload, clients)
    told = [f"--tables={clients}", f"--table-size={ROWS}", f"--threads={threads}", "--rand-seed=7"]
    return [*told, *options_of(workload), *words, "run"]


def attempt(server, workload, *words: str):
    return sysbench(server.client(), workload.script, *words_of(workload, *words))


def step(server, workload, *words: str, clients: int = 1):
    text = play(server, workload.script, *words_of(workload, *words, clients=clients))
    return read_step(text, workload, clients=clients)


def table(server, number: int = 1) -> tuple[int, ...]:
    """Return rows, lowest and highest id."""
    columns = "COUNT(*), MIN(transactionid), MAX(transactionid)"
    (row,) = server.rows(f"SELECT {columns} FROM sbtest.pi{number}")
    return tuple(0 if cell == "NULL" else int(cell) for cell in row)


def indexes(server) -> int:
    if isinstance(server, Mariadb):
        text = "SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics"
        return int(server.rows(f"{text} WHERE table_name = 'pi1'")[0][0])
    text = "SELECT COUNT(*) FROM pg_indexes WHERE tablename = 'pi1'"
    return int(server.rows(text)[0][0])


def test_the_chain_from_an_empty_table_to_the_last_query(empty):
    assert table(empty) == (0, 0, 0)

    # The work is fixed, and a slice's seconds are not asked.
    loaded = step(empty, STEPS["l.i0"], "--time=1")
    assert (loaded.operations, loaded.measured.statements) == (ROWS, ROWS / 100)
    assert table(empty) == (ROWS, 1, ROWS)

    indexed = step(empty, STEPS["l.x"])
    assert indexed.operations == ROWS + 100
    assert indexes(empty) == 4

    for name, batch in (("l.i1", 50), ("l.i2", 5)):
        before = table(empty)
        churned = step(empty, STEPS[name], "--time=1")
        rows = int(ROWS * STEPS[name].options["share"])
        assert churned.operations == churned.role("delete").rows == rows
        assert churned.measured.statements == rows / batch
        # As many as before, the oldest gone.
        assert table(empty) == (before[0], before[1] + rows, before[2] + rows)

    for name in SUITES["insert-benchmark-10"][4:]:
        before = table(empty)
        asked = step(empty, STEPS[name], "--time=1")
        inserted, deleted = asked.role("insert").rows, asked.role("delete").rows
        assert asked.is_comparable, name
        assert inserted <= STEPS[name].options["rows-per-second"]
        assert len(asked.measured.per_second) == 1
        assert asked.operations > 20
        assert 0 <= inserted - deleted <= 8 * 50
        assert table(empty) == (
            before[0] + inserted - deleted,
            before[1] + deleted,
            before[2] + inserted,
        )


def test_two_clients_have_a_table_each(empty):
    step(empty, STEPS["l.i0"], clients=2)
    churned = step(empty, STEPS["l.i1"], clients=2)

    assert churned.operations == 2 * ROWS * 0.8
    assert table(empty, 1)[0] == table(empty, 2)[0] == ROWS


def test_a_rate_that_cannot_be_held_is_an_sla_failure(empty):
    step(empty, STEPS["l.i0"])
    options = {**STEPS["qp100"].options, "rows-per-second": 10**8}
    asked = step(empty, replace(STEPS["qp100"], options=options), "--time=2")

    assert asked.role("insert").rows > 0
    assert asked.held_share < 0.95
    assert not asked.is_comparable


def test_a_step_without_its_table_stops_with_what_the_server_said(server):
    forget(server)
    done = attempt(server, STEPS["l.i1"])

    assert not done.ok
    assert "pi1" in done.stdout + done.stderr


def test_a_thread_that_fails_ends_the_others(empty):
    step(empty, STEPS["l.i0"])
    loaded = table(empty)

    def take_it() -> None:
        # Before the step has begun, there would be nobody to end.
        until(lambda: table(empty) > loaded)
        empty.rows("DROP TABLE sbtest.pi1")

    taken = threading.Thread(target=take_it)
    taken.start()
    began = time.monotonic()
    # Far more than a second's work.
    done = attempt(empty, STEPS["l.i1"], "--share=5000")
    taken.join()

    assert not done.ok
    assert "pi1" in done.stdout + done.stderr
    # The client is killed after five minutes; ended, it is gone at once.
    assert time.monotonic() - began < 120
    with pytest.raises(ClientError, match="were asked for"):
        parse_step(done.stdout, STEPS["l.i1"], clients=1)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--threads=3",), "no multiple"),
        (("--threads=4",), "a table of its own"),
        (("--connections=1",), "does not fit"),
        (("--step=churning",), "does not fit"),
    ],
)
def test_threads_that_do_not_fit_are_refused(empty, words, why):
    done = attempt(empty, STEPS["l.i1"], *words)

    assert not done.ok
    assert why in done.stdout + done.stderr


def test_a_slice_has_what_the_step_is_about(empty):
    step(empty, STEPS["l.i0"])
    text = play(empty, STEPS["qp500"].script, *words_of(STEPS["qp500"], "--time=2"))

    ran = parse_step(text, STEPS["qp500"], clients=1)

    assert ran.operations == read_step(text, STEPS["qp500"], clients=1).measured.rows
    assert ran.throughput_ops_s == pytest.approx(ran.operations / 2, rel=0.2)
    assert 0 < ran.latency_ms.p50 <= ran.latency_ms.p99 <= ran.latency_ms.maximum
    assert 0.5 < ran.extra["held_share"] <= 1.01
    assert ran.extra["insert_rows_s"] == pytest.approx(500 * ran.extra["held_share"])
