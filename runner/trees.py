"""Folder trees: what is in them, and checksums of it.

In comes a folder that nobody writes to; out go facts about its files. Nothing here follows a
symbolic link or opens anything but regular files: hostile code may have written the tree. What the
files mean it must not know.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from runner.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

#: More than one hides the latency of small files; docs/datasets.md has what 1, 2, 4 and 8 gave.
THREADS: Final = 4
#: A big file is read and copied in pieces of this size, so that one table keeps all threads busy.
CHUNK_BYTES: Final = 64 * 1024 * 1024
_BLOCK_BYTES: Final = 1024 * 1024
#: The largest LSM trees have some 10^5 files; more means that something runs away.
ENTRIES_MAX: Final = 1_000_000
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Kind(StrEnum):
    """What a path is."""

    FOLDER = "folder"
    FILE = "file"
    SYMBOLIC_LINK = "symbolic-link"
    #: A further name of a file that was listed before.
    HARD_LINK = "hard-link"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One path of a tree."""

    path: str
    kind: Kind
    size: int
    #: Bytes reserved on the device: less than `size` for sparse files, none for further names.
    allocated: int
    mtime_ns: int
    mode: int
    uid: int
    gid: int
    #: Of a symbolic link: its text. Of a hard link: the path under which the file was listed.
    target: str = ""


def scan(root: Path) -> tuple[Entry, ...]:
    """Return every path below `root`, sorted; the first entry is `root` itself, with path ".".

    Raises:
        DatasetError: There is something that no snapshot can hold: a socket, a pipe, a device, a
            name that is not UTF-8, or more paths than `ENTRIES_MAX`.
        OSError: It cannot be listed, for instance because it is too deep to be named.
    """
    paths, unseen = [], ["."]
    # Not os.walk, which calls itself: a hostile tree may be deeper than Python's stack.
    while unseen:
        parent = unseen.pop()
        with os.scandir(root / parent) as found:
            for one in found:
                path = os.path.normpath(f"{parent}/{one.name}")
                paths.append(path)
                if one.is_dir(follow_symlinks=False):
                    unseen.append(path)
        if len(paths) > ENTRIES_MAX:
            raise DatasetError("dataset", f"a dataset of more than {ENTRIES_MAX} files")
    first_names: dict[tuple[int, int], str] = {}
    # The root before names like "#innodb_redo", which sort before a full stop.
    return tuple(_entry(root, path, first_names) for path in (".", *sorted(paths)))


def _entry(root: Path, path: str, first_names: dict[tuple[int, int], str]) -> Entry:
    facts = (root / path).lstat()
    identity = (facts.st_dev, facts.st_ino)
    allocated, target = 0, ""
    if stat.S_ISDIR(facts.st_mode):
        kind = Kind.FOLDER
    elif stat.S_ISLNK(facts.st_mode):
        kind, target = Kind.SYMBOLIC_LINK, str((root / path).readlink())
    elif not stat.S_ISREG(facts.st_mode):
        raise DatasetError("dataset", f"{path!r} is a socket, pipe or device: not for a snapshot")
    elif identity in first_names:
        kind, target = Kind.HARD_LINK, first_names[identity]
    else:
        kind, allocated = Kind.FILE, facts.st_blocks * 512
        if facts.st_nlink > 1:
            first_names[identity] = path
    try:
        f"{path}{target}".encode()
    except UnicodeEncodeError:
        raise DatasetError("dataset", f"the file name {path!r} is not UTF-8") from None
    return Entry(
        path=path,
        kind=kind,
        size=facts.st_size if kind is Kind.FILE else 0,
        allocated=allocated,
        mtime_ns=facts.st_mtime_ns,
        # Without the set-user-id bits: a copy of a hostile program must not gain anything.
        mode=stat.S_IMODE(facts.st_mode) & 0o777,
        uid=facts.st_uid,
        gid=facts.st_gid,
        target=target,
    )


def files(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Give the regular files, each under its first name."""
    return (entry for entry in entries if entry.kind is Kind.FILE)


def allocated_bytes(root: Path) -> int:
    """Return what the files of a tree take on the device; it may change meanwhile.

    Without recursion, unlike `os.walk`: a hostile server may leave folders deeper than a stack.
    """
    total, todo = 0, [os.fspath(root)]
    while todo:
        # What has too long a path cannot be looked into.
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def checksums(root: Path, entries: Sequence[Entry]) -> dict[str, str]:
    """Return a checksum of the content of every regular file.

    SHA-256 over the SHA-256 of each chunk: in chunks so that one big file can be read by several
    threads, and SHA-256 because it is the fastest of the standard library's on processors that
    have it in hardware (0.97 GiB/s and thread where BLAKE2b gave 0.77; docs/datasets.md).
    """
    pieces = [(entry.path, offset) for entry in files(entries) for offset in offsets(entry.size)]
    digests = in_parallel(
        lambda piece: _chunk_digest(root / piece[0], piece[1]), pieces, threads=THREADS
    )
    totals = {entry.path: hashlib.sha256() for entry in files(entries)}
    for (path, _), digest in zip(pieces, digests, strict=True):
        totals[path].update(digest)
    return {path: total.hexdigest() for path, total in totals.items()}


def offsets(size: int) -> range:
    """Return where the chunks of a file begin."""
    return range(0, size, CHUNK_BYTES)


def _chunk_digest(path: Path, offset: int) -> bytes:
    with opened(path, os.O_RDONLY) as source:
        length = min(CHUNK_BYTES, os.fstat(source).st_size - offset)
        # Holes are not read: a redo log may be a hundred gigabytes of nothing.
        if next_data(source, offset) >= offset + length:
            return _zeros_digest(length)
        total = hashlib.sha256()
        for position in range(offset, offset + length, _BLOCK_BYTES):
            size = min(_BLOCK_BYTES, offset + length - position)
            total.update(os.pread(source, size, position))
    return total.digest()


def next_data(source: int, offset: int) -> int:
    """Return where the next data begins; the end of the file if only a hole follows."""
    try:
        return os.lseek(source, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return os.fstat(source).st_size
        raise


@functools.lru_cache(maxsize=64)
def _zeros_digest(length: int) -> bytes:
    return hashlib.sha256(bytes(max(0, length))).digest()


@contextlib.contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Give a descriptor of the file at `path`, never of what a link there points to."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def in_parallel(
    work: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int
) -> list[_Result]:
    """Return `work` of every item; the first error ends it and drops what has not begun."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="forkwatch-trees")
    try:
        return list(pool.map(work, items))
    finally:
        pool.shutdown(cancel_futures=True)
