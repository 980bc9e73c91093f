"""The cgroup: memory and processes of one sandbox, counted and bounded by the kernel.

Made where cgroup v2 lets us, below the nearest ancestor of our own that already hands its memory
and process controllers down; nothing of the machine's own is changed for it. Where there is none,
the warden measures instead.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.limits import Limits

_PREFIX: Final = "forkwatch-"
_NEEDED: Final = {"memory", "pids"}
#: The kernel needs a moment to let go of processes that have just died.
_REMOVE_TRIES: Final = 100
_REMOVE_PAUSE_S: Final = 0.02
#: Shell words that put themselves into the cgroup $0 and then become the program.
_ENTER: Final = 'echo 0 > "$0"/cgroup.procs && exec "$@"'


class Cgroup:
    """One sandbox's own cgroup."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits

    def enter_words(self) -> list[str]:
        """Return the words that put the program behind them into this cgroup."""
        return ["sh", "-c", _ENTER, str(self._folder)]

    def reason(self) -> str:
        """Return which limit the kernel had to enforce, or an empty text."""
        if _event(self._folder / "memory.events", "oom_kill"):
            return f"it used up its memory{self._limits.memory.advice()}"
        if _event(self._folder / "pids.events", "max"):
            return f"it used up its processes{self._limits.processes.advice()}"
        return ""


@contextmanager
def own(limits: Limits) -> Iterator[Cgroup | None]:
    """Give a new cgroup with these limits, killed and removed at the end; None where there is none.

    A memory limit counts for all inside together: past it, the kernel kills all of them.
    """
    parent = usable_parent()
    folder = None if parent is None else _make(parent)
    if folder is None:
        yield None
        return
    try:
        for name, value in (
            ("memory.max", str(limits.memory.value)),
            ("memory.swap.max", "0"),
            ("memory.oom.group", "1"),
            ("pids.max", str(limits.processes.value)),
        ):
            # A kernel without swap has no file for it.
            with contextlib.suppress(FileNotFoundError):
                (folder / name).write_text(value)
        yield Cgroup(folder, limits)
    finally:
        _remove(folder)


@cache
def usable_parent() -> Path | None:
    """Return the cgroup that ours can be made in, found by trying; None where there is none."""
    for parent in _ancestors():
        folder = _make(parent)
        if folder is None:
            continue
        try:
            # Being allowed to make one is not being allowed to move there.
            moved = shell.run(["sh", "-c", _ENTER, str(folder), "true"], timeout_s=10)
        finally:
            _remove(folder)
        if moved.ok:
            return parent
    return None


def _ancestors() -> list[Path]:
    """Return our cgroup and those above it that hand down the controllers, the nearest first."""
    roots = [
        line.split()[1]
        for line in Path("/proc/self/mounts").read_text().splitlines()
        if line.split()[2] == "cgroup2"
    ]
    own_lines = [
        line.removeprefix("0::")
        for line in Path("/proc/self/cgroup").read_text().splitlines()
        if line.startswith("0::")
    ]
    if not roots or not own_lines:
        return []
    root = Path(roots[0])
    ours = root / own_lines[0].lstrip("/")
    found = []
    for folder in (ours, *ours.parents):
        if not folder.is_relative_to(root):
            break
        with contextlib.suppress(OSError):
            if set((folder / "cgroup.subtree_control").read_text().split()) >= _NEEDED:
                found.append(folder)
    return found


def _make(parent: Path) -> Path | None:
    folder = parent / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
    except OSError:
        return None
    return folder


def _event(path: Path, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0


def _remove(folder: Path) -> None:
    """Kill what is left inside and remove the cgroup."""
    for _ in range(_REMOVE_TRIES):
        # Older kernels have no such file; there bubblewrap's own end has to do.
        with contextlib.suppress(OSError):
            (folder / "cgroup.kill").write_text("1")
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(_REMOVE_PAUSE_S)
        else:
            return
