"""Leavings: what hostile code left on disk, looked at without being followed, and removed.

Names there are any bytes, trees are deeper than Python's stack, links lead to the host's files,
pipes wait for ever, and folders forbid their owner to look inside. Nothing here opens a file.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import shutil
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner import shell
from runner.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

#: MySQL's sources, the deepest we know, have 14 folders one in another.
DEPTH_MAX: Final = 100
#: The kernel takes 4096 at a time; a folder that cannot be named cannot be looked into.
PATH_BYTES_MAX: Final = 3000
REMOVE_TIMEOUT_S: Final = 600
_BLOCK: Final = 512


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of a disk a folder takes."""

    bytes: int
    entries: int
    #: Whether something lies deeper than was looked.
    too_deep: bool = False


class Survey:
    """What folders take on disk, found out a little at a time: they may hold millions of files."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._entries = itertools.chain.from_iterable(_walk(folder) for folder in folders)
        self._seen: set[tuple[int, int]] = set()
        self._size = Size(bytes=0, entries=0)

    def step(self, seconds: float) -> Size | None:
        """Go on for about so long; return the size once all was seen, holes counting nothing."""
        until = time.monotonic() + seconds
        total, entries, too_deep = self._size.bytes, self._size.entries, self._size.too_deep
        for entry, depth in self._entries:
            entries += 1
            too_deep = too_deep or _is_too_deep(entry, depth)
            total += self._bytes(entry)
            if time.monotonic() > until:
                self._size = Size(bytes=total, entries=entries, too_deep=too_deep)
                return None
        return Size(bytes=total, entries=entries, too_deep=too_deep)

    def _bytes(self, entry: os.DirEntry[str]) -> int:
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError:
            return 0
        if facts.st_nlink > 1 and not stat.S_ISDIR(facts.st_mode):
            # A further name of a file takes no room.
            key = facts.st_dev, facts.st_ino
            if key in self._seen:
                return 0
            self._seen.add(key)
        return facts.st_blocks * _BLOCK


def size(*folders: Path) -> Size:
    """Return what folders take on disk together."""
    found = Survey(folders).step(math.inf)
    assert found is not None, "it was given for ever"
    return found


def _is_too_deep(entry: os.DirEntry[str], depth: int) -> bool:
    return depth >= DEPTH_MAX or len(os.fsencode(entry.path)) > PATH_BYTES_MAX


def _walk(folder: Path) -> Iterator[tuple[os.DirEntry[str], int]]:
    """Give every entry below `folder` and its depth, without recursion."""
    waiting: list[tuple[str, int]] = [(str(folder), 1)]
    while waiting:
        path, depth = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                yield entry, depth
                if not _is_too_deep(entry, depth) and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))


def inspect(prefix: Path, *, inside: str) -> None:
    """Take the rights out of an install prefix that it must not have, and refuse what is no file.

    Args:
        prefix: The folder on the host; no code of the sandbox may run any more.
        inside: Where it was inside the sandbox.

    Raises:
        BuildError: There is something that cannot be part of an artifact.
    """
    for entry, depth in _walk(prefix):
        fault = _fault(entry, depth, prefix, inside)
        if fault:
            name = os.path.relpath(entry.path, prefix).encode(errors="backslashreplace").decode()
            raise BuildError("install", f"{shell.readable(name)[:200]} {fault}")
        facts = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(facts.st_mode):
            continue
        mode = stat.S_IMODE(facts.st_mode)
        # Rights for the owner, so that it can be read and removed; none to become somebody else.
        wanted = (mode | (0o700 if stat.S_ISDIR(facts.st_mode) else 0o400)) & 0o777
        if mode != wanted:
            os.chmod(entry.path, wanted)  # noqa: PTH101  an entry, not a Path


def _fault(entry: os.DirEntry[str], depth: int, prefix: Path, inside: str) -> str:
    if _is_too_deep(entry, depth):
        return f"lies too deep; an artifact may have {DEPTH_MAX} folders one in another"
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8; install it under another"
    mode = entry.stat(follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        return _link_fault(entry, prefix, inside)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return "is a pipe, socket or device; install only files, folders and links"
    return ""


def _link_fault(entry: os.DirEntry[str], prefix: Path, inside: str) -> str:
    """Say what is wrong with a link that would lead the host out of the artifact."""
    target = os.readlink(entry.path)  # noqa: PTH115  an entry, not a Path
    folder = os.path.join(inside, os.path.relpath(os.path.dirname(entry.path), prefix))  # noqa: PTH118,PTH120  as text, followed nowhere
    reached = os.path.normpath(os.path.join(folder, target))  # noqa: PTH118  as text, followed nowhere
    # Behind another link ".." is not what it looks like, so it may only stand at the beginning.
    winding = ".." in target.lstrip("./").split("/")
    stays = any(reached == root or reached.startswith(f"{root}/") for root in (inside, "/usr"))
    if stays and not winding:
        return ""
    return "is a link that leads out of the artifact; only /usr is there when it runs"


def remove(folder: Path) -> None:
    """Remove a folder whatever is in it; what cannot be removed stays, and is tried again later."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if not os.path.lexists(folder):
        return
    # Too deep for Python, or folders that do not let their own owner in.
    shell.run(["chmod", "-R", "u+rwX", "--", str(folder)], timeout_s=REMOVE_TIMEOUT_S)
    shell.run(
        ["rm", "--recursive", "--force", "--one-file-system", "--", str(folder)],
        timeout_s=REMOVE_TIMEOUT_S,
    )
