from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.errors import DatasetError
from runner.manifest import DATA
from runner.snapshots import SnapshotStore
from tests.runner.snapshot_requests import MB, Clock, Maker, keys, request
from tests.runner.trees_on_disk import small_disk


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make():
    return Maker()


@pytest.fixture
def store(tmp_path, clock):
    (tmp_path / "store").mkdir()
    return SnapshotStore(tmp_path / "store", bytes_max=10**9, seconds=clock)


def test_the_least_recently_used_goes_first(store, make, clock):
    small = SnapshotStore(store.folder, bytes_max=60 * MB, seconds=clock)
    for key in ("a", "b", "c", "a"):
        clock.now += 1
        with small.hold(request(make, key)):
            pass
    assert keys(small) == ["b", "c", "a"]

    # 36 MB are there; 30 more need 6 of them.
    with small.hold(request(make, "d", allocated=30 * MB)):
        assert keys(small) == ["c", "a", "d"]


def test_one_in_use_is_never_evicted(store, make, clock):
    small = SnapshotStore(store.folder, bytes_max=40 * MB, seconds=clock)
    for key in ("a", "b", "c"):
        clock.now += 1
        with small.hold(request(make, key, allocated=13 * MB)):
            pass

    with small.hold(request(make, "a")), small.hold(request(make, "d", allocated=13 * MB)):
        # "b" was used before "a" only since "a" is held; were it not held, it would go by its time.
        os.utime(store.folder / "a" / "used", (0, 0))
        with small.hold(request(make, "e", allocated=13 * MB)):
            assert "a" in keys(small)
            assert "d" in keys(small)
            assert "b" not in keys(small)


def test_none_is_evicted_in_vain(store, make, clock):
    small = SnapshotStore(store.folder, bytes_max=30 * MB, seconds=clock)
    with (
        small.hold(request(make, "held", allocated=13 * MB)),
        small.hold(request(make, "idle", allocated=13 * MB)),
    ):
        pass
    with (
        small.hold(request(make, "held")),
        pytest.raises(DatasetError) as caught,
        small.hold(request(make, "big", allocated=20 * MB)),
    ):
        pass

    assert "it takes about 0.020 GB (as the test says)" in str(caught.value)
    assert "of the 0.030 GB for snapshots 0.011 GB are in use" in str(caught.value)
    assert "FORKWATCH_DATASETS_SIZE" in str(caught.value)
    assert sorted(keys(small)) == ["held", "idle"]
    assert make.made == 2


def test_a_limit_below_one_dataset_is_refused_before_loading(store, make, clock):
    tiny = SnapshotStore(store.folder, bytes_max=MB, seconds=clock)

    with (
        pytest.raises(DatasetError, match=r"0\.020 GB .* of the 0\.001 GB"),
        tiny.hold(request(make)),
    ):
        pass

    assert make.made == 0


def test_a_dataset_larger_than_the_disk_is_refused_before_loading(store, make, clock):
    wide = SnapshotStore(store.folder, bytes_max=10**18, seconds=clock)

    with (
        pytest.raises(DatasetError, match=r"1000000\.000 GB .* can be had on the disk"),
        wide.hold(request(make, allocated=10**15)),
    ):
        pass

    assert make.made == 0


def test_a_lowered_limit_is_kept_at_the_next_use(store, make, clock):
    for key in ("a", "b", "c"):
        clock.now += 1
        with store.hold(request(make, key)):
            pass

    with SnapshotStore(store.folder, bytes_max=5 * MB, seconds=clock).hold(request(make, "b")):
        # Over the limit even so, but in use.
        assert keys(store) == ["b"]


def test_snapshots_of_an_earlier_version_go_first(store, make, clock):
    (store.folder / "old" / DATA).mkdir(parents=True)
    (store.folder / "old" / DATA / "ibdata1").write_bytes(bytes(30 * MB))
    with store.hold(request(make, "a")):
        pass

    with SnapshotStore(store.folder, bytes_max=40 * MB, seconds=clock).hold(request(make, "b")):
        assert keys(store) == ["a", "b"]


def test_a_reserve_stays_free_on_the_disk(make, tmp_path, clock):
    with small_disk(tmp_path / "disk", "64m") as disk:
        careful = SnapshotStore(disk, bytes_max=10**9, reserve=50 * MB, seconds=clock)
        with pytest.raises(DatasetError, match=r"0\.050 GB stay free"), careful.hold(request(make)):
            pass
        with careful.hold(request(make, allocated=12 * MB)) as snapshot:
            with pytest.raises(DatasetError, match=r"0\.050 GB stay free"):
                snapshot.restore([disk / "one"])
            assert not (disk / "one").exists()


def test_loads_under_way_count_for_others(store, make, clock):
    small = SnapshotStore(store.folder, bytes_max=60 * MB, seconds=clock)

    def while_loading(folder: Path):
        # Somebody else asks for another one meanwhile.
        with (
            pytest.raises(DatasetError, match=r"0\.040 GB are in use"),
            small.hold(request(make, "other", allocated=30 * MB)),
        ):
            pass
        return make(folder)

    with small.hold(request(while_loading, allocated=40 * MB)):
        assert keys(small) == ["k"]


def test_loads_under_way_count_on_the_disk_too(make, tmp_path, clock):
    with small_disk(tmp_path / "disk", "64m") as disk:
        store = SnapshotStore(disk, bytes_max=10**9, seconds=clock)

        def while_loading(folder: Path):
            # Some 67 MB are free, and 40 of them promised to this one.
            with (
                pytest.raises(DatasetError, match="can be had on the disk"),
                store.hold(request(make, "other", allocated=30 * MB)),
            ):
                pass
            return make(folder)

        with store.hold(request(while_loading, allocated=40 * MB)):
            assert keys(store) == ["k"]
