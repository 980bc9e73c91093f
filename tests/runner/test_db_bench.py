# The client of db_bench against Debian's RocksDB, and against programs that only look like it.
from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from runner import datasets, db_bench, snapshots
from runner.errors import ClientError, DatasetError, ServerError
from runner.servers.engines import engine_of
from runner.servers.lsm import DATABASE, LsmServer
from runner.settings import Home
from tests.runner.db_benches import (
    SMALL_TREE,
    SYSTEMS,
    scripted_artifact,
    spec_of,
    systems_artifact,
)
from workloads.db_bench import SUITES, WORKLOADS
from workloads.plan import DatasetPlan
from workloads.workload import DatasetKind

BY_NAME = {workload.name: workload for workload in WORKLOADS}
ROWS = DatasetPlan(kind=DatasetKind.LSM, rows=20_000)
NEEDS_ROCKSDB = pytest.mark.skipif(SYSTEMS is None, reason="needs the package rocksdb-tools")
EXTRA = {
    "compaction_cpu_s",
    "compaction_s",
    "compaction_write_gib",
    "flush_gib",
    "ingest_gib",
    "latency_ms_p999",
    "latency_ms_p9999",
    "lsm_gib",
    "stall_percent",
    "stall_s",
    "uptime_s",
}


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    return systems_artifact(tmp_path_factory.mktemp("artifact") / "installed")


@pytest.fixture(scope="module")
def snapshot(artifact, tmp_path_factory):
    """The folder of a loaded snapshot."""
    home = Home(tmp_path_factory.mktemp("home"))
    spec = spec_of(artifact)
    return datasets.ensure(datasets.describe("small", ROWS, spec), ROWS, spec, home)


@pytest.fixture
def database(snapshot, tmp_path):
    """A copy of it."""
    target = tmp_path / "data"
    snapshots.restore(snapshot.parent, [target])
    return target


def opened(spec, data):
    return engine_of(spec.engine).running(spec, data, cpus=())


def a_slice(server, name, *, plan=ROWS, seconds=1, threads=1, seed=1):
    return db_bench.run_slice(
        server, BY_NAME[name], plan, seconds=seconds, threads=threads, seed=seed, cpus=()
    )


def contents(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / DATABASE).iterdir())
    }


@NEEDS_ROCKSDB
def test_the_version_is_told_and_named(artifact):
    engine, spec = engine_of("rocksdb"), spec_of(artifact)

    version = engine.version(spec)

    assert version.startswith("RocksDB ")
    assert engine.data_format(spec) == f"rocksdb-{version.split()[1].partition('.')[0]}"


@NEEDS_ROCKSDB
def test_a_loaded_database_is_at_rest_and_has_levels(artifact, database):
    spec = spec_of(artifact)
    with opened(spec, database) as server:
        settled = server.engine.settle(server, timeout_s=60)

    assert settled.left == ""
    assert len(list((database / DATABASE).glob("*.sst"))) > 4


