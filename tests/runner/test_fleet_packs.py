from __future__ import annotations

import io
import os
import random
import shutil
import tarfile
from dataclasses import replace

import pytest

from runner import trees
from runner.fleet_cache import packs
from runner.fleet_cache.contents import Index, checked, index_of
from runner.fleet_cache.errors import DamagedPackError
from runner.fleet_cache.notes import PART_BYTES
from runner.trees import Kind
from tests.runner.trees_on_disk import contents, plant

WIDE = 10**9


@pytest.fixture
def tree(tmp_path):
    """A tree whose tar has more than one part."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "big.ibd").write_bytes(random.Random(2).randbytes(PART_BYTES + 12_345))
    plant(folder)
    return folder


@pytest.fixture
def small(tmp_path):
    folder = tmp_path / "small"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "mysqld").write_bytes(b"a server")
    return folder


@pytest.fixture
def into(tmp_path):
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def described(folder):
    entries = trees.scan(folder)
    return index_of(folder, entries, trees.checksums(folder, entries))


def stretches_of(folder, index=None):
    found: list[bytes] = []
    packs.pack(folder, index or described(folder), found.append)
    return found


def archive_of(index, members):
    """Return a tar that somebody else has made, with members as (name, content)."""
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w") as archive:
        for name, content in ((packs.INDEX, index.model_dump_json().encode()), *members):
            member = tarfile.TarInfo(name)
            member.size = len(content or b"")
            if content is None:
                member.type = tarfile.DIRTYPE
            archive.addfile(member, io.BytesIO(content or b""))
    return [text.getvalue()]


def test_a_tree_comes_back_bit_for_bit(tree, into):
    stretches = stretches_of(tree)

    packs.unpack(iter(stretches), into, bytes_max=WIDE)

    assert len(stretches) > 1
    assert all(len(one) <= PART_BYTES for one in stretches)
    assert contents(into) == contents(tree)


def test_holes_stay_holes_and_reserved_blocks_stay_reserved(tree, into):
    packs.unpack(iter(stretches_of(tree)), into, bytes_max=WIDE)

    sparse, log = (into / "sparse").stat(), (into / "#innodb_redo" / "log").stat()
    assert sparse.st_blocks * 512 < sparse.st_size / 2
    assert log.st_blocks * 512 >= log.st_size
    # The log's unwritten blocks are no data yet, here as there.
    assert described(into).data == described(tree).data


def test_parts_are_a_tar_for_other_programs(tree):
    with tarfile.open(fileobj=io.BytesIO(b"".join(stretches_of(tree)))) as archive:
        names = archive.getnames()

    assert names[:2] == ["index.json", "tree"]
    assert "tree/sbtest/table.ibd" in names


def test_a_part_is_what_its_name_says():
    raw = b"one thing after another" * 1000
    part, packed = packs.compressed(raw)

    assert packs.decompressed(part, packed) == raw
    assert part.size == len(packed) < part.unpacked == len(raw)
    flipped = bytes([packed[0] ^ 1, *packed[1:]])
    for wrong in (packed[:-1], packed + b"x", flipped, b"", packs.compressed(raw + b"x")[1]):
        with pytest.raises(DamagedPackError):
            packs.decompressed(part, wrong)


@pytest.mark.parametrize("claimed", [1, 22_999, 23_001, PART_BYTES])
def test_a_part_that_lies_about_its_size_is_damaged(claimed):
    part, packed = packs.compressed(b"one thing after another" * 1000)

    with pytest.raises(DamagedPackError, match="cannot be unpacked"):
        packs.decompressed(part.model_copy(update={"unpacked": claimed}), packed)


def changed(index, which, /, **facts):
    entries = [replace(one, **facts) if one.path == which else one for one in index.entries]
    checksums = dict(index.checksums)
    if "path" in facts and which in checksums:
        checksums[facts["path"]] = checksums.pop(which)
    return Index(entries=tuple(entries), checksums=checksums, data=index.data)


@pytest.mark.parametrize(
    "facts",
    [
        {"path": "../mysqld"},
        {"path": "/etc/cron.d/mysqld"},
        {"path": "bin/../../mysqld"},
        {"path": "bin//mysqld"},
        {"path": "bin/./mysqld"},
        {"path": "bin/my\0sqld"},
        {"path": ""},
        {"path": "."},
        {"path": "bin"},
        {"path": "nowhere/mysqld"},
        {"path": f"bin/{'x' * 300}"},
        {"kind": Kind.HARD_LINK, "target": "../../etc/passwd", "size": 0},
        {"kind": Kind.HARD_LINK, "target": "bin", "size": 0},
        {"kind": Kind.SYMBOLIC_LINK, "target": "", "size": 0},
        {"size": -1},
        {"size": WIDE + 1},
        {"mode": 0o4755},
        {"mtime_ns": -1},
        {"mtime_ns": 2**80},
    ],
    ids=lambda facts: str(facts)[:40],
)
def test_an_index_that_leads_out_is_refused(small, into, facts):
    index = changed(described(small), "bin/mysqld", **facts)

    with pytest.raises(DamagedPackError, match="its index"):
        packs.unpack(iter(stretches_of_index(index)), into, bytes_max=WIDE)

    assert list(into.iterdir()) == []


def stretches_of_index(index):
    return archive_of(index, [("tree", None), ("tree/bin", None), ("tree/bin/mysqld", b"a server")])


def test_nothing_is_made_through_a_link(small, into, tmp_path):
    # A link in the place of the folder that a file is said to lie in.
    index = changed(described(small), "bin", kind=Kind.SYMBOLIC_LINK, target=str(tmp_path))

    with pytest.raises(DamagedPackError, match="lies in no folder"):
        packs.unpack(iter(stretches_of_index(index)), into, bytes_max=WIDE)

    assert not (tmp_path / "mysqld").exists()


def test_an_index_that_fits_is_taken(small, into):
    # Or the refusals above would prove nothing.
    packs.unpack(iter(stretches_of_index(described(small))), into, bytes_max=WIDE)

    assert contents(into) == contents(small)


def test_data_out_of_order_is_refused(small):
    index = described(small)
    for stretches in (((4, 2),), ((0, 9),), ((4, 6), (0, 2)), ((-1, 2),)):
        with pytest.raises(DamagedPackError, match="out of order"):
            checked(index.model_copy(update={"data": {"bin/mysqld": stretches}}), bytes_max=WIDE)


def test_a_pack_that_holds_more_than_it_says_is_refused(small, into):
    index = described(small)
    members = [("tree", None), ("tree/bin", None), ("tree/bin/mysqld", b"a server")]

    for wrong in (
        [*members, ("tree/bin/more", b"more")],
        [*members[:-1], ("tree/bin/mysqld", b"a server that is longer")],
        [*members[:-1], ("tree/bin/other", b"a server")],
        [*members[:-1], ("../../outside", b"a server")],
        members[:-1],
        [("tree", None), ("tree/bin", b""), members[-1]],
    ):
        with pytest.raises(DamagedPackError):
            packs.unpack(iter(archive_of(index, wrong)), into, bytes_max=WIDE)
        assert {path.name for path in into.parent.iterdir()} == {"small", "into"}
        shutil.rmtree(into)
        into.mkdir()


def test_another_content_of_the_same_length_is_noticed(small, into):
    members = [("tree", None), ("tree/bin", None), ("tree/bin/mysqld", b"A server")]

    with pytest.raises(DamagedPackError, match="not what its index says"):
        packs.unpack(iter(archive_of(described(small), members)), into, bytes_max=WIDE)


def test_what_ends_too_early_is_noticed(small, into):
    (whole,) = stretches_of(small)

    server = whole.index(b"a server")

    for length in (0, 100, 700, server - 300, server + 3):
        with pytest.raises(DamagedPackError):
            packs.unpack(iter([whole[:length]]), into, bytes_max=WIDE)
        shutil.rmtree(into)
        into.mkdir()


def test_noise_is_no_pack(into):
    with pytest.raises(DamagedPackError):
        packs.unpack(iter([random.Random(3).randbytes(100_000)]), into, bytes_max=WIDE)


def test_nothing_of_a_tree_that_is_too_large_is_made(tree, into):
    with pytest.raises(DamagedPackError, match="at most 1000 bytes"):
        packs.unpack(iter(stretches_of(tree)), into, bytes_max=1000)

    assert list(into.iterdir()) == []


def test_a_file_that_became_shorter_is_an_error_and_no_pack(small):
    index = described(small)
    os.truncate(small / "bin" / "mysqld", 3)

    with pytest.raises(OSError, match="end of data"):
        stretches_of(small, index)
