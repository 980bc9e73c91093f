from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from runner import datasets, shell
from runner.errors import DatasetError, StageError
from runner.limits import limits
from runner.manifest import DATA
from runner.servers import mysql_family
from runner.settings import Home
from tests.runner.conftest import ROWS
from tests.runner.processes import servers, until
from tests.runner.trees_on_disk import contents, fill, flip_a_bit, small_disk
from workloads.plan import DatasetPlan

#: Two tables, so that their order matters too.
PLAN = DatasetPlan(tables=2, rows=500)


def ready(spec, home, plan=PLAN, **chosen):
    return datasets.ready(datasets.describe("small", plan, spec), plan, spec, home, **chosen)


def ask(spec, data, query: str) -> str:
    with mysql_family.running(spec, data, cpus=[]) as server:
        words = ["mariadb", "--no-defaults", f"--socket={server.socket}", "--user=root"]
        done = shell.run([*words, "--batch", "--execute", query], timeout_s=60)
    assert done.ok, done.stderr
    return done.stdout


def test_loaded_once_described_and_restored_for_both_sides(spec, own_home, tmp_path):
    with ready(spec, own_home) as snapshot:
        manifest = snapshot.manifest
        before = contents(snapshot.data)
        sides = [tmp_path / "job" / side for side in ("baseline", "candidate")]
        snapshot.restore(sides)
        assert contents(sides[0]) == contents(sides[1]) == before
        # A server that works on its side changes neither the other nor the snapshot.
        ask(spec, sides[0], "DELETE FROM sbtest.sbtest1 WHERE id < 100")
        assert contents(sides[1]) == contents(snapshot.data) == before

    with ready(spec, own_home) as again:
        assert again.manifest == manifest
        assert again.warnings == ()
    assert manifest.facts["rows"] == {"sbtest.sbtest1": 500, "sbtest.sbtest2": 500}
    assert "MariaDB" in str(manifest.facts["server_version"])
    assert manifest.load_seconds > 0


def test_a_damaged_table_is_loaded_again_with_the_same_rows(spec, own_home, tmp_path):
    query = "CHECKSUM TABLE sbtest.sbtest1, sbtest.sbtest2"
    with ready(spec, own_home) as snapshot:
        snapshot.restore([tmp_path / "before"])
        flip_a_bit(snapshot.data / "sbtest" / "sbtest1.ibd")
    rows_before = ask(spec, tmp_path / "before", query)

    with ready(spec, own_home) as snapshot:
        (warning,) = snapshot.warnings
        snapshot.restore([tmp_path / "after"])

    assert "the content of sbtest/sbtest1.ibd changed" in warning
    assert ask(spec, tmp_path / "after", query) == rows_before
    assert "sbtest.sbtest2" in rows_before


def test_the_estimate_is_not_below_what_a_load_takes(spec, snapshot):
    expected = mysql_family.data_bytes(spec, ROWS)

    allocated = sum(path.stat().st_blocks * 512 for path in snapshot.rglob("*") if path.is_file())
    assert 0.5 * expected < allocated < expected


# The redo log is reserved at once, whatever the number of rows.
@pytest.mark.parametrize(
    "options",
    [
        {"innodb_log_file_size": "1G"},
        {"innodb_log_file_size": "512m", "innodb_log_files_in_group": 2},
        {"innodb-log-file-size": 1024**3},
        {"innodb_log_file_size": "16M", "innodb_redo_log_capacity": "1G"},
    ],
)
def test_the_redo_log_counts(spec, options):
    assert mysql_family.redo_bytes(replace(spec, options=options)) == 1024**3
    assert mysql_family.redo_bytes(replace(spec, options={})) == 96 * 1024**2


def test_a_dataset_that_cannot_fit_is_refused_with_the_arithmetic(spec, own_home):
    huge = DatasetPlan(tables=1000, rows=10**9)

    with (
        pytest.raises(DatasetError) as caught,
        ready(spec, own_home, huge, bytes_max=10**18),
    ):
        pass
    with (
        pytest.raises(DatasetError, match="FORKWATCH_DATASETS_SIZE"),
        ready(spec, own_home, bytes_max=10**6),
    ):
        pass

    assert "1000 x 1000000000 rows, 0.017 GB of redo log" in str(caught.value)
    assert "can be had on the disk" in str(caught.value)
    assert [path for path in own_home.folder("datasets").iterdir() if path.is_dir()] == []


def test_rows_that_went_missing_are_an_error(spec, snapshot, tmp_path):
    datasets.restore(snapshot, tmp_path / "data")
    with mysql_family.running(spec, tmp_path / "data", cpus=[]) as server:
        assert datasets.count_rows(server, ROWS) == {"sbtest.sbtest1": 2000}
        with pytest.raises(DatasetError, match="could not be counted") as caught:
            datasets.count_rows(server, DatasetPlan(tables=2, rows=2000))

    assert "sbtest2' doesn't exist" in caught.value.log_tail
    with pytest.raises(DatasetError, match=r"2 x 500 rows .* the server counts .*499"):
        datasets.check_rows({"sbtest.sbtest1": 500, "sbtest.sbtest2": 499}, PLAN)
    with pytest.raises(DatasetError, match="the server counts"):
        datasets.check_rows({"sbtest.sbtest1": 500}, PLAN)


