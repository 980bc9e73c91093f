from __future__ import annotations

import errno
import os
import socket

import pytest

from runner import shell, tree_copies, trees
from runner.errors import DatasetError
from tests.runner.trees_on_disk import (
    TABLE_BYTES,
    contents,
    fill,
    flip_a_bit,
    plant,
    sharing_disk,
    small_disk,
)


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    plant(folder)
    return folder


@pytest.mark.parametrize("threads", [1, 4])
def test_copies_are_the_same_bit_for_bit(tree, tmp_path, threads):
    if os.geteuid() == 0:
        # As files that a server in the sandbox wrote.
        os.chown(tree / "sbtest" / "table.ibd", 64_200, 64_200)
    targets = [tmp_path / "baseline", tmp_path / "candidate"]
    before = contents(tree)

    copied = tree_copies.copy(tree, trees.scan(tree), targets, share=False, threads=threads)

    assert contents(targets[0]) == contents(targets[1]) == before == contents(tree)
    assert copied.shared == 0
    assert copied.size > 2 * TABLE_BYTES


def test_a_file_of_several_chunks_is_copied_whole(tmp_path):
    # Data at the beginning, across a boundary of chunks, and in the last bytes; holes between.
    (tmp_path / "tree").mkdir()
    size = 2 * trees.CHUNK_BYTES + 5
    with (tmp_path / "tree" / "big").open("wb") as file:
        file.truncate(size)
        for offset in (0, trees.CHUNK_BYTES - 2, size - 3):
            os.pwrite(file.fileno(), b"abc", offset)
    entries = trees.scan(tmp_path / "tree")

    tree_copies.copy(tmp_path / "tree", entries, [tmp_path / "copy"], share=False)

    assert trees.checksums(tmp_path / "copy", entries) == trees.checksums(
        tmp_path / "tree", entries
    )
    assert (tmp_path / "copy" / "big").stat().st_size == size
    assert os.pread(os.open(tmp_path / "copy" / "big", os.O_RDONLY), 3, size - 3) == b"abc"
    assert trees.allocated_bytes(tmp_path / "copy") < 1_000_000


def test_holes_stay_holes_and_reserved_blocks_stay_reserved(tree, tmp_path):
    tree_copies.copy(tree, trees.scan(tree), [tmp_path / "copy"], share=False)

    sparse = (tmp_path / "copy" / "sparse").stat()
    assert sparse.st_size > 4_000_000
    assert sparse.st_blocks * 512 < 1_000_000
    assert (tmp_path / "copy" / "#innodb_redo" / "log").stat().st_blocks * 512 >= 8_000_000


def test_between_two_disks_the_copy_goes_through_memory(tree, tmp_path):
    with small_disk(tmp_path / "disk", "64m") as disk:
        assert not tree_copies.can_share(tree / "000007.sst", disk)

        tree_copies.copy(tree, trees.scan(tree), [disk / "copy"], share=True)

        assert contents(disk / "copy") == contents(tree)
        assert (disk / "copy" / "sparse").stat().st_blocks * 512 < 1_000_000


def test_where_the_file_system_can_blocks_are_shared(tmp_path):
    with sharing_disk(tmp_path / "disk") as disk:
        (disk / "tree").mkdir()
        plant(disk / "tree")
        before = contents(disk / "tree")
        assert tree_copies.can_share(disk / "tree" / "000007.sst", disk)

        copied = tree_copies.copy(
            disk / "tree", trees.scan(disk / "tree"), [disk / "one", disk / "two"], share=True
        )
        flip_a_bit(disk / "one" / "sbtest" / "table.ibd")

        # All but the redo log, whose reserved blocks sharing would lose.
        assert copied.size - copied.shared == 2 * 8_000_000
        assert (disk / "one" / "#innodb_redo" / "log").stat().st_blocks * 512 >= 8_000_000
        assert contents(disk / "two") == before == contents(disk / "tree")


