from __future__ import annotations

import contextlib
import os
import threading
from datetime import timedelta
from typing import Self

import psutil
import pytest

from results.document import Placement
from results.slice import SideName
from runner import clock, datasets, leavings, load_facts, measure, start_servers, trees
from runner.bench import Bench
from runner.errors import ServerError
from tests.runner.conftest import ROWS
from tests.runner.installed_trees import POSTGRES, spec_of
from tests.runner.processes import servers
from workloads.catalog import find_workload
from workloads.plan import Suite

MB = 10**6
SIDES = (SideName.BASELINE, SideName.CANDIDATE)


def a_bench(spec, snapshot, folder) -> Bench:
    """Return a pair of equal sides."""
    return Bench(
        servers=dict.fromkeys(SIDES, spec),
        suite=Suite(workloads=("point-query",), slices=1, seconds=1, warmup_seconds=0),
        dataset=ROWS,
        snapshots=dict.fromkeys(SIDES, snapshot),
        scratch=folder / "scratch",
        placement=Placement(mode="unpinned"),
        seed=1,
    )


@pytest.fixture
def bench(spec, home, tmp_path):
    dataset = datasets.describe("small", ROWS, spec)
    with datasets.ready(dataset, ROWS, spec, home) as snapshot:
        yield a_bench(spec, snapshot, tmp_path)


class Watch:
    """Looks again and again which servers below a folder are held still."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.still: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.01):
            for process in servers(self.folder):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if process.status() == psutil.STATUS_STOPPED:
                        self.still.add(process.pid)


def test_every_server_of_a_start_tells_what_it_took(bench, progress):
    names = ("point-query", "update-index", "update-nonindex")

    start = measure.measure_start(bench, 0, [find_workload(name) for name in names], progress)

    # What reads and the first writing workload share a data directory.
    assert [(life.leg, life.side) for life in start.servers] == [
        (leg, side) for leg in (0, 1) for side in SIDES
    ]
    for life in start.servers:
        assert 0 < life.startup_s < 60
        assert 0 < life.shutdown_s < 60
        assert life.peak_rss_bytes > 50 * MB
        # The redo log alone has 16 MiB.
        assert life.disk_bytes > 20 * MB


@pytest.mark.alone
@pytest.mark.parametrize("start", [0, 1])
def test_the_other_server_is_held_still_and_who_is_first_alternates(bench, tmp_path, start):
    lives = []

    with Watch(tmp_path) as watch:
        with start_servers.servers(bench, start=start, leg=3, lives=lives) as up:
            assert list(up) == list(SIDES)
            pids = {side: set(server.pids) for side, server in up.items()}
            coming = set(watch.still)
            assert all(psutil.Process(pid).status() != psutil.STATUS_STOPPED for pid in coming)
        going = set(watch.still)

    first = SIDES[start]
    assert coming == going == pids[first]
    # Who came first goes last.
    assert [life.side for life in lives] == [SIDES[1 - start], first]
    assert {life.leg for life in lives} == {3}


def test_a_server_that_died_has_no_life_to_tell_of(bench):
    lives = []

    with (
        pytest.raises(ServerError, match="died") as caught,
        start_servers.servers(bench, start=0, leg=0, lives=lives) as up,
    ):
        psutil.Process(up[SideName.CANDIDATE].pids[0]).kill()

    assert caught.value.side is SideName.CANDIDATE
    assert lives == []
    assert not bench.scratch.exists()


def test_a_tree_deeper_than_a_stack_can_be_measured(tmp_path):
    deep = tmp_path / "deep"
    folder = os.fspath(deep)
    os.mkdir(folder)  # noqa: PTH102  pathlib takes a second for so many parts
    for _ in range(1200):
        folder += "/d"
        os.mkdir(folder)  # noqa: PTH102  as above
    with open(f"{folder}/rows", "wb") as file:  # noqa: PTH123  as above
        file.write(bytes(64 * 1024))
    (deep / "link").symlink_to("/usr")
    try:
        found = trees.allocated_bytes(deep)
    finally:
        leavings.remove(deep)

    assert 64 * 1024 <= found < 32 * MB


def test_what_is_not_there_takes_nothing(tmp_path):
    assert trees.allocated_bytes(tmp_path / "gone") == 0


def test_a_load_is_the_side_s_own_where_it_loaded_in_this_job(spec, own_home):
    dataset = datasets.describe("small", ROWS, spec)
    since = clock.now()
    held = datasets.ready_sides(
        dict.fromkeys(SIDES, dataset), ROWS, dict.fromkeys(SIDES, spec), own_home
    )
    with held as snapshots:
        loads = load_facts.side_loads(snapshots, since=since)
        later = load_facts.side_loads(snapshots, since=clock.now() + timedelta(seconds=1))

    assert [load.own for load in loads.values()] == [True, False]
    assert [load.own for load in later.values()] == [False, False]
    assert loads[SideName.BASELINE].rows == 2000
    assert "MariaDB" in loads[SideName.CANDIDATE].server_version
    assert loads[SideName.BASELINE].loaded_at >= since


@pytest.mark.skipif(not POSTGRES, reason="apt-get install postgresql")
def test_servers_of_many_processes_tell_of_all_of_them(home, tmp_path, progress):
    spec = spec_of(
        "postgres",
        POSTGRES[-1].parents[1],
        "bin/postgres",
        options={"shared_buffers": "64MB", "max_wal_size": "256MB"},
    )
    dataset = datasets.describe("small", ROWS, spec)
    with datasets.ready(dataset, ROWS, spec, home) as snapshot:
        pair = a_bench(spec, snapshot, tmp_path)
        start = measure.measure_start(pair, 1, [find_workload("point-query")], progress)

    assert [life.side for life in start.servers] == list(SIDES)
    for life in start.servers:
        assert 0 < life.startup_s < 60
        assert 0 < life.shutdown_s < 60
        assert life.peak_rss_bytes > 10 * MB
        assert life.disk_bytes > 20 * MB
