"""Contents: the index of a pack, which says what the tree in it has to be.

It is written from a tree that is trusted, and read from a place that is not: no name in it is used
before `checked` has seen all of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict

from runner import trees
from runner.fleet_cache.errors import DamagedPackError
from runner.trees import Entry, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Seconds since 1970 that `os.utime` takes on every file system: until the year 2262.
_MTIME_NS_MAX: Final = 2**63 - 1
_NAME_BYTES_MAX: Final = 255


class Index(BaseModel):
    """Every path of a tree, the hash of every file, and where data lies in files with holes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    entries: tuple[Entry, ...]
    checksums: dict[str, str]
    #: For files with holes: begin and end of each stretch of data. The rest reads as zeros.
    data: dict[str, tuple[tuple[int, int], ...]] = {}

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(entry.size for entry in trees.files(self.entries))


def index_of(root: Path, entries: Sequence[Entry], checksums: dict[str, str]) -> Index:
    """Return the index of a tree that nobody writes to.

    Raises:
        OSError: A file cannot be read.
    """
    data = {}
    for entry in trees.files(entries):
        stretches = _stretches(root / entry.path)
        if stretches != ((0, entry.size),) and entry.size:
            data[entry.path] = stretches
    return Index(entries=tuple(entries), checksums=checksums, data=data)


def _stretches(path: Path) -> tuple[tuple[int, int], ...]:
    """Return where a file has data."""
    found = []
    with trees.opened(path, os.O_RDONLY) as source:
        size = os.fstat(source).st_size
        # Pages that were read make reserved blocks look written.
        os.posix_fadvise(source, 0, 0, os.POSIX_FADV_DONTNEED)
        begin = trees.next_data(source, 0)
        while begin < size:
            end = os.lseek(source, begin, os.SEEK_HOLE)
            found.append((begin, end))
            begin = trees.next_data(source, end)
    return tuple(found)


def checked(index: Index, *, bytes_max: int) -> Index:
    """Return the index once everything in it can be made below one folder, and nowhere else.

    Raises:
        DamagedPackError: It names a path outside, through a link, twice or without its folder; or
            it is of more bytes than `bytes_max`.
    """
    if not index.entries or index.entries[0].path != "." or index.size > bytes_max:
        raise DamagedPackError(f"its index is of no tree of at most {bytes_max} bytes")
    kinds: dict[str, Kind] = {}
    for entry in index.entries:
        fault = _name_fault(entry.path, kinds) or _fault(entry, kinds)
        if fault:
            raise DamagedPackError(f"its index has {entry.path[:200]!r}, which {fault}")
        kinds[entry.path] = entry.kind
    files = {entry.path: entry.size for entry in trees.files(index.entries)}
    if files.keys() != index.checksums.keys() or not index.data.keys() <= files.keys():
        raise DamagedPackError("its index has checksums of other files")
    for path, stretches in index.data.items():
        ends = [0, *(edge for stretch in stretches for edge in stretch), files[path]]
        if ends != sorted(ends):
            raise DamagedPackError(f"its index has data of {path[:200]!r} out of order")
    return index


def _name_fault(path: str, kinds: dict[str, Kind]) -> str:
    """Return what is wrong with a path, after those in `kinds`; empty if nothing is."""
    if path in kinds:
        return "is there twice"
    if path == ".":
        return ""
    parts = path.split("/")
    if "\0" in path or any(part in {"", ".", ".."} for part in parts):
        return "is not a path below the tree"
    if any(len(part.encode(errors="replace")) > _NAME_BYTES_MAX for part in parts):
        return "is too long"
    # The folder was made by us, so nothing leads out through it.
    parent = path.rpartition("/")[0] or "."
    return "" if kinds.get(parent) is Kind.FOLDER else "lies in no folder"


def _fault(entry: Entry, kinds: dict[str, Kind]) -> str:
    """Return what is wrong with an entry itself."""
    if entry.path == "." and entry.kind is not Kind.FOLDER:
        return "is no folder"
    if entry.kind is Kind.HARD_LINK and kinds.get(entry.target) is not Kind.FILE:
        return "is a further name of no file"
    if entry.kind is Kind.SYMBOLIC_LINK and (not entry.target or "\0" in entry.target):
        return "is a link to nothing"
    if entry.size < 0 or (entry.size and entry.kind is not Kind.FILE):
        return "has an impossible size"
    if not 0 <= entry.mtime_ns <= _MTIME_NS_MAX or entry.mode & ~0o777:
        return "has an impossible time or mode"
    return ""
