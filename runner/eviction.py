"""Room for snapshots: what they take, and which of them go when another one needs the place.

In comes the folder of the store and what a new snapshot will take; the least recently used go until
it fits under the size limit and on the disk. One that is held or being copied never goes, and none
goes in vain: if not even all of them would make enough room, that is an error with the arithmetic.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner import leavings, locks, manifest, trees
from runner.errors import DatasetError
from runner.manifest import DamagedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Empty, beside the data: its time says when the snapshot was last used. The manifest itself is
#: never written again.
USED: Final = "used"
_EXPECTED: Final = "expected-bytes"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What making a snapshot will take on the disk, and why."""

    allocated: int
    because: str


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One snapshot of the store, from the outside."""

    key: str
    allocated: int
    used_at: float


def lock_of(folder: Path) -> Path:
    """Return the lock shared while a snapshot is copied out, held alone to make or check it."""
    return folder.with_name(f"{folder.name}.lock")


def use_of(folder: Path) -> Path:
    """Return the lock shared by all who hold a snapshot, held alone to evict it."""
    return folder.with_name(f"{folder.name}.use")


def stored(store: Path) -> list[Stored]:
    """Return the snapshots of a store, least recently used first, unreadable ones before all."""
    found = []
    for folder in store.iterdir():
        if not folder.is_dir() or "." in folder.name:
            continue
        try:
            allocated, used_at = manifest.read(folder).allocated, stamp(folder / USED) or 0.0
        except DamagedError:
            allocated, used_at = trees.allocated_bytes(folder), 0.0
        found.append(Stored(key=folder.name, allocated=allocated, used_at=used_at))
    return sorted(found, key=lambda one: (one.used_at, one.key))


def make_room(
    store: Path, partial: Path, estimate: Estimate, *, bytes_max: int, reserve: int
) -> None:
    """Make the folder `partial` for a new snapshot, after evicting what stands in its way.

    Args:
        store: Folder of the snapshots.
        partial: Folder to make.
        estimate: What the new snapshot will take.
        bytes_max: What all snapshots together may take.
        reserve: Bytes that stay free on the disk.

    Raises:
        DatasetError: It would not fit even without all that may be evicted; nothing was.
    """
    need = estimate.allocated
    with locks.exclusive(store / "room.lock"), contextlib.ExitStack() as claims:
        _sweep(store)
        taken, promised = _taken(store)
        free = shutil.disk_usage(store).free - promised - reserve
        victims: list[Stored] = []
        for one in _evictable(store, claims):
            if taken + need <= bytes_max and need <= free:
                break
            victims.append(one)
            taken, free = taken - one.allocated, free + one.allocated
        told = f"no room for the dataset: it takes about {gb(need)} ({estimate.because})"
        if taken + need > bytes_max:
            raise DatasetError(
                "dataset",
                f"{told}; of the {gb(bytes_max)} for snapshots {gb(taken)} are in use and "
                f"{gb(bytes_max - taken)} can be had: raise FORKWATCH_DATASETS_SIZE or ask for "
                "fewer rows",
            )
        if need > free:
            raise DatasetError(
                "dataset",
                f"{told}; {gb(max(0, free))} can be had on the disk of {store}, where "
                f"{gb(reserve)} stay free (FORKWATCH_DISK_RESERVE): free some or ask for "
                "fewer rows",
            )
        for one in victims:
            _evict(store, one)
        partial.mkdir()
        (partial / _EXPECTED).write_text(str(need))


def trim(store: Path, *, bytes_max: int) -> None:
    """Evict what is over the limit: an estimate was low, or the limit was lowered."""
    with locks.exclusive(store / "room.lock"), contextlib.ExitStack() as claims:
        over = sum(one.allocated for one in stored(store)) - bytes_max
        if over <= 0:
            return
        for one in _evictable(store, claims):
            _evict(store, one)
            over -= one.allocated
            if over <= 0:
                return


def _taken(store: Path) -> tuple[int, int]:
    """Return bytes that count against the limit, and those that loads under way still need."""
    taken = sum(one.allocated for one in stored(store))
    promised = 0
    for path in store.glob(f"*.partial-*/{_EXPECTED}"):
        with contextlib.suppress(OSError, ValueError):
            there, expected = trees.allocated_bytes(path.parent), int(path.read_text())
            taken += max(there, expected)
            promised += max(0, expected - there)
    return taken, promised


def _evictable(store: Path, claims: contextlib.ExitStack) -> Iterator[Stored]:
    """Give snapshots nobody holds or copies, least recently used first, claimed for eviction."""
    for one in stored(store):
        with contextlib.ExitStack() as both:
            try:
                both.enter_context(locks.exclusive(use_of(store / one.key), wait=False))
                both.enter_context(locks.exclusive(lock_of(store / one.key), wait=False))
            except BlockingIOError:
                continue
            claims.push(both.pop_all())
            yield one


def _evict(store: Path, one: Stored) -> None:
    # Renamed first: a half-deleted snapshot must not look like a damaged one.
    doomed = store / f"{one.key}.evicted-{secrets.token_hex(4)}"
    (store / one.key).rename(doomed)
    leavings.remove(doomed)


def _sweep(store: Path) -> None:
    """Remove what killed runners left: half-evicted snapshots, half-made ones nobody makes."""
    for path in store.glob("*.evicted-*"):
        leavings.remove(path)
    for path in store.glob("*.partial-*"):
        key = path.name.partition(".")[0]
        with (
            contextlib.suppress(BlockingIOError),
            locks.exclusive(lock_of(store / key), wait=False),
        ):
            leavings.remove(path)


def remove_partials(folder: Path) -> None:
    """Remove what killed makers of this snapshot left; the caller holds its lock alone."""
    for path in folder.parent.glob(f"{folder.name}.partial-*"):
        leavings.remove(path)


def stamp(path: Path) -> float | None:
    """Return the time of a file, or None if there is none."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def gb(count: float) -> str:
    """Return bytes as people say them."""
    return f"{count / 1e9:.3f} GB"
