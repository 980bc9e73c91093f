"""Every engine that `make engines` fetched: made, loaded, run, settled, stopped, restored.

Folders are found below FORKWATCH_ENGINES. What is not there is not tested, and nothing at all there
is a failure: this test is asked for by name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings, SettingsConfigDict

from runner import counters, datasets, sysbench
from runner.servers.engines import engine_of
from runner.servers.settle import settle
from tests.runner.installed_trees import described
from workloads.catalog import find_workload
from workloads.plan import DatasetPlan

pytestmark = pytest.mark.engines


class Where(BaseSettings):
    """Where the trees are."""

    model_config = SettingsConfigDict(env_prefix="FORKWATCH_")

    engines: Path = Path(__file__).parents[2] / ".forkwatch" / "engines"


TREES = sorted(path.parent for path in Where().engines.glob("*/engine.json"))
MYROCKS = [tree for tree in TREES if list(tree.rglob("ha_rocksdb.so"))]
ROWS = 2000
#: What one operation has to show in the server's own counters, by workload and kind of engine.
COUNTED = {
    "scan": ("handler_read_rnd_next", "pg_tables_seq_tup_read", ROWS),
    "point-query": ("handler_read_key", "pg_tables_idx_tup_fetch", 1),
    "update-index": ("handler_update", "pg_tables_n_tup_upd", 1),
}


def test_there_are_trees():
    assert TREES, f"nothing below {Where().engines}: make engines"


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.name)
def test_it_loads_runs_settles_and_stops(tree, home, tmp_path):
    walk(described(tree), DatasetPlan(rows=ROWS), home, tmp_path)


@pytest.mark.parametrize("tree", MYROCKS, ids=lambda tree: tree.name)
def test_its_myrocks_loads_runs_settles_and_stops(tree, home, tmp_path):
    plan = DatasetPlan(rows=ROWS, storage_engine="rocksdb")
    walk(replace(described(tree), storage_engine="rocksdb"), plan, home, tmp_path)


def walk(spec, plan, home, tmp_path) -> None:
    dataset = datasets.describe("small", plan, spec)
    snapshot = datasets.ensure(dataset, plan, spec, home)
    allocated = sum(path.stat().st_blocks * 512 for path in snapshot.rglob("*") if path.is_file())
    assert allocated < engine_of(spec.engine).data_bytes(spec, plan)
    datasets.restore(snapshot, tmp_path / "data")

    with engine_of(spec.engine).running(spec, tmp_path / "data", cpus=[]) as server:
        assert server.startup_s > 0
        for name, (mysql, postgres, each) in COUNTED.items():
            with counters.around(server, None) as account:
                done = run(server, name, plan)
            found = account.counters
            counted = found.engine[postgres if spec.engine == "postgres" else mysql]
            assert counted >= 0.95 * each * done.operations
            assert found.server_cpu_us > 0.05 * done.seconds * 1e6
        before = settings_of(server)
        settled = settle(server)
        assert settings_of(server) == before

    assert settled.left == ""
    print(f"{dataset.engine_format}: start {server.startup_s} s, settle {settled.seconds} s")


def settings_of(server) -> list[tuple[str, ...]]:
    """Return what settling turns, in whatever release."""
    if server.spec.engine == "postgres":
        return []
    return server.engine.rows(
        server,
        "SHOW GLOBAL VARIABLES WHERE variable_name LIKE 'innodb_%_pct%' OR "
        "variable_name LIKE 'innodb_io_capacity%' OR variable_name LIKE 'innodb_purge_rseg%'",
    )


def run(server, name: str, plan):
    return sysbench.run_slice(
        server, find_workload(name), plan, seconds=1, threads=1, seed=1, cpus=[]
    )