def test_a_settled_tree_has_no_pages_in_memory(tree):
    def cached() -> int:
        words = ["fincore", "--bytes", "--noheadings", "--output", "RES"]
        done = shell.run([*words, str(tree / "sbtest" / "table.ibd")], timeout_s=30)
        assert done.ok, done.stderr
        return int(done.stdout)

    (tree / "sbtest" / "table.ibd").read_bytes()
    if cached() == 0:
        pytest.skip("this file system keeps no pages in memory")

    tree_copies.settle([tree])

    if shell.run(["findmnt", "--target", str(tree), "--types", "tmpfs"], timeout_s=30).ok:
        pytest.skip("a file system in memory cannot drop its pages")
    assert cached() == 0


def test_a_full_disk_is_an_error(tree, tmp_path):
    with small_disk(tmp_path / "disk", "4m") as disk:
        fill(disk, leave=1_000_000)
        with pytest.raises(OSError, match="No space left") as caught:
            tree_copies.copy(tree, trees.scan(tree), [disk / "copy"], share=False)

    assert caught.value.errno == errno.ENOSPC


def test_a_file_that_shrinks_meanwhile_is_an_error(tree, tmp_path):
    entries = trees.scan(tree)
    os.truncate(tree / "sbtest" / "table.ibd", 5)

    with pytest.raises(DatasetError, match=r"table\.ibd became shorter"):
        tree_copies.copy(tree, entries, [tmp_path / "copy"], share=False)


def test_a_checksum_sees_every_bit(tree):
    entries = trees.scan(tree)
    before = trees.checksums(tree, entries)

    flip_a_bit(tree / "sbtest" / "table.ibd")
    flip_a_bit(tree / "sparse")

    after = trees.checksums(tree, entries)
    assert {path for path, value in before.items() if after[path] != value} == {
        "sbtest/table.ibd",
        "sparse",
    }
    # A hole has the checksum of the zeros that are read from it.
    assert len({before["sparse"], after["sparse"], before["sbtest/empty.frm"]}) == 3


def test_what_no_snapshot_can_hold_is_refused(tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    with pytest.raises(DatasetError, match="'pipe' is a socket, pipe or device"):
        trees.scan(folder)
    (folder / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        with pytest.raises(DatasetError, match="'s' is a socket"):
            trees.scan(folder)
    (folder / "s").unlink()
    (folder / os.fsdecode(b"\xff")).touch()
    with pytest.raises(DatasetError, match="not UTF-8"):
        trees.scan(folder)


def test_a_tree_deeper_than_pythons_stack_is_listed(tmp_path):
    deepest = tmp_path / "tree"
    deepest.mkdir()
    descriptor = os.open(deepest, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)

    assert len(trees.scan(tmp_path / "tree")) == 1201
    shell.run(["rm", "-rf", str(deepest)], timeout_s=60)


def test_a_link_that_leads_out_is_copied_not_followed(tmp_path):
    # A hostile server could leave one, hoping that we read or write what it points to.
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "ibdata1").symlink_to(secret)

    entries = trees.scan(tmp_path / "tree")
    tree_copies.copy(tmp_path / "tree", entries, [tmp_path / "copy"], share=False)

    assert (tmp_path / "copy" / "ibdata1").readlink() == secret
    assert trees.checksums(tmp_path / "tree", entries) == {}
    with (
        pytest.raises(OSError, match="symbolic link"),
        trees.opened(tmp_path / "tree" / "ibdata1", os.O_RDONLY),
    ):
        pass


def test_a_program_does_not_keep_its_set_user_id_bit(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "program").touch()
    (tmp_path / "tree" / "program").chmod(0o4755)

    tree_copies.copy(
        tmp_path / "tree", trees.scan(tmp_path / "tree"), [tmp_path / "copy"], share=False
    )

    assert (tmp_path / "copy" / "program").stat().st_mode & 0o7777 == 0o755
