from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from runner import counters, datasets, disturbance, slices, sysbench, warmup
from runner.errors import ClientError
from runner.measure import held_still, legs
from runner.servers import mysql_family, session
from runner.servers.innodb import HISTORY_MAX
from runner.servers.settle import settle
from tests.runner.conftest import ROWS
from workloads.catalog import find_workload


@pytest.fixture
def server(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")
    with mysql_family.running(spec, tmp_path / "data", cpus=[]) as running:
        yield running


def write_for_a_second(server) -> None:
    sysbench.run_slice(
        server, find_workload("update-index"), ROWS, seconds=1, threads=1, seed=1, cpus=[]
    )


class Rates:
    """A client that is as fast as it is told to be, run after run."""

    def __init__(self, *rates: float) -> None:
        self.rates = rates

    def __call__(self, number: int):
        rate = self.rates[min(number, len(self.rates) - 1)]
        return sysbench.ClientRun(
            seconds=1.0,
            operations=int(rate),
            per_second_ops_s=(),
            latency_ms=None,
        )


def names(found) -> list[list[str]]:
    return [[workload.name for workload in leg] for leg in found]


def test_reading_workloads_share_a_dataset_and_every_writing_one_gets_its_own():
    update, scan, point = map(find_workload, ("update-index", "scan", "point-query"))

    assert names(legs([update, scan, point])) == [["scan", "point-query", "update-index"]]
    assert names(legs([update, update])) == [["update-index"], ["update-index"]]
    assert names(legs([scan])) == [["scan"]]


def test_a_warm_up_ends_when_two_runs_in_a_row_agree():
    warmed = warmup.warm_up(Rates(1000, 2000, 3000, 3020))

    assert warmed.steady
    assert warmed.throughput_ops_s == (1000, 2000, 3000, 3020)
    assert warmed.seconds == 4.0


def test_a_warm_up_that_finds_no_steady_state_ends_all_the_same_and_says_so():
    warmed = warmup.warm_up(Rates(*(1000 * 1.1**number for number in range(50))))

    assert not warmed.steady
    assert len(warmed.throughput_ops_s) == warmup.RUNS_MAX


@pytest.mark.alone
def test_a_server_held_still_uses_no_processor_and_answers_afterwards(server):
    with held_still([server]):
        (pid,) = server.pids
        before = counters.read(server.pids, None)
        time.sleep(1.5)
        after = counters.read(server.pids, None)
        assert psutil.Process(pid).status() == psutil.STATUS_STOPPED

    # Stopping it costs each thread a last few microseconds; an idle server takes 1,000 a second.
    assert counters.between(before, after).server_cpu_us < 500
    assert session.rows(server, "SELECT 1, NULL") == [("1", "NULL")]


@pytest.mark.alone
def test_a_server_that_wrote_is_brought_to_rest(server):
    limit = "SELECT @@GLOBAL.innodb_max_dirty_pages_pct"
    before = session.rows(server, limit)
    write_for_a_second(server)
    dirty = session.status(server, "Innodb_buffer_pool_pages_dirty")
    assert dirty["innodb_buffer_pool_pages_dirty"] > 32, "nothing to bring to rest"

    settled = settle(server)

    assert settled.left == ""
    dirty = session.status(server, "Innodb_buffer_pool_pages_dirty")
    assert dirty["innodb_buffer_pool_pages_dirty"] <= 32
    assert session.rows(server, limit) == before


@pytest.mark.alone
def test_purge_that_the_plan_held_back_is_done_by_the_settling(spec, snapshot, tmp_path):
    # So little of it at once that a second of updates is far ahead of it.
    held = replace(spec, options={**spec.options, "innodb_purge_batch_size": 1})
    datasets.restore(snapshot, tmp_path / "data")
    with mysql_family.running(held, tmp_path / "data", cpus=[]) as server:
        write_for_a_second(server)
        left = session.status(server, "Innodb_history_list_length")
        assert left["innodb_history_list_length"] > HISTORY_MAX, "nothing was held back"

        settled = settle(server)

        assert settled.left == ""
        assert session.rows(server, "SELECT @@GLOBAL.innodb_purge_batch_size") == [("1",)]


@pytest.mark.alone
def test_a_server_that_does_not_come_to_rest_in_time_says_what_was_left(server):
    write_for_a_second(server)

    settled = settle(server, timeout_s=0)

    assert "dirty pages" in settled.left


def test_a_client_whose_clock_was_set_is_not_believed():
    scan = find_workload("scan")

    slices.check_clock(scan, 10.0, passed_s=10.1)
    with pytest.raises(ClientError, match="a clock of this machine was set"):
        slices.check_clock(scan, 3610.0, passed_s=10.1)


@pytest.mark.alone
def test_a_slice_on_a_watched_core_counts_its_own_client_and_nobody_elses(server, snapshot):
    """Server and client share a processor; without the client's account a third were foreign."""
    last = max(os.sched_getaffinity(0))
    for pid in server.pids:
        # A session may get a thread that served another one, elsewhere.
        for thread in psutil.Process(pid).threads():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread.id, {last})
    before = disturbance.read(server.pids, [last])
    client = sysbench.run_slice(
        server, find_workload("point-query"), ROWS, seconds=2, threads=1, seed=1, cpus=[last]
    )
    after = disturbance.read(server.pids, [last])

    unknown = disturbance.shares(before, after)["foreign"]
    known = disturbance.shares(before, after, client_s=client.cpu_s)["foreign"]

    assert client.cpu_s > 0.2
    # What is left is others' load on this machine.
    assert unknown - known == pytest.approx(
        100 * client.cpu_s / (after.at_s - before.at_s), rel=0.1
    )
