from __future__ import annotations

import pytest

from runner.sysbench import parse
from tests.runner.two_servers import options_of, play, server_of
from workloads.oltp import SUITES, WORKLOADS
from workloads.per_second import evenness

ROWS = 2000
BY_NAME = {workload.name: workload for workload in WORKLOADS}


@pytest.fixture(scope="module", params=["mariadb", "postgres"])
def server(request):
    with server_of(request.param) as one:
        play(one, "load.lua", f"--table-size={ROWS}", "prepare")
        yield one


def run(server, name: str, *words: str) -> str:
    workload = BY_NAME[name]
    told = [f"--table-size={ROWS}", "--rand-seed=7", "--report-interval=1", "--histogram=on"]
    return play(server, workload.script, *told, *words, *options_of(workload), "run")


@pytest.mark.parametrize("name", SUITES["oltp-3"])
def test_it_runs_with_several_threads_and_its_seconds_are_known(server, name):
    ran = parse(run(server, name, "--threads=4", "--time=2"))
    even = evenness(ran.per_second_ops_s)

    assert even.seconds in {1, 2}
    assert 0 < even.worst_ops_s <= even.p50_ops_s
    # The seconds are those of the slice: their mean is its throughput, but for its ends.
    assert even.mean_ops_s == pytest.approx(ran.throughput_ops_s, rel=0.5)


def test_its_own_threads_win_over_those_of_the_suite(server):
    text = run(server, "oltp-read-write(t16)", "--threads=1", "--events=64", "--time=0")

    assert "Number of threads: 16" in text
    assert parse(text).operations == 64


def test_rows_that_are_deleted_are_inserted_again(server):
    (before,) = server.rows("SELECT COUNT(*), COUNT(DISTINCT id) FROM sbtest.sbtest1")
    text = run(server, "oltp-write-only", "--threads=8", "--events=400", "--time=0")
    (after,) = server.rows("SELECT COUNT(*), COUNT(DISTINCT id) FROM sbtest.sbtest1")

    assert parse(text).operations == 400
    assert before == after == [str(ROWS), str(ROWS)]
