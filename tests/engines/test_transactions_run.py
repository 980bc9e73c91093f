"""TPC-C, the Insert Benchmark and exact counters on every engine that `make engines` fetched."""

from __future__ import annotations

import pytest

from runner import exact
from runner.sandbox import INSIDE, Bind, Sandbox, hand_over
from runner.servers.engines import engine_of
from runner.sysbench import option_words, parse
from tests.engines.test_engines_run import TREES
from tests.runner.installed_trees import described
from workloads import insert_benchmark, tpcc
from workloads.catalog import SCRIPTS, find_workload
from workloads.insert_benchmark_output import read_step
from workloads.workload import MYSQL_FAMILY

pytestmark = pytest.mark.engines

ROWS = 2000


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.name)
def test_transactions_run_and_counters_repeat(tree, tmp_path):
    spec = described(tree)
    engine, data = engine_of(spec.engine), tmp_path / "data"
    data.mkdir()
    hand_over(data)
    engine.initialise(spec, data)
    with engine.running(spec, data, cpus=()) as server:
        mix(server)
        chain(server)
        first, again = exact.measure(server, None), exact.measure(server, None)

    assert exact.differences(first, again) == ()
    assert bool(first) is (spec.engine in MYSQL_FAMILY)
    for case in first:
        assert case.plan, case
        print(f"{server.version}: {case.name}: {dict(used(case.counters))}")


def used(counters):
    return {name: count for name, count in counters.items() if count}


def mix(server) -> None:
    """Load a small TPC-C, run it, and find it consistent before and after."""

    def rows(statement: str) -> list[tuple[str, ...]]:
        return server.engine.rows(server, statement)

    play(server, tpcc.LOADER, "--items=300", "--customers=30", "prepare")
    assert tpcc.faults(rows) == ()
    words = ("--threads=4", "--events=300", "--time=0", "--histogram=on", "run")
    assert parse(play(server, find_workload("tpcc").script, *words)).operations == 300
    assert tpcc.faults(rows) == ()


def chain(server) -> None:
    """Run the steps of the Insert Benchmark, the queries at the lowest and the highest rate."""
    play(server, insert_benchmark.LOADER, "prepare")
    for name in ("l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp1000"):
        workload = find_workload(name)
        threads = insert_benchmark.threads_of(workload, 1)
        words = [f"--table-size={ROWS}", f"--threads={threads}", "--time=1"]
        text = play(server, workload.script, *words, *option_words(workload), "run")
        step = read_step(text, workload, clients=1)
        assert step.operations > 0
        print(f"{server.version}: {name}: {step.measured.rows_s:.0f} a second")


def play(server, script: str, *words: str) -> str:
    """Run a script to its good end, as the runner would."""
    binds = (Bind(host=SCRIPTS, inside="scripts"), Bind(host=server.socket.parent, inside="run"))
    sandbox = Sandbox(binds=binds, environment={"LUA_PATH": f"{INSIDE}/scripts/?.lua"})
    told = server.engine.sysbench_words(server, database="mysql")
    done = sandbox.run(["sysbench", f"{INSIDE}/scripts/{script}", *told, *words], timeout_s=300)
    assert done.ok, done.stdout + done.stderr
    return done.stdout
