from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from runner import shell
from runner.errors import DatasetError
from runner.manifest import DATA, MANIFEST
from runner.snapshots import VERIFY_EVERY_S, SnapshotStore
from tests.runner.processes import until
from tests.runner.snapshot_requests import MB, Clock, Maker, keys, request
from tests.runner.trees_on_disk import contents, fill, flip_a_bit, plant, small_disk


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


def use(store, make, **chosen) -> tuple[str, ...]:
    """Hold the snapshot for a moment and return the warnings."""
    with store.hold(request(make), **chosen) as snapshot:
        assert contents(snapshot.data)["sbtest/empty.frm"]
        return snapshot.warnings


def test_made_once_and_described(store, make):
    for _ in range(3):
        with store.hold(request(make)) as snapshot:
            assert snapshot.warnings == ()
            manifest = snapshot.manifest

    assert make.made == 1
    assert manifest.facts == {"rows": {"sbtest1": 7}}
    assert {"sbtest/table.ibd", "sparse"} <= manifest.checksums.keys()
    # The sparse file's hole does not count.
    assert 11 * MB < manifest.allocated < 13 * MB
    assert sorted(path.name for path in store.folder.iterdir()) == [
        "k",
        "k.lock",
        "k.use",
        "room.lock",
    ]


def test_both_sides_are_restored_at_once_bit_for_bit(store, make, tmp_path):
    targets = [tmp_path / "job" / side for side in ("baseline", "candidate")]
    targets[0].mkdir(parents=True)
    (targets[0] / "left by an earlier start").touch()

    with store.hold(request(make)) as snapshot:
        restored = snapshot.restore(targets)
        original = contents(snapshot.data)

    assert contents(targets[0]) == contents(targets[1]) == original
    assert restored.way in {"copy", "reflink"}
    assert sorted(path.name for path in (tmp_path / "job").iterdir()) == ["baseline", "candidate"]


def missing(data: Path) -> None:
    (data / "000007.sst").unlink()


def extra(data: Path) -> None:
    (data / "sbtest" / "stranger").touch()


def truncated(data: Path) -> None:
    facts = (data / "sbtest" / "table.ibd").stat()
    os.truncate(data / "sbtest" / "table.ibd", facts.st_size - 1)
    os.utime(data / "sbtest" / "table.ibd", ns=(facts.st_mtime_ns, facts.st_mtime_ns))


def another_kind(data: Path) -> None:
    (data / "CURRENT").unlink()
    (data / "CURRENT").write_bytes(b"000007.sst")


def unlinked(data: Path) -> None:
    shutil.copy2(data / "checkpoint.sst", data / "another")
    (data / "another").replace(data / "checkpoint.sst")


def written(data: Path) -> None:
    flip_a_bit(data / "sbtest" / "table.ibd", quietly=False)


def no_manifest(data: Path) -> None:
    (data.parent / MANIFEST).unlink()


def torn_manifest(data: Path) -> None:
    os.truncate(data.parent / MANIFEST, 300)


