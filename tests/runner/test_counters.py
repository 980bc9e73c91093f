from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest

from runner import counters, datasets, shell, sysbench
from runner.counters import engine, hardware, machine, process
from runner.errors import HostError, ServerError
from runner.servers import mysql_family, session
from runner.servers.engine import RunningServer
from tests.runner.conftest import ROWS
from workloads.catalog import find_workload

STAT = """\
cpu  1000 100 500 9000 300 20 30 50 400 0
cpu0 1000 100 500 9000 300 20 30 50 400 0
intr 5
ctxt 777
"""
DISKS = " 253 0 vda 10 1 200 5 30 2 4000 9 0 7 14\n 253 1 vda1 1 0 2 0 3 0 4 0 0 0 0\n"


@pytest.fixture
def server(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")
    with mysql_family.running(spec, tmp_path / "data", cpus=[]) as running:
        yield running


def spin(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def end_a_thread_after(seconds: float) -> None:
    worker = threading.Thread(target=spin, args=(seconds,))
    worker.start()
    worker.join()
    # Python has let go of it; the kernel has it a moment longer.
    while Path(f"/proc/self/task/{worker.native_id}").exists():
        time.sleep(0.001)


def own_pid() -> int:
    return psutil.Process().pid


@pytest.mark.alone
def test_cpu_time_counts_threads_that_have_ended_and_agrees_with_the_ticks():
    ticks = psutil.Process().cpu_times()
    before = process.read([own_pid()])
    end_a_thread_after(0.3)
    after = process.read([own_pid()])
    later = psutil.Process().cpu_times()

    spent = (after.cpu_ns - before.cpu_ns) / 1e9
    in_ticks = later.user + later.system - ticks.user - ticks.system
    assert spent >= 0.3
    # Two readings in ticks of 10 ms, and what reading /proc itself costs.
    assert spent == pytest.approx(in_ticks, abs=0.04)


@pytest.mark.alone
def test_switches_of_ended_threads_are_lost_and_the_share_that_was_seen_says_so():
    before = process.read([own_pid()])
    end_a_thread_after(0.5)
    lost = process.switches(before, process.read([own_pid()]))
    before = process.read([own_pid()])
    spin(0.5)
    kept = process.switches(before, process.read([own_pid()]))

    assert lost.seen_percent is not None
    assert lost.seen_percent < 50
    # The account of a thread that runs, as this one does, lags by up to a tick of 10 ms.
    assert kept.seen_percent is not None
    assert kept.seen_percent > 80


def test_a_thread_number_given_out_again_counts_from_its_beginning():
    def reading(cpu_ns: int, **threads: process.Thread) -> process.Reading:
        numbers = {int(name[1:]): thread for name, thread in threads.items()}
        zeros = dict.fromkeys(
            ("read_bytes", "write_bytes", "read_calls", "write_calls"), 0
        ) | dict.fromkeys(("minor_faults", "major_faults"), 0)
        return process.Reading(cpu_ns=cpu_ns, threads=numbers, **zeros)

    old = process.Thread(cpu_ns=900, voluntary=50, involuntary=5)
    new = process.Thread(cpu_ns=100, voluntary=3, involuntary=1)
    other = process.Thread(cpu_ns=10, voluntary=7, involuntary=0)

    found = process.switches(reading(1000, t1=old), reading(1200, t1=new, t2=other))

    # 3 + 7 and 1 + 0; of 200 ns, 100 + 10 were spent by threads that are still there.
    assert (found.voluntary, found.involuntary, found.seen_percent) == (10, 1, 55.0)


def test_the_machine_is_counted_as_vmstat_and_iostat_do(tmp_path):
    (tmp_path / "stat").write_text(STAT)
    (tmp_path / "diskstats").write_text(DISKS)

    found = machine.read("vda", proc=tmp_path)

    # user 1000 + nice 100 + system 500 + interrupts 20 + 30; guests' 400 are in user already.
    assert found.busy_s == 16.5
    assert found.total_s == 110.0
    assert found.steal_s == 0.5
    assert found.switches == 777
    assert (found.device_reads, found.device_read_bytes) == (10, 200 * 512)
    assert found.device_write_bytes == 4000 * 512
    assert machine.read(None, proc=tmp_path).device_reads == 0


def test_a_device_is_found_through_its_mount_where_the_folder_has_no_number_of_one(tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 0:4 / /proc rw - proc /no/such/device rw\n")

    assert machine.device_of(Path("/proc"), mounts=mounts) is None


def test_an_account_of_a_real_slice_has_every_counter(server, tmp_path):
    with counters.around(server, counters.device_of(tmp_path)) as account:
        done = sysbench.run_slice(
            server, find_workload("update-index"), ROWS, seconds=1, threads=1, seed=1, cpus=[]
        )
    found = account.counters

    assert found.server_cpu_us > 0
    assert found.voluntary_switches > 0
    assert found.server_write_bytes > 0
    assert found.server_write_calls > 0
    assert found.minor_faults > 0
    assert found.switches_seen_percent is not None
    assert found.machine_cpu_us >= 0.5 * found.server_cpu_us
    assert found.engine["handler_update"] == pytest.approx(done.operations, abs=2)
    assert found.engine["innodb_os_log_written"] > 0
    assert found.hardware == {}


def test_looking_at_engine_counters_is_not_in_them(server):
    statement = "SELECT k FROM sbtest.sbtest1 WHERE id = 7"
    # Opening the table reads its statistics.
    session.rows(server, statement)
    with counters.around(server, None) as idle:
        pass
    with counters.around(server, None) as busy:
        rows = session.rows(server, statement)

    assert len(rows) == 1
    handler = {name: n for name, n in idle.counters.engine.items() if name.startswith("handler")}
    assert handler == {}
    assert busy.counters.engine["handler_read_key"] == 1
    assert busy.counters.engine["handler_commit"] == 1


def test_a_hostile_server_gets_no_say_in_the_names_and_numbers():
    rows = [
        ("Handler_read_key", "12"),
        ("Handler_read_next", "9" * 5000),
        ("Handler_read_prev", "18446744073709551616"),
        ("Handler_write", "²"),
        ("Handler_<script>", "1"),
        ("Handler_\n", "1"),
        ("Innodb_rows_read", "-5"),
        ("Innodb_rows_inserted",),
        ("Com_select", "3"),
        ("Rocksdb_memtable_total", "77"),
        ("Rocksdb_block_cache_miss", "4"),
        ("",),
    ]

    assert engine.counters(rows) == {"handler_read_key": 12, "rocksdb_block_cache_miss": 4}


def test_only_counters_that_grew_are_kept_and_only_so_many():
    before = {"handler_a": 5, "handler_b": 5, "handler_c": 5}
    after = {"handler_a": 5, "handler_b": 9, "handler_c": 1, "handler_new": 3}

    assert engine.between(before, after) == {"handler_b": 4}
    assert engine.between(before, after, {"handler_b": 3}) == {"handler_b": 1}

    names = [f"handler_{number:04}" for number in range(5000)]
    many = engine.between(dict.fromkeys(names, 0), dict.fromkeys(names, 1))
    assert list(many) == names[:100]


def test_a_server_that_does_not_tell_its_counters_has_none(spec, tmp_path):
    gone = RunningServer(
        engine=mysql_family,
        socket=tmp_path / "server.sock",
        pids=(),
        version="",
        error_log=tmp_path / "log",
        data=tmp_path,
        spec=spec,
    )
    with pytest.raises(ServerError):
        session.rows(gone, "SHOW GLOBAL STATUS")

    assert engine.read(gone) == {}
    with counters.around(gone, None) as account:
        pass
    assert account.counters.engine == {}


def test_what_perf_counted_is_read_and_what_it_could_not_is_left_out():
    text = (
        "123456789,,instructions:u,1000000,100.00,,\n"
        "<not supported>,,cycles:u,0,100.00,,\n"
        "<not counted>,,branch-misses:u,0,0.00,,\n"
        "42,,LLC-load-misses:u,1000,50.00,,\n"
        "not a line\n"
    )

    assert hardware.parse(text) == {"instructions": 123456789, "llc_load_misses": 42}


@pytest.mark.alone
def test_perf_counts_a_process_that_runs():
    try:
        shell.require("perf", package="linux-perf")
    except HostError as error:
        pytest.skip(str(error))
    with hardware.counting([own_pid()], events=("task-clock",)) as found:
        spin(0.3)
    if not found:
        pytest.skip("perf may not count here")

    # Milliseconds.
    assert found["task_clock"] >= 290


def test_a_machine_without_hardware_counters_says_why_once():
    first = hardware.missing()

    assert hardware.missing() is first
    with hardware.counting([]) as found:
        pass
    assert found == {}
