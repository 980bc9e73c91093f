"""Every db_bench found below FORKWATCH_ENGINES as `NAME/bin/db_bench`: loaded, run, settled.

A name that begins with leveldb is LevelDB's, any other RocksDB's. None there is no failure: they
are built from source (docs/rocksdb.md), which `make engines` does not do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings, SettingsConfigDict

from runner import datasets, db_bench
from runner.servers.engines import engine_of
from runner.servers.settle import settle
from runner.settings import Home
from tests.runner.db_benches import SMALL_TREE, spec_of
from workloads.db_bench import SUITES, WORKLOADS
from workloads.db_bench_words import can_wait
from workloads.plan import DatasetPlan
from workloads.workload import DatasetKind

pytestmark = pytest.mark.engines


class Where(BaseSettings):
    """Where the trees are."""

    model_config = SettingsConfigDict(env_prefix="FORKWATCH_")

    engines: Path = Path(__file__).parents[2] / ".forkwatch" / "engines"


#: A tree with an engine.json is a server's; Debian's MyRocks brings its db_bench along.
TREES = sorted(
    path.parents[1]
    for path in Where().engines.glob("*/bin/db_bench")
    if not (path.parents[1] / "engine.json").exists()
)
BY_NAME = {workload.name: workload for workload in WORKLOADS}
ROWS = DatasetPlan(kind=DatasetKind.LSM, rows=20_000)
#: LevelDB's names for what SMALL_TREE asks of RocksDB.
SMALL = {"leveldb": {"write_buffer_size": 1024**2, "max_file_size": 1024**2}}


@pytest.fixture(params=TREES, ids=lambda tree: tree.name)
def spec(request):
    engine = "leveldb" if request.param.name.startswith("leveldb") else "rocksdb"
    return spec_of(request.param, engine=engine, options=SMALL.get(engine, SMALL_TREE))


def run(server, name):
    return db_bench.run_slice(server, BY_NAME[name], ROWS, seconds=1, threads=1, seed=1, cpus=())


def test_it_loads_runs_and_settles(spec, tmp_path):
    home = Home(tmp_path / "home")
    dataset = datasets.describe("small", ROWS, spec)
    snapshot = datasets.ensure(dataset, ROWS, spec, home)
    able = [
        name
        for name, workload in BY_NAME.items()
        if not workload.chain and spec.engine in workload.engines
    ]
    for name in able:
        datasets.restore(snapshot, tmp_path / name)
        with engine_of(spec.engine).running(spec, tmp_path / name, cpus=()) as server:
            done = run(server, name)
            settled = settle(server)

        assert done.operations > 1000
        assert done.latency_ms.p50 <= done.latency_ms.p99
        assert done.extra["lsm_gib"] > 0
        assert settled.left == ""
        print(f"{server.version}: {name} {done.throughput_ops_s:.0f} ops/s, {dict(done.extra)}")


@pytest.mark.parametrize("suite", ["leveled-6", "universal-6", "universal-no-wait-6"])
def test_the_sequences_run(spec, suite, tmp_path):
    style = int(suite.startswith("universal"))
    spec = replace(spec, options={**spec.options, "compaction_style": style})
    engine = engine_of(spec.engine)
    if spec.engine == "leveldb":
        pytest.skip("LevelDB has none of them")
    if suite == "universal-6" and not can_wait(engine.version(spec), "rocksdb", spec.options):
        pytest.skip("waiting for universal compaction may never end before 8.6")
    data = tmp_path / "data"
    data.mkdir()
    engine.initialise(spec, data)
    with engine.running(spec, data, cpus=()) as server:
        runs = {}
        for name in SUITES[suite]:
            runs[name] = run(server, name)
            settle(server)

    first, *_, last = runs.values()
    assert first.operations == last.operations == ROWS.rows
    if "no-wait" not in suite:
        assert last.extra["write_amplification"] > 1