DAMAGES = {
    missing: r"000007\.sst is missing",
    extra: "sbtest/stranger does not belong to it",
    truncated: r"sbtest/table\.ibd has 3000000 bytes, and had 3000001",
    another_kind: "CURRENT is a file, and was a symbolic-link",
    unlinked: r"checkpoint\.sst is a file, and was a hard-link",
    written: r"the content of sbtest/table\.ibd changed",
    no_manifest: "it has no manifest",
    torn_manifest: "its manifest is not readable",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("held", [False, True], ids=["between-uses", "while-held"])
def test_damage_is_found_and_repaired_with_a_warning(store, make, tmp_path, damage, held):
    use(store, make)
    # Checked completely once already, so that only what a quick look sees is seen.
    use(store, make)
    data = store.folder / "k" / DATA
    whole = contents(data)
    if not held:
        damage(data)

    with store.hold(request(make)) as snapshot:
        if held:
            damage(data)
        snapshot.restore([tmp_path / "restored"])
        (warning,) = snapshot.warnings

    assert make.made == 2
    assert warning.startswith("the snapshot of the dataset was damaged and made again: ")
    assert re.search(DAMAGES[damage], warning), warning
    assert contents(tmp_path / "restored") == whole
    assert use(store, make) == ()


def test_a_bit_that_the_disk_flipped_is_found_on_the_first_use(store, make):
    use(store, make)
    flip_a_bit(store.folder / "k" / DATA / "sparse")

    (warning,) = use(store, make)

    assert "the content of sparse changed (1 files in all)" in warning
    assert make.made == 2


def test_later_it_is_found_when_a_week_is_over_or_somebody_asks(store, make, clock):
    table = store.folder / "k" / DATA / "sbtest" / "table.ibd"
    use(store, make)
    use(store, make)
    flip_a_bit(table)
    clock.now += VERIFY_EVERY_S - 1
    # What a quick look cannot see; shown so that the price of not reading everything is known.
    assert use(store, make) == ()
    clock.now += 1
    assert "table.ibd changed" in use(store, make)[0]

    use(store, make)
    flip_a_bit(table)
    assert use(store, make) == ()
    assert "table.ibd changed" in use(store, make, verify=True)[0]

    use(store, make)
    flip_a_bit(table)
    # A clock that was set back says nothing about when the last look was.
    clock.now -= 10
    assert "table.ibd changed" in use(store, make)[0]


@pytest.mark.parametrize("held", [False, True])
def test_new_times_on_the_same_content_are_no_damage(store, make, tmp_path, held):
    use(store, make)
    data = store.folder / "k" / DATA
    whole = contents(data)
    if not held:
        os.utime(data / "sparse")

    with store.hold(request(make)) as snapshot:
        if held:
            os.utime(data / "sparse")
            (data / "sbtest" / "table.ibd").chmod(0o600)
        snapshot.restore([tmp_path / "restored"])
        assert snapshot.warnings == ()

    assert make.made == 1
    assert contents(data) == contents(tmp_path / "restored") == whole


def test_a_snapshot_that_fails_to_be_made_leaves_nothing(store):
    def broken(folder: Path):
        plant(folder)
        raise DatasetError("dataset", "the server said no", "its log")

    with (
        pytest.raises(DatasetError, match="the server said no") as caught,
        store.hold(request(broken)),
    ):
        pass

    assert caught.value.log_tail == "its log"
    assert keys(store) == []
    assert [path for path in store.folder.iterdir() if path.is_dir()] == []


def test_a_disk_that_fills_up_while_loading_is_told_as_that(tmp_path, clock):
    with small_disk(tmp_path / "disk", "64m") as disk:

        def greedy(folder: Path):
            (folder / "ibdata1").write_bytes(bytes(40 * MB))
            fill(disk, leave=MB)
            raise DatasetError("dataset", "table is full", "its log")

        small = SnapshotStore(disk, bytes_max=10**9, seconds=clock)
        with pytest.raises(DatasetError) as caught, small.hold(request(greedy)):
            pass

        assert "the disk became full while the dataset was loaded" in str(caught.value)
        assert "after 0.040 GB of about 0.020 GB (as the test says)" in str(caught.value)
        assert caught.value.log_tail == "its log"
        assert [path.name for path in disk.iterdir() if path.is_dir()] == []


def test_room_is_looked_for_before_restoring(make, tmp_path, clock):
    with small_disk(tmp_path / "disk", "64m") as disk:
        small = SnapshotStore(disk, bytes_max=10**9, seconds=clock)
        with small.hold(request(make)) as snapshot:
            fill(disk, leave=20 * MB)
            sides = [disk / "job" / side for side in ("baseline", "candidate")]
            with pytest.raises(DatasetError) as caught:
                snapshot.restore(sides)
            snapshot.restore(sides[:1])

        # The sparse file does not count; one side fits, two do not.
        assert "2 x 0.011 GB = 0.022 GB, and 0.020 GB are free" in str(caught.value)
        assert [path.name for path in (disk / "job").iterdir()] == ["baseline"]


PROGRAM = """
import sys, time
from pathlib import Path
from runner.eviction import Estimate
from runner.snapshots import Request, SnapshotStore
from tests.runner.trees_on_disk import plant

def make(folder):
    with Path({log!r}).open("a") as log:
        log.write("made\\n")
    plant(folder)
    time.sleep({sleep})
    return {{}}

estimate = Estimate(allocated=20_000_000, because="a test")
store = SnapshotStore(Path({store!r}), bytes_max=10**9)
with store.hold(Request(key="k", make=make, estimate=estimate)) as snapshot:
    snapshot.restore([Path({into!r} + sys.argv[1])])
"""


def start(store, tmp_path, name: str, *, sleep: float) -> shell.Process:
    log, into = str(tmp_path / "made"), str(tmp_path / "into-")
    program = PROGRAM.format(log=log, store=str(store.folder), into=into, sleep=sleep)
    with (tmp_path / f"output-{name}").open("wb") as output:
        return shell.start([sys.executable, "-c", program, name], output=output)


def test_two_processes_at_once_share_one_load(store, tmp_path):
    both = [start(store, tmp_path, name, sleep=0.5) for name in ("one", "two")]

    assert [process.wait(120) for process in both] == [0, 0]
    assert (tmp_path / "made").read_text() == "made\n"
    assert contents(tmp_path / "into-one") == contents(tmp_path / "into-two")


@pytest.mark.parametrize("next_key", ["k", "other"])
def test_what_a_killed_maker_left_is_cleared_away(store, make, tmp_path, next_key):
    killed = start(store, tmp_path, "killed", sleep=600)
    until(lambda: list(store.folder.glob("k.partial-*/data/sparse")))
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait(60)

    with store.hold(request(make, next_key)) as snapshot:
        assert list(store.folder.glob("*.partial-*")) == []
        assert snapshot.warnings == ()
        assert contents(snapshot.data)["sbtest/table.ibd"]


ATTEMPTS_MIN, ATTEMPTS_MAX = 4, 30


def test_a_copy_that_was_killed_is_never_taken_for_a_whole_one(store, make, tmp_path):
    with store.hold(request(make)) as snapshot:
        whole = contents(snapshot.data)
    seen = set()
    # A few, and on a slow machine as many as it takes to come in the middle of one.
    for attempt in range(ATTEMPTS_MAX):
        name = f"killed{attempt}"
        target = tmp_path / f"into-{name}"
        process = start(store, tmp_path, name, sleep=0)
        partial = target.with_name(f"{target.name}.partial")
        until(lambda one=partial, other=target: one.exists() or other.exists(), pause=0.001)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        seen.add(target.exists())
        assert not target.exists() or contents(target) == whole

        with store.hold(request(make)) as snapshot:
            snapshot.restore([target])
            assert snapshot.warnings == ()
        assert contents(target) == whole
        assert not partial.exists()
        if attempt + 1 >= ATTEMPTS_MIN and False in seen:
            break
    assert False in seen, "no copy was caught in the middle"
