"""Trees that tests make, look at and damage, and small disks to put them on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner import shell

#: More than one chunk of a copy would be slow to make; the odd tail is not a multiple of anything.
TABLE_BYTES = 3_000_001


def plant(folder: Path, seed: int = 1) -> None:
    """Fill a folder with every kind of file that a data directory may hold."""
    content = random.Random(seed).randbytes(TABLE_BYTES)
    (folder / "sbtest").mkdir(mode=0o750)
    (folder / "#innodb_redo").mkdir()
    (folder / "sbtest" / "table.ibd").write_bytes(content)
    (folder / "sbtest" / "empty.frm").touch()
    (folder / "000007.sst").write_bytes(content[:70_000])
    (folder / "checkpoint.sst").hardlink_to(folder / "000007.sst")
    (folder / "CURRENT").symlink_to("000007.sst")
    with (folder / "sparse").open("wb") as file:
        file.seek(4_000_000)
        file.write(b"after a hole")
    with (folder / "#innodb_redo" / "log").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 8_000_000)
        file.write(b"before nothing")
    (folder / "sbtest" / "table.ibd").chmod(0o640)
    for number, path in enumerate([*sorted(folder.rglob("*"), reverse=True), folder]):
        os.utime(path, ns=(0, 10**18 + number), follow_symlinks=False)


def contents(folder: Path) -> dict[str, tuple]:
    """Return everything about a tree that a server could notice."""
    first_names: dict[int, str] = {}
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        facts = path.lstat()
        if path.is_symlink():
            what = f"-> {path.readlink()}"
        elif path.is_dir():
            what = "folder"
        else:
            what = hashlib.sha256(path.read_bytes()).hexdigest()
        name = str(path.relative_to(folder))
        same = first_names.setdefault(facts.st_ino, name)
        times = (facts.st_mtime_ns, facts.st_mode, facts.st_uid, facts.st_gid)
        found[name] = (what, same, *times)
    return found


def flip_a_bit(path: Path, *, quietly: bool = True) -> None:
    """Change one bit in the middle; quietly is as a disk does it, with no trace in the times."""
    facts = path.stat()
    with path.open("r+b") as file:
        file.seek(facts.st_size // 2)
        (byte,) = file.read(1)
        file.seek(facts.st_size // 2)
        file.write(bytes([byte ^ 1]))
    if quietly:
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def fill(folder: Path, *, leave: int) -> Path:
    """Take all but `leave` bytes of the disk of `folder` with one file, whoever else writes."""
    path = folder / "ballast"
    with path.open("ab") as file:
        while (more := shutil.disk_usage(folder).free - leave) > 0:
            # Somebody else may take what was free a moment ago; a step that fails is given back.
            with contextlib.suppress(OSError):
                size = os.fstat(file.fileno()).st_size
                os.posix_fallocate(file.fileno(), size, min(more, 4_000_000))
    return path


@contextmanager
def small_disk(folder: Path, size: str):
    """Mount a small disk in memory at `folder`; skips the test where we may not."""
    folder.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or not shell.run(words, timeout_s=30).ok:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        assert shell.run(["umount", "--lazy", str(folder)], timeout_s=30).ok


@contextmanager
def sharing_disk(folder: Path):
    """Mount a file system that can share blocks at `folder`; skips the test where there is none."""
    if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
        pytest.skip("a file system that shares blocks needs root and xfsprogs")
    folder.mkdir(parents=True)
    image = folder.with_name("xfs.img")
    with image.open("wb") as file:
        file.truncate(400 * 1024 * 1024)
    made = shell.run(["mkfs.xfs", "-q", "-m", "reflink=1", str(image)], timeout_s=60)
    assert made.ok, made.stderr
    if not shell.run(["mount", "-o", "loop", str(image), str(folder)], timeout_s=30).ok:
        pytest.skip("mounting an image needs a loop device")
    try:
        yield folder
    finally:
        assert shell.run(["umount", str(folder)], timeout_s=30).ok