@NEEDS_ROCKSDB
def test_every_start_begins_with_the_same_bytes(snapshot, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    snapshots.restore(snapshot.parent, [first, second])

    assert contents(first) == contents(second) == contents(snapshot)


@NEEDS_ROCKSDB
def test_slices_of_two_databases_alternate(artifact, snapshot, tmp_path):
    folders = [tmp_path / "baseline", tmp_path / "candidate"]
    snapshots.restore(snapshot.parent, folders)
    spec = spec_of(artifact)
    with opened(spec, folders[0]) as baseline, opened(spec, folders[1]) as candidate:
        runs = [a_slice(one, "readwhilewriting") for one in (baseline, candidate, baseline)]

    for run in runs:
        assert run.seconds >= 1
        assert run.throughput_ops_s > 1000
        assert run.latency_ms.minimum <= run.latency_ms.p50 <= run.latency_ms.p99
        assert run.latency_ms.p99 <= run.extra["latency_ms_p999"] <= run.latency_ms.maximum
        assert run.cpu_s > 0
        # The background writer puts 2 MB/s, and nobody else puts anything.
        assert 1 < run.extra["ingest_gib"] * 1024 / run.seconds < 3
        assert run.extra.keys() >= EXTRA


@NEEDS_ROCKSDB
@pytest.mark.parametrize(
    "name", ["readrandom", "multireadrandom", "fwdrange", "revrange", "fwdrangewhilewriting"]
)
def test_each_kind_of_reading_runs_with_threads(artifact, database, name):
    with opened(spec_of(artifact), database) as server:
        run = a_slice(server, name, threads=2)

    assert run.seconds >= 1
    assert run.operations > 1000


@NEEDS_ROCKSDB
def test_each_second_is_told(artifact, database):
    with opened(spec_of(artifact), database) as server:
        run = a_slice(server, "readrandom", seconds=2)

    # The last second may end with the slice, before it is reported.
    assert len(run.per_second_ops_s) in {1, 2}
    assert run.per_second_ops_s[0] < run.operations


@NEEDS_ROCKSDB
def test_reading_leaves_the_rows_as_they_were(artifact, database, snapshot):
    tables = {name for name in contents(snapshot) if name.endswith(".sst")}
    with opened(spec_of(artifact), database) as server:
        a_slice(server, "readrandom")

    after = contents(database)

    assert {name for name in after if name.endswith(".sst")} == tables
    assert {name: after[name] for name in tables} == {
        name: contents(snapshot)[name] for name in tables
    }


@NEEDS_ROCKSDB
def test_a_sequence_runs_from_an_empty_folder(artifact, tmp_path):
    spec, data = spec_of(artifact), tmp_path / "data"
    data.mkdir()
    server_of = engine_of("rocksdb")
    server_of.initialise(spec, data)
    with opened(spec, data) as server:
        runs = {name: a_slice(server, name) for name in SUITES["leveled-6"]}

    work = {name: run.operations for name, run in runs.items() if not name.endswith("writing")}
    assert work == {
        "leveled.fillseq": 20_000,
        "leveled.overwritesome": 2_000,
        "leveled.overwriteandwait": 20_000,
    }
    filled, rewritten = runs["leveled.fillseq"], runs["leveled.overwriteandwait"]
    # Overwriting all keys rewrites levels, while those in order are hardly on the disk yet.
    assert rewritten.extra["write_amplification"] > 1.1
    assert filled.extra["flush_gib"] < rewritten.extra["flush_gib"]
    # 20,000 x 420 bytes, and what RocksDB adds to each write.
    ingest = rewritten.extra["ingest_gib"] * 1024**3
    assert ingest == pytest.approx(20_000 * 430, rel=0.1)


@NEEDS_ROCKSDB
def test_settling_ends_compaction_or_says_that_it_did_not(artifact, database):
    with opened(spec_of(artifact), database) as server:
        a_slice(server, "overwrite")
        # Whatever the memtable held is in level 0 once the database is opened again.
        before = server.engine._left(server)
        hurried = server.engine.settle(server, timeout_s=1)
        settled = server.engine.settle(server, timeout_s=120)

    assert "level 0" in before or "under compaction" in before
    assert hurried.left == "compaction did not end within 1 s"
    assert settled.left == ""


@NEEDS_ROCKSDB
def test_options_reach_the_database(artifact, database):
    options = {**SMALL_TREE, "max_bytes_for_level_multiplier": 32, "bloom_bits": 15}
    with opened(spec_of(artifact, options=options), database) as server:
        a_slice(server, "readrandom")

    written = max((database / DATABASE).glob("OPTIONS-*")).read_text()

    assert "max_bytes_for_level_multiplier=32.000000" in written
    assert "bloomfilter:15" in written


@NEEDS_ROCKSDB
def test_a_misspelt_option_is_an_error(artifact, database):
    with (
        opened(spec_of(artifact, options={"cash_size": 1}), database) as server,
        pytest.raises(ClientError, match="failed with 1") as raised,
    ):
        a_slice(server, "readrandom")

    assert "cash_size" in raised.value.log_tail


@NEEDS_ROCKSDB
def test_rows_that_are_not_there_are_an_error(artifact, database):
    more = DatasetPlan(kind=DatasetKind.LSM, rows=30_000)
    with (
        opened(spec_of(artifact), database) as server,
        pytest.raises(ClientError, match="does not hold the rows"),
    ):
        a_slice(server, "readrandom", plan=more)


@NEEDS_ROCKSDB
def test_a_broken_database_is_an_error(artifact, database):
    (database / DATABASE / "CURRENT").write_text("MANIFEST-999999\n")
    with opened(spec_of(artifact), database) as server:
        with pytest.raises(ClientError, match="failed with 1"):
            a_slice(server, "readrandom")
        with pytest.raises(ServerError, match="could not open"):
            server.engine.settle(server, timeout_s=120)


def test_a_config_must_not_set_what_forkwatch_sets(tmp_path):
    script = 'echo "RocksDB:    version 7.8.3" >&2'
    folder = scripted_artifact(tmp_path / "artifact", script)

    with (
        pytest.raises(ServerError, match="the config sets num"),
        opened(spec_of(folder, options={"num": 5}), tmp_path),
    ):
        pass


SCRIPTED = """\
echo "RocksDB:    version 7.8.3" >&2
case "$*" in
  *benchmarks=\\ *) ;;
  *%s*) %s ;;
esac
"""


def scripted(tmp_path, benchmark, does):
    """Return a closed database whose db_bench does something odd when a benchmark is asked for."""
    folder = scripted_artifact(tmp_path / "artifact", SCRIPTED % (benchmark, does))
    data = tmp_path / "data"
    data.mkdir()
    spec = spec_of(folder)
    return LsmServer(
        engine=engine_of("rocksdb"),
        socket=data,
        pids=(),
        version=engine_of("rocksdb").version(spec),
        error_log=data,
        data=data,
        spec=spec,
    )


def test_output_without_a_result_is_an_error_with_its_tail(tmp_path):
    server = scripted(tmp_path, "readrandom", "echo it went well")

    with pytest.raises(ClientError, match="printed no result of readrandom") as raised:
        a_slice(server, "readrandom")

    assert "it went well" in raised.value.log_tail


def test_a_program_that_is_killed_is_an_error(tmp_path):
    server = scripted(tmp_path, "readrandom", "kill -9 $$")

    with pytest.raises(ClientError, match="db_bench failed with"):
        a_slice(server, "readrandom")


def test_a_program_that_hangs_is_an_error(tmp_path, monkeypatch):
    server = scripted(tmp_path, "readrandom", "echo still here; sleep 600")
    # Time enough to begin, on a busy machine too.
    monkeypatch.setattr(db_bench, "GRACE_S", 2)

    with pytest.raises(ClientError, match="readrandom: db_bench hung") as raised:
        a_slice(server, "readrandom")

    assert "still here" in raised.value.log_tail


def test_a_load_that_fails_is_an_error(tmp_path):
    server = scripted(tmp_path, "fillseq", "echo put error: full >&2; exit 1")

    with pytest.raises(DatasetError, match="loading the database with fillseq failed") as raised:
        db_bench.load(server, ROWS)

    assert "put error: full" in raised.value.log_tail


def test_a_db_bench_without_the_words_for_rest_says_so(tmp_path):
    table = "echo 'Level Files Size Score'; echo ' L0 2/0 1.00 MB 0.5'; "
    table += "echo ' L6 3/0 9.00 MB 0.0'; echo ' Sum 5/0 10.00 MB 0.0'"
    does = f'{table}; case "$*" in *flush*) echo "unknown benchmark \'flush\'" >&2; exit 1;; esac'
    server = scripted(tmp_path, "benchmarks", does)

    settled = server.engine.settle(server, timeout_s=120)

    assert settled.left == "2 files in level 0; this db_bench does not know flush"


def test_a_terminal_is_not_made_to_obey(tmp_path):
    server = scripted(tmp_path, "readrandom", "printf '\\033[2Jgone'")

    with pytest.raises(ClientError) as raised:
        a_slice(server, "readrandom")

    assert "\x1b" not in raised.value.log_tail


def test_a_library_has_no_sql(tmp_path):
    server = scripted(tmp_path, "nothing", "true")

    with pytest.raises(ServerError, match="has no SQL"):
        server.engine.rows(server, "SELECT 1")
    with pytest.raises(ServerError, match="sysbench cannot use"):
        server.engine.sysbench_words(server, database="sbtest")
    assert server.engine.status(server) == {}
