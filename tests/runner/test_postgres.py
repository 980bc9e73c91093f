from __future__ import annotations

import os
import signal
import stat
import time
from contextlib import suppress

import psutil
import pytest

from runner import counters, datasets, disturbance, measure, sysbench
from runner.errors import DatasetError, ServerError
from runner.servers import postgres
from runner.servers.engine import with_options
from runner.servers.settle import settle
from runner.settings import Home
from tests.runner.conftest import ROWS
from tests.runner.installed_trees import POSTGRES, spec_of
from tests.runner.processes import until
from workloads.catalog import find_workload

pytestmark = pytest.mark.skipif(not POSTGRES, reason="apt-get install postgresql")

OPTIONS = {"shared_buffers": "64MB", "max_wal_size": "256MB"}


@pytest.fixture(scope="module")
def spec():
    return spec_of("postgres", POSTGRES[-1].parents[1], "bin/postgres", options=OPTIONS)


@pytest.fixture(scope="module")
def snapshot(spec, settings):

    home = Home(settings.home)
    return datasets.ensure(datasets.describe("small", ROWS, spec), ROWS, spec, home)


@pytest.fixture
def server(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")
    with postgres.running(spec, tmp_path / "data", cpus=[]) as running:
        yield running


def run(server, name: str, seconds: int = 1, **chosen):
    return sysbench.run_slice(
        server,
        find_workload(name),
        ROWS,
        **{"seconds": seconds, "threads": 1, "seed": 1, "cpus": [], **chosen},
    )


def test_a_snapshot_is_of_a_server_that_stopped_cleanly(spec, snapshot, server):
    assert server.version.startswith(POSTGRES[-1].parts[-3])
    assert "recover" not in server.error_log.read_text()
    assert stat.S_IMODE((server.data).stat().st_mode) == 0o700
    assert postgres.rows(server, "SELECT count(*), NULL FROM sbtest.sbtest1") == [("2000", "NULL")]
    # On the socket only, and not as root, which it would refuse.
    assert postgres.rows(server, "SHOW listen_addresses") == [("",)]
    assert postgres.rows(server, "SHOW data_checksums") == [("on",)]
    assert psutil.Process(server.pids[0]).uids().real != 0


def test_loads_are_measured(spec, own_home):
    described = datasets.describe("small", ROWS, spec)
    with datasets.ready(described, ROWS, spec, own_home) as snapshot:
        facts = datasets.load_facts(snapshot)
        allocated = snapshot.manifest.allocated

    assert facts.rows == 2000
    assert facts.rows_per_s > 0
    assert 0 < facts.startup_s < 60
    assert facts.peak_rss_bytes > 10_000_000
    assert facts.disk_bytes == pytest.approx(allocated, rel=0.05)
    assert 0.3 * postgres.data_bytes(spec, ROWS) < allocated < postgres.data_bytes(spec, ROWS)
    assert described.engine_format == f"postgres-{POSTGRES[-1].parts[-3]}"


@pytest.mark.parametrize("name", ["scan", "point-query", "update-index"])
def test_workloads_run_and_are_counted_to_the_last_child(server, tmp_path, name):
    with counters.around(server, counters.device_of(tmp_path)) as account:
        done = run(server, name)
    found = account.counters

    assert done.operations > 10
    # The session's process has ended; alone, the postmaster and its company do next to nothing.
    # On a busy machine neither gets much, so client and server are compared.
    assert found.server_cpu_us > 0.3 * done.cpu_s * 1e6
    counted = {
        "scan": "pg_tables_seq_tup_read",
        "point-query": "pg_tables_idx_tup_fetch",
        "update-index": "pg_tables_n_tup_upd",
    }
    expected = done.operations * (2000 if name == "scan" else 1)
    assert found.engine[counted[name]] == pytest.approx(expected, rel=0.02)
    assert found.engine["pg_database_xact_commit"] >= done.operations


def test_a_session_of_its_own_is_not_foreign(server):
    last = max(os.sched_getaffinity(0))
    for pid in server.pids:
        # A worker of autovacuum may end between being listed and being pinned.
        with suppress(ProcessLookupError):
            os.sched_setaffinity(pid, {last})
    children = counters.children_s(server.pids)
    before = disturbance.read(server.pids, [last])
    client = run(server, "point-query", 2, cpus=[last])
    after = disturbance.read(server.pids, [last])
    children = counters.children_s(server.pids) - children

    unknown = disturbance.shares(before, after, client_s=client.cpu_s)["foreign"]
    known = disturbance.shares(before, after, client_s=client.cpu_s + children)["foreign"]

    assert children > 0.05
    assert unknown - known == pytest.approx(100 * children / (after.at_s - before.at_s), rel=0.1)


def test_what_was_written_is_vacuumed_and_what_was_not_is_left_alone(server):
    ask = "SELECT vacuum_count, n_dead_tup FROM pg_stat_user_tables WHERE relname = 'sbtest1'"
    loaded = postgres.rows(server, ask)
    assert settle(server).left == ""
    assert postgres.rows(server, ask) == loaded

    run(server, "update-index")
    settled = settle(server)
    # Statistics may lag for half a second.
    until(lambda: postgres.rows(server, ask)[0][1] == "0")

    assert settled.left == ""
    assert int(postgres.rows(server, ask)[0][0]) == int(loaded[0][0]) + 1


def test_a_server_held_still_uses_no_processor_and_answers_afterwards(server):
    with measure.held_still([server]):
        before = counters.read(server.pids, None)
        time.sleep(0.5)
        after = counters.read(server.pids, None)
        assert psutil.Process(server.pids[0]).status() == psutil.STATUS_STOPPED

    assert counters.between(before, after).server_cpu_us < 500
    assert postgres.rows(server, "SELECT 1") == [("1",)]


def test_a_wrong_option_is_told_in_the_servers_words(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")
    wrong = with_options(spec, {"no_such_option": True})

    with (
        pytest.raises(ServerError) as caught,
        postgres.running(wrong, tmp_path / "data", cpus=[]),
    ):
        pass

    assert caught.value.stage == "start"
    assert 'unrecognized configuration parameter "no_such_option"' in caught.value.log_tail


def test_a_crash_ends_the_server_instead_of_being_repaired(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")

    with (
        pytest.raises(ServerError, match="died"),
        postgres.running(spec, tmp_path / "data", cpus=[]) as server,
    ):
        os.kill(psutil.Process(server.pids[0]).children()[0].pid, signal.SIGKILL)
        until(lambda: not psutil.pid_exists(server.pids[0]))


def test_a_refused_statement_is_told_with_what_the_server_said(server):
    with pytest.raises(ServerError, match="did not take: SELECT nonsense") as caught:
        postgres.rows(server, "SELECT nonsense")

    assert 'column "nonsense" does not exist' in caught.value.log_tail


def test_a_data_directory_that_is_not_empty_is_not_made_anew(spec, snapshot, tmp_path):

    datasets.restore(snapshot, tmp_path / "data")

    with pytest.raises(DatasetError, match="could not be initialised") as caught:
        postgres.initialise(spec, tmp_path / "data")

    assert "not empty" in caught.value.log_tail