@contextmanager
def taken_while_loading(disk):
    """Let somebody else take what is free on the disk once the table is being filled."""
    ended = threading.Event()

    def take() -> None:
        until(lambda: ended.is_set() or [*disk.glob("datasets/*.partial-*/data/sbtest/*1.ibd")])
        if not ended.is_set():
            fill(disk, leave=0)

    thief = threading.Thread(target=take)
    thief.start()
    try:
        yield
    finally:
        ended.set()
        thief.join()


# Without a reserve the server finds the disk full; with one it is ended before that.
@pytest.mark.parametrize("reserve", [0, 40_000_000])
def test_a_disk_that_fills_up_during_the_load(spec, tmp_path, reserve):
    many = DatasetPlan(rows=60_000)
    spec = replace(spec, limits=limits(disk_reserve=reserve))
    with small_disk(tmp_path / "disk", "240m") as disk:
        home = Home(disk)

        with (
            taken_while_loading(disk),
            pytest.raises(DatasetError) as caught,
            ready(spec, home, many),
        ):
            pass

        assert "the disk became full while the dataset was loaded" in str(caught.value)
        assert "1 x 60000 rows" in str(caught.value)
        until(lambda: servers(spec.installed.folder) == [])
        assert list(disk.glob("datasets/*.partial-*")) == []
        # With room again it is simply loaded.
        (disk / "ballast").unlink()
        with ready(spec, home) as snapshot:
            assert snapshot.warnings == ()


def test_a_disk_without_room_for_both_sides(spec, home, tmp_path):
    spec = replace(spec, limits=limits(disk_reserve=1_000_000))
    with small_disk(tmp_path / "disk", "120m") as disk, ready(spec, home, ROWS) as snapshot:
        fill(disk, leave=snapshot.manifest.allocated + 5_000_000)
        sides = [disk / "baseline", disk / "candidate"]
        with pytest.raises(DatasetError) as caught:
            snapshot.restore(sides)
        restored = snapshot.restore(sides[:1])

        assert "no room to restore the dataset: 2 x 0.0" in str(caught.value)
        assert "0.001 GB stay free (FORKWATCH_DISK_RESERVE)" in str(caught.value)
        assert restored.way == "copy"
        assert contents(sides[0]) == contents(snapshot.data)


PROGRAM = """
import pickle, sys
from runner import datasets
from runner.settings import Home
from workloads.plan import DatasetPlan
spec = pickle.loads({spec!r})
plan = DatasetPlan(tables={tables}, rows={rows})
home = Home(__import__("pathlib").Path({home!r}))
print("begin", flush=True)
with datasets.ready(datasets.describe("small", plan, spec), plan, spec, home) as snapshot:
    print(snapshot.manifest.created_at, snapshot.warnings, flush=True)
"""


def in_a_process(spec, home, plan, log) -> shell.Process:
    program = PROGRAM.format(
        spec=pickle.dumps(spec), tables=plan.tables, rows=plan.rows, home=str(home.root)
    )
    with log.open("wb") as output:
        return shell.start([sys.executable, "-c", program], output=output)


def test_two_jobs_at_once_share_one_load(spec, own_home, tmp_path):
    logs = [tmp_path / "one", tmp_path / "two"]
    jobs = [in_a_process(spec, own_home, PLAN, log) for log in logs]

    assert [job.wait(120) for job in jobs] == [0, 0]
    said = [log.read_text() for log in logs]
    assert said[0] == said[1]
    assert said[0].endswith(" ()\n")


def test_killed_while_loading(spec, own_home, tmp_path):
    # Long enough that the kill comes in the middle.
    many = DatasetPlan(rows=20_000)
    job = in_a_process(spec, own_home, many, tmp_path / "log")
    store = own_home.folder("datasets")
    until(lambda: list(store.glob(f"*.partial-*/{DATA}/sbtest/sbtest1.ibd")))
    os.kill(job.pid, signal.SIGKILL)
    job.wait(60)
    assert [path.name for path in store.iterdir() if path.is_dir()] != []
    assert not list(store.glob(f"*/{DATA}/../forkwatch-snapshot.json"))

    with ready(spec, own_home, many) as snapshot:
        assert snapshot.warnings == ()
        assert snapshot.manifest.facts["rows"] == {"sbtest.sbtest1": 20_000}

    until(lambda: not servers(spec.installed.folder))
    assert [path.name for path in store.iterdir() if path.is_dir()] == [snapshot.data.parent.name]


def test_a_server_that_cannot_load_leaves_nothing(spec, own_home):
    wrong = mysql_family.with_options(spec, {"no_such_option": 1})

    with pytest.raises(StageError) as caught, ready(wrong, own_home):
        pass

    assert "no_such_option" in caught.value.log_tail
    assert [path for path in own_home.folder("datasets").iterdir() if path.is_dir()] == []
