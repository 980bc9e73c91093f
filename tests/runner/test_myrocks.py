from __future__ import annotations

from dataclasses import replace

import pytest

from runner import counters, datasets, sysbench
from runner.errors import ServerError
from runner.servers import myrocks, mysql_family, session
from runner.servers.settle import settle
from tests.runner.installed_trees import ROCKSDB_PLUGIN
from workloads.catalog import find_workload
from workloads.plan import DatasetPlan

pytestmark = pytest.mark.skipif(
    not ROCKSDB_PLUGIN.exists(), reason="apt-get install mariadb-plugin-rocksdb"
)

PLAN = DatasetPlan(rows=2000, storage_engine="rocksdb")


@pytest.fixture
def rocks(spec):
    return replace(spec, storage_engine="rocksdb")


@pytest.fixture
def snapshot(rocks, home):
    return datasets.ensure(datasets.describe("rocks", PLAN, rocks), PLAN, rocks, home)


@pytest.fixture
def server(rocks, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")
    with mysql_family.running(rocks, tmp_path / "data", cpus=[]) as running:
        yield running


def write_for_a_second(server) -> None:
    sysbench.run_slice(
        server, find_workload("update-index"), PLAN, seconds=1, threads=1, seed=1, cpus=[]
    )


def test_tables_lie_in_myrocks_and_the_snapshot_is_one_compacted_tree(server, spec, snapshot):
    engine = session.rows(
        server, "SELECT engine FROM information_schema.tables WHERE table_name = 'sbtest1'"
    )

    assert engine == [("ROCKSDB",)]
    # Its own dictionary, written again at the start.
    settle(server)
    assert myrocks.left(server) == ""
    assert myrocks.level_0_files(server) == 0
    assert list((snapshot / "#rocksdb").glob("*.sst"))


def test_the_estimate_is_not_below_what_a_load_takes(rocks, snapshot):
    expected = mysql_family.data_bytes(rocks, PLAN)

    allocated = sum(path.stat().st_blocks * 512 for path in snapshot.rglob("*") if path.is_file())
    assert 0.3 * expected < allocated < expected


def test_what_was_written_is_flushed_and_compacted(server):
    write_for_a_second(server)
    entries = (
        "SELECT SUM(value) FROM information_schema.rocksdb_cfstats "
        "WHERE stat_type = 'NUM_ENTRIES_ACTIVE_MEM_TABLE' AND cf_name = 'default'"
    )
    assert int(session.rows(server, entries)[0][0]) > 0, "nothing to bring to rest"

    settled = settle(server)

    assert settled.left == ""
    assert session.rows(server, entries) == [("0",)]
    assert myrocks.level_0_files(server) == 0


def test_its_counters_explain_a_slice(server):
    with counters.around(server, None) as account:
        done = sysbench.run_slice(
            server, find_workload("point-query"), PLAN, seconds=1, threads=1, seed=1, cpus=[]
        )

    assert account.counters.engine["rocksdb_rows_read"] >= done.operations


def test_a_server_without_the_plugin_is_told_so(spec, snapshot, tmp_path):
    # The dataset asks for it; the plan's own list of plugins leaves it out.
    without = replace(
        spec,
        storage_engine="rocksdb",
        options={**spec.options, "plugin_load_add": "", "default_storage_engine": "InnoDB"},
    )
    datasets.restore(snapshot, tmp_path / "data")

    with (
        mysql_family.running(without, tmp_path / "data", cpus=[]) as server,
        pytest.raises(ServerError, match="the server has no MyRocks"),
    ):
        settle(server)
