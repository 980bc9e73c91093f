from __future__ import annotations

import os
import signal
import sys

import psutil
import pytest

from runner import datasets, load_facts, sandbox, shell
from runner.errors import DatasetError, ServerError
from runner.servers import mysql_family
from runner.servers.mysql_family import ServerSpec
from tests.runner.conftest import ROWS
from tests.runner.processes import servers, until
from workloads.plan import DatasetPlan


def test_a_server_runs_on_a_copy_pinned_and_stops_cleanly(spec, snapshot, tmp_path):
    last = psutil.cpu_count() - 1
    datasets.restore(snapshot, tmp_path / "data")

    with mysql_family.running(spec, tmp_path / "data", cpus=[last]) as server:
        (pid,) = server.pids
        assert psutil.Process(pid).cpu_affinity() == [last]
        assert "MariaDB" in server.version
        assert server.socket.exists()

    assert not psutil.pid_exists(pid)
    assert not server.socket.parent.exists()


def test_the_snapshot_is_loaded_once_and_never_written_again(spec, snapshot, home, tmp_path):
    before = _contents(snapshot)
    datasets.restore(snapshot, tmp_path / "data")
    with mysql_family.running(spec, tmp_path / "data", cpus=[]):
        pass

    again = datasets.ensure(datasets.describe("small", ROWS, spec), ROWS, spec, home)

    assert again == snapshot
    assert _contents(snapshot) == before


def test_two_loads_hold_the_same_rows(spec, snapshot, own_home, tmp_path):
    # The checksum is the server's own, over every row.
    other = datasets.ensure(datasets.describe("small", ROWS, spec), ROWS, spec, own_home)
    sums = []
    for number, folder in enumerate((snapshot, other)):
        datasets.restore(folder, tmp_path / f"data{number}")
        with mysql_family.running(spec, tmp_path / f"data{number}", cpus=[]) as server:
            words = ["mariadb", "--no-defaults", f"--socket={server.socket}", "--user=root"]
            query = "SELECT COUNT(*), SUM(k) FROM sbtest.sbtest1; CHECKSUM TABLE sbtest.sbtest1"
            sums.append(shell.run([*words, "--execute", query], timeout_s=60).stdout)

    assert sums[0] == sums[1]
    assert "2000" in sums[0]


def test_what_decides_the_bytes_decides_the_digest(spec):
    def digest(options, rows=ROWS):
        changed = mysql_family.with_options(spec, options)
        return datasets.describe("small", rows, changed).digest

    assert digest({"innodb_page_size": "4k"}) != digest({})
    assert digest({}, DatasetPlan(rows=2001)) != digest({})
    assert digest({"innodb_buffer_pool_size": "1G"}) == digest({})


def test_a_server_with_a_wrong_option_says_so(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")
    wrong = mysql_family.with_options(spec, {"no_such_option": 1})

    with (
        pytest.raises(ServerError) as caught,
        mysql_family.running(wrong, tmp_path / "data", cpus=[]),
    ):
        pass

    assert caught.value.stage == "start"
    assert "no_such_option" in caught.value.log_tail
    until(lambda: servers(spec.installed.folder) == [])


def test_a_server_that_dies_while_in_use_is_an_error(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")

    with (
        pytest.raises(ServerError, match="died"),
        mysql_family.running(spec, tmp_path / "data", cpus=[]) as server,
    ):
        os.kill(server.pids[0], signal.SIGKILL)
        until(lambda: not servers(spec.installed.folder))


def test_an_error_in_use_stops_the_server(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")

    with (
        pytest.raises(KeyboardInterrupt),
        mysql_family.running(spec, tmp_path / "data", cpus=[]),
    ):
        raise KeyboardInterrupt

    until(lambda: servers(spec.installed.folder) == [])


def test_a_program_that_is_no_server_is_an_error(spec, tmp_path):
    # A shell script that ends at once stands in for a server that cannot be run.
    no_server = ServerSpec(
        engine="mariadb",
        installed=spec.installed,
        program="share/doc/README.md",
        install_db=None,
        options={},
    )

    with pytest.raises(DatasetError, match="does not tell its version"):
        datasets.server_version(no_server)


def test_a_killed_runner_leaves_no_server(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")
    program = f"""
import pickle, sys, time
from pathlib import Path
from runner.servers import mysql_family
spec = pickle.loads({_pickled(spec)!r})
with mysql_family.running(spec, Path({str(tmp_path / "data")!r}), cpus=[]):
    print("up", flush=True)
    time.sleep(600)
"""
    with (tmp_path / "log").open("wb") as log:
        runner = shell.start([sys.executable, "-c", program], output=log)
    until(lambda: "up" in (tmp_path / "log").read_text())
    assert servers(spec.installed.folder)

    os.kill(runner.pid, signal.SIGKILL)

    until(lambda: not servers(spec.installed.folder))
    runner.wait(60)


def _pickled(value) -> bytes:
    import pickle  # noqa: PLC0415  only here

    return pickle.dumps(value)


def _contents(folder) -> dict[str, tuple[int, float]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime)
        for path in folder.rglob("*")
    }


def test_binary_logs_are_off_unless_the_plan_wants_them(spec, snapshot, tmp_path):
    asked = []
    for number, options in enumerate(({}, {"log_bin": True})):
        data = tmp_path / f"data{number}"
        datasets.restore(snapshot, data)
        chosen = mysql_family.with_options(spec, options)
        with mysql_family.running(chosen, data, cpus=[]) as server:
            asked += mysql_family.rows(server, "SELECT @@log_bin, @@innodb_log_file_size")

    # The plan's own size of the redo log, 16 MiB, is the last word.
    assert asked == [("0", "16777216"), ("1", "16777216")]
    assert not list((tmp_path / "data0").glob("binlog.*"))
    assert list((tmp_path / "data1").glob("binlog.0*"))


def test_a_data_directory_is_made_with_the_page_size_that_the_plan_asks_for(spec, tmp_path):
    small = mysql_family.with_options(spec, {"innodb_page_size": "4k"})
    data = tmp_path / "data"
    data.mkdir()
    sandbox.hand_over(data)

    mysql_family.initialise(small, data)
    with mysql_family.running(small, data, cpus=[]) as server:
        assert mysql_family.rows(server, "SELECT @@innodb_page_size") == [("4096",)]


def test_loads_are_measured(spec, own_home):
    with datasets.ready(datasets.describe("small", ROWS, spec), ROWS, spec, own_home) as snapshot:
        facts = datasets.load_facts(snapshot)
        allocated = snapshot.manifest.allocated

    assert facts.rows == 2000
    assert facts.rows_per_s > 0
    assert 0 < facts.startup_s < 60
    assert 0 < facts.shutdown_s < 60
    assert facts.peak_rss_bytes > 50_000_000
    assert facts.disk_bytes == pytest.approx(allocated, rel=0.05)
    assert load_facts.measured({"rows": {"sbtest.sbtest1": 2000}}) is None
