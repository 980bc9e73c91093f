"""Copies of folder trees, bit for bit, and what has to be waited for before they are used.

In comes a tree as `trees.scan` lists it; out come copies that share blocks with it where the file
system can, and are copied by several threads where it cannot. What the files mean it must not know.
"""

from __future__ import annotations

import errno
import fcntl
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner import shell, trees
from runner.errors import DatasetError
from runner.trees import CHUNK_BYTES, THREADS, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runner.trees import Entry

_BLOCK_BYTES: Final = 1024 * 1024
SYNC_TIMEOUT_S: Final = 1800
#: `FICLONE` of linux/fs.h: make one file share all blocks of another.
_FICLONE: Final = 0x4004_9409
#: How file systems say that they cannot share blocks, or not between these two files.
_CANNOT_SHARE: Final = frozenset(
    {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM}
)


@dataclass(frozen=True, kw_only=True)
class Copied:
    """How a tree was copied."""

    size: int
    #: Bytes of `size` in files whose blocks the copies share with the original.
    shared: int


def can_share(sample: Path, folder: Path) -> bool:
    """Whether a file in `folder` can share blocks with `sample`; tries it.

    Raises:
        OSError: No file can be made in `folder`.
    """
    probe = folder / f".forkwatch-probe-{os.getpid()}"
    try:
        with (
            trees.opened(sample, os.O_RDONLY) as source,
            trees.opened(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as target,
        ):
            return _clone(source, target)
    finally:
        probe.unlink(missing_ok=True)


def copy(
    root: Path,
    entries: Sequence[Entry],
    targets: Sequence[Path],
    *,
    share: bool,
    threads: int = THREADS,
) -> Copied:
    """Copy a tree to every one of `targets`, none of which may exist.

    Content, holes, reserved blocks, hard links, modes, owners (for root) and times are kept;
    extended attributes are not, because no engine keeps any. Nothing is waited for to reach the
    device: `settle` does that.

    Raises:
        OSError: The disk is full or broken.
        DatasetError: A file is shorter than its entry says.
    """
    for target in targets:
        for entry in entries:
            if entry.kind is Kind.FOLDER:
                (target / entry.path).mkdir(mode=0o700)
    pairs = [(entry, target) for entry in trees.files(entries) for target in targets]
    shared = trees.in_parallel(
        lambda pair: _begin_file(root, pair[0], pair[1], share=share), pairs, threads=threads
    )
    pieces = [
        (entry.path, target, offset)
        for (entry, target), is_shared in zip(pairs, shared, strict=True)
        if not is_shared
        for offset in trees.offsets(entry.size)
    ]
    trees.in_parallel(
        lambda piece: _copy_chunk(root / piece[0], piece[1] / piece[0], piece[2]),
        pieces,
        threads=threads,
    )
    for target in targets:
        _finish(target, entries)
    return Copied(
        size=sum(entry.size for entry, _ in pairs),
        shared=sum(pair[0].size for pair, done in zip(pairs, shared, strict=True) if done),
    )


def _begin_file(root: Path, entry: Entry, target: Path, *, share: bool) -> bool:
    """Make the file with its size; whether it already has its content, by sharing blocks."""
    with (
        trees.opened(root / entry.path, os.O_RDONLY) as source,
        trees.opened(target / entry.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as copied,
    ):
        if os.fstat(source).st_size != entry.size:
            raise _changed(entry.path)
        if share:
            # Cached pages make blocks look written; who shares has no other use for them.
            os.posix_fadvise(source, 0, 0, os.POSIX_FADV_DONTNEED)
        # Blocks reserved and not yet written, as of a fresh redo log. Without them the server would
        # have to find blocks while it is measured, and sharing loses them (seen on XFS).
        reserved = entry.allocated >= entry.size and _has_holes(source, entry.size)
        if share and not reserved and _clone(source, copied):
            return True
        os.ftruncate(copied, entry.size)
        if reserved:
            os.posix_fallocate(copied, 0, entry.size)
    return False


def _has_holes(source: int, size: int) -> bool:
    # An empty file has no position to ask about.
    return size > 0 and os.lseek(source, 0, os.SEEK_HOLE) < size


def _clone(source: int, target: int) -> bool:
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in _CANNOT_SHARE:
            return False
        raise
    return True


def _copy_chunk(original: Path, copied: Path, offset: int) -> None:
    """Copy what is not a hole between `offset` and the end of its chunk."""
    with trees.opened(original, os.O_RDONLY) as source, trees.opened(copied, os.O_WRONLY) as target:
        end = min(offset + CHUNK_BYTES, os.fstat(target).st_size)
        position = trees.next_data(source, offset)
        while position < end:
            hole = min(end, os.lseek(source, position, os.SEEK_HOLE))
            if hole <= position:
                raise _changed(str(original))
            _copy_bytes(source, target, position, hole)
            position = trees.next_data(source, hole)


def _copy_bytes(source: int, target: int, position: int, end: int) -> None:
    in_kernel = True
    while position < end:
        try:
            done = (
                os.copy_file_range(source, target, end - position, position, position)
                if in_kernel
                else os.pwrite(
                    target, os.pread(source, min(_BLOCK_BYTES, end - position), position), position
                )
            )
        except OSError as error:
            if not in_kernel or error.errno not in _CANNOT_SHARE:
                raise
            # Between two file systems, or where the file system cannot: through our own memory.
            in_kernel = False
            continue
        if done == 0:
            raise _changed("a file")
        position += done


def _changed(name: str) -> DatasetError:
    return DatasetError("dataset", f"{name} became shorter while it was copied")


def _finish(target: Path, entries: Sequence[Entry]) -> None:
    """Make the links, then give everything its facts."""
    for entry in entries:
        if entry.kind is Kind.SYMBOLIC_LINK:
            (target / entry.path).symlink_to(entry.target)
        elif entry.kind is Kind.HARD_LINK:
            (target / entry.path).hardlink_to(target / entry.target)
    give_facts(target, entries)


def give_facts(target: Path, entries: Sequence[Entry]) -> None:
    """Give every path the owner (if we are root), mode and time of its entry."""
    as_root = os.geteuid() == 0
    # A folder after all that is in it, or its time would change again.
    for entry in reversed(entries):
        path = target / entry.path
        if as_root:
            os.chown(path, entry.uid, entry.gid, follow_symlinks=False)
        if entry.kind is not Kind.SYMBOLIC_LINK:
            path.chmod(entry.mode)
        os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)


def settle(roots: Sequence[Path]) -> None:
    """Wait until everything on the trees' file systems is on the device; forget its cached pages.

    Written pages would otherwise go to the device while a server is measured. Pages of the trees
    are dropped rather than kept, because shared blocks have none in the cache to begin with, a big
    tree would keep only some, and a server that reads around the cache would pay for keeping it in
    step: every start begins equally cold, and warming up is the client's part.

    Raises:
        DatasetError: The device failed, or took longer than `SYNC_TIMEOUT_S`.
    """
    for root in roots:
        # The whole file system in one go: hundreds of fsync would each wait for the journal, and
        # what a build left unwritten would disturb the slices as well.
        done = shell.run(["sync", "--file-system", str(root)], timeout_s=SYNC_TIMEOUT_S)
        if not done.ok:
            raise DatasetError("dataset", f"{root} did not reach the device", done.stderr)
        for entry in trees.files(trees.scan(root)):
            with trees.opened(root / entry.path, os.O_RDONLY) as file:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
