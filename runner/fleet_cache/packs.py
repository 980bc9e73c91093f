"""Packs: a folder tree as a tar in compressed parts, and back, bit for bit.

A tree and its index go in and parts come out; the other way, parts go in and the tree comes out
with every byte checked. The index is the tar's first member, and names of files come from it alone:
nothing is extracted under a name that only the tar has. Where parts are kept is not known here.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Final

import pyarrow as pa
from pydantic import ValidationError

from runner import tree_copies, trees
from runner.fleet_cache.contents import Index, checked
from runner.fleet_cache.errors import DamagedPackError
from runner.fleet_cache.notes import PART_BYTES, Part
from runner.trees import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from runner.trees import Entry

#: An index has some 300 bytes a file: this is a tree of 200 000 files.
INDEX_BYTES_MAX: Final = 64 * 1024 * 1024
INDEX: Final = "index.json"
_TREE: Final = "tree"
_TYPES: Final = {
    Kind.FOLDER: tarfile.DIRTYPE,
    Kind.FILE: tarfile.REGTYPE,
    Kind.SYMBOLIC_LINK: tarfile.SYMTYPE,
    Kind.HARD_LINK: tarfile.LNKTYPE,
}
#: Of tarfile's own buffer, which it copies each time that it grows.
_BUFFER_BYTES: Final = 64 * 1024
_BLOCK_BYTES: Final = 1024 * 1024


def compressed(raw: bytes) -> tuple[Part, bytes]:
    """Return a stretch of the tar as a part, with its content.

    Each is a whole zstd frame, so the parts one after another are one file for `zstd` and `tar`.
    """
    packed: bytes = pa.Codec("zstd").compress(raw, asbytes=True)
    named = hashlib.sha256(packed).hexdigest()
    return Part(sha256=named, size=len(packed), unpacked=len(raw)), packed


def decompressed(part: Part, packed: bytes) -> bytes:
    """Return what a part held when it was made.

    Raises:
        DamagedPackError: The content is not what it is named by.
    """
    if len(packed) != part.size:
        raise DamagedPackError(f"a part has {len(packed)} bytes, and had {part.size}")
    if hashlib.sha256(packed).hexdigest() != part.sha256:
        raise DamagedPackError("a part is not what its name says")
    try:
        # Never more than was said, whatever the frame says of itself.
        raw: bytes = pa.Codec("zstd").decompress(packed, part.unpacked, asbytes=True)
    except (OSError, ValueError) as error:
        raise DamagedPackError(f"a part cannot be unpacked: {error}") from error
    return raw


def pack(root: Path, index: Index, sink: Callable[[bytes], None]) -> None:
    """Give a tree to `sink`, in stretches of the tar of `PART_BYTES` at the most.

    Raises:
        OSError: A file cannot be read, or became shorter.
        Whatever `sink` raises.
    """
    text = index.model_dump_json().encode()
    stretches = _Stretches(sink)
    with tarfile.open(
        fileobj=stretches, mode="w|", bufsize=_BUFFER_BYTES, format=tarfile.PAX_FORMAT
    ) as archive:
        first = tarfile.TarInfo(INDEX)
        first.size = len(text)
        archive.addfile(first, io.BytesIO(text))
        for entry in index.entries:
            _add(archive, root, entry)
    stretches.finish()


def _add(archive: tarfile.TarFile, root: Path, entry: Entry) -> None:
    member = tarfile.TarInfo(_member_name(entry.path))
    member.type, member.size = _TYPES[entry.kind], entry.size
    member.mode, member.mtime = entry.mode, entry.mtime_ns // 10**9
    if entry.kind is Kind.SYMBOLIC_LINK:
        member.linkname = entry.target
    elif entry.kind is Kind.HARD_LINK:
        member.linkname = _member_name(entry.target)
    if entry.kind is not Kind.FILE:
        archive.addfile(member)
        return
    with (
        trees.opened(root / entry.path, os.O_RDONLY) as descriptor,
        open(descriptor, "rb", closefd=False) as source,
    ):
        archive.addfile(member, source)


def _member_name(path: str) -> str:
    return _TREE if path == "." else f"{_TREE}/{path}"


class _Stretches(io.BufferedIOBase):
    """A file to write to, which hands over what it got in stretches of one size."""

    def __init__(self, sink: Callable[[bytes], None]) -> None:
        self._sink = sink
        self._kept = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, buffer: Any, /) -> int:
        self._kept += buffer
        while len(self._kept) >= PART_BYTES:
            stretch = bytes(self._kept[:PART_BYTES])
            # Before it is handed over: tarfile writes once more when that fails.
            del self._kept[:PART_BYTES]
            self._sink(stretch)
        return len(buffer)

    def finish(self) -> None:
        """Hand over the rest."""
        if self._kept:
            self._sink(bytes(self._kept))
            self._kept.clear()


def unpack(stretches: Iterator[bytes], into: Path, *, bytes_max: int) -> Index:
    """Make the tree of a pack in the empty folder `into`, every byte checked; return its index.

    Owners are whoever runs this; the owner's set-user-id bits and the like were never in it.

    Raises:
        DamagedPackError: It is not a pack, or not what its index says; something may be in `into`.
        OSError: The disk is full or broken.
        DatasetError: The device failed.
        Whatever the stretches raise.
    """
    try:
        with tarfile.open(fileobj=_Joined(stretches), mode="r|", bufsize=_BUFFER_BYTES) as archive:
            index = checked(_read_index(archive), bytes_max=bytes_max)
            for entry in index.entries:
                _make(archive, entry, index, into)
            _must_end(archive)
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise DamagedPackError(f"it cannot be unpacked: {error}") from error
    # What is read back from the device counts, not what is in memory.
    tree_copies.settle([into])
    if trees.checksums(into, index.entries) != index.checksums:
        raise DamagedPackError("a file in it is not what its index says")
    uid, gid = os.geteuid(), os.getegid()
    ours = [replace(entry, uid=uid, gid=gid) for entry in index.entries]
    tree_copies.give_facts(into, ours)
    return index


class _Joined(io.BufferedIOBase):
    """A file to read from, made of stretches one after another."""

    def __init__(self, stretches: Iterator[bytes]) -> None:
        self._stretches = stretches
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if not self._left:
            self._left = memoryview(next(self._stretches, b""))
        wanted = len(self._left) if size is None or size < 0 else size
        taken, self._left = bytes(self._left[:wanted]), self._left[wanted:]
        return taken


def _read_index(archive: tarfile.TarFile) -> Index:
    first = archive.next()
    if first is None or first.name != INDEX or not 0 < first.size <= INDEX_BYTES_MAX:
        raise DamagedPackError("it does not begin with an index")
    try:
        return Index.model_validate_json(_content(archive, first).read(first.size))
    except ValidationError as error:
        raise DamagedPackError(f"its index is not readable: {error.error_count()} faults") from None


def _must_end(archive: tarfile.TarFile) -> None:
    if archive.next() is not None:
        raise DamagedPackError("it holds more than its index says")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    found = archive.extractfile(member) if member.isreg() else None
    if found is None:
        raise DamagedPackError("it has something else where a file should be")
    return found


def _make(archive: tarfile.TarFile, entry: Entry, index: Index, into: Path) -> None:
    """Make one path of the tree; the next member has to be its own."""
    member = archive.next()
    if (
        member is None
        or member.name != _member_name(entry.path)
        or member.type != _TYPES[entry.kind]
        or member.size != entry.size
    ):
        raise DamagedPackError("it is not in the order of its index")
    path = into / entry.path
    if entry.kind is Kind.SYMBOLIC_LINK:
        path.symlink_to(entry.target)
    elif entry.kind is Kind.HARD_LINK:
        path.hardlink_to(into / entry.target)
    elif entry.kind is Kind.FILE:
        stretches = index.data.get(entry.path, ((0, entry.size),))
        _write(_content(archive, member), path, entry, stretches)
    elif entry.path != ".":
        path.mkdir(mode=0o700)


def _write(
    source: IO[bytes], path: Path, entry: Entry, stretches: tuple[tuple[int, int], ...]
) -> None:
    """Write a file: data where it was, holes elsewhere, blocks reserved where they were."""
    with trees.opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as target:
        os.ftruncate(target, entry.size)
        whole = stretches == ((0, entry.size),)
        if entry.size and not whole and entry.allocated >= entry.size:
            os.posix_fallocate(target, 0, entry.size)
        position = 0
        for begin, end in stretches:
            _skip(source, begin - position)
            _copy(source, target, begin, end)
            position = end


def _skip(source: IO[bytes], count: int) -> None:
    """Read over a hole: tarfile cannot go forward in a stream otherwise."""
    while count > 0:
        count -= len(_block(source, count))


def _copy(source: IO[bytes], target: int, begin: int, end: int) -> None:
    position = begin
    while position < end:
        view = memoryview(_block(source, end - position))
        while view:
            done = os.pwrite(target, view, position)
            position, view = position + done, view[done:]


def _block(source: IO[bytes], count: int) -> bytes:
    """Return at most so many of the next bytes, and at least one."""
    block = source.read(min(_BLOCK_BYTES, count))
    if not block:
        raise DamagedPackError("it ends too early")
    return block
