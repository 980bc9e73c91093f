"""A store of snapshots: folders made once, checked before every use, and copied out.

In come a key, a way to make the folder, and what that will take; out goes a snapshot that nobody
evicts while it is held. Half-made and damaged snapshots are found and made again. What is in a
folder it must not know.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from runner import clock, eviction, leavings, locks, manifest, tree_copies, trees
from runner.errors import DatasetError, StageError
from runner.eviction import USED, Estimate, gb, lock_of, use_of
from runner.manifest import DATA, MANIFEST, DamagedError, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from pydantic import JsonValue

#: Empty, beside the data: its time says when every byte was last read and found right.
_VERIFIED: Final = "verified"
#: Seconds after which every byte is read again. Disks do return wrong bytes without saying so
#: (Bairavasundaram et al., FAST 2008, abstract: 400,000 checksum mismatches, 1.53 million disks,
#: 41 months). A week bounds what one could spoil; reading takes a second or two per gigabyte.
VERIFY_EVERY_S: Final = 7 * 24 * 3600
#: A load that failed with less than this left on the disk, beyond the reserve, failed because of
#: it: a server that is ended gives back its temporary tablespace and sorts, some 12 MB and more.
_FULL_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Restored:
    """How a snapshot was copied out."""

    #: "reflink" where blocks are shared with the snapshot (all but those reserved and not yet
    #: written), "copy" where none are. First writes to shared blocks cost more.
    way: str
    seconds: float
    #: Bytes in the files of one copy.
    size: int


@dataclass(frozen=True, kw_only=True)
class Made:
    """What is known of the making of a snapshot."""

    facts: Mapping[str, JsonValue]
    created_at: datetime
    load_seconds: float


class Elsewhere(Protocol):
    """Where else a snapshot may be: at the other machines of a fleet."""

    def fetch(self, data: Path) -> Made | None:
        """Fill an empty folder with its files, every byte checked; None where it is not."""

    def bring(self, folder: Path) -> None:
        """Offer others what was made here; whether it is taken is no matter of the job's."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which snapshot is wanted, and how to get it where it is not there."""

    #: What decides the content, as a digest.
    key: str
    #: Fills an empty folder and returns facts for the manifest.
    make: Callable[[Path], Mapping[str, JsonValue]]
    estimate: Estimate
    #: Looked at before it is made here.
    elsewhere: Elsewhere | None = None


class Snapshot:
    """A snapshot that is held: whole when it was given, and not evicted until it is let go."""

    def __init__(self, store: SnapshotStore, request: Request) -> None:
        self._store, self._request = store, request
        self._warnings: list[str] = []
        self.folder = store.folder / request.key

    @property
    def data(self) -> Path:
        """The files; nobody may write to them."""
        return self.folder / DATA

    @property
    def manifest(self) -> Manifest:
        """What the snapshot holds."""
        return manifest.read(self.folder)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the results should know: damage that was found and repaired."""
        return tuple(self._warnings)

    def put_right(self, *, verify: bool) -> None:
        """Make the snapshot if it is missing or damaged; check all of it if due or asked for.

        Raises:
            DatasetError: It cannot be made, or there is no room for it.
        """
        self._warnings += self._store.put_right(self._request, verify=verify)

    def restore(self, targets: Sequence[Path]) -> Restored:
        """Make each of `targets` a copy of the snapshot, all at once, replacing what is there.

        A snapshot that was damaged since it was given is made again first.

        Raises:
            DatasetError: There is no room for the copies, or the disk failed.
        """
        try:
            return restore(self.folder, targets, reserve=self._store.reserve)
        except DamagedError:
            self.put_right(verify=True)
            return restore(self.folder, targets, reserve=self._store.reserve)


class SnapshotStore:
    """The snapshots below one folder, kept under a size."""

    def __init__(
        self,
        folder: Path,
        *,
        bytes_max: int,
        reserve: int = 0,
        seconds: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        #: Bytes that loads and restores leave free on the disk: below it, servers are ended.
        self.reserve = reserve
        self._bytes_max = bytes_max
        self._seconds = seconds

    @contextmanager
    def hold(self, request: Request, *, verify: bool = False) -> Iterator[Snapshot]:
        """Give a snapshot, made if it is not there, and keep it for as long as the block runs.

        Raises:
            DatasetError: It cannot be made, or there is no room for it.
        """
        with locks.shared(use_of(self.folder / request.key)):
            snapshot = Snapshot(self, request)
            snapshot.put_right(verify=verify)
            eviction.trim(self.folder, bytes_max=self._bytes_max)
            yield snapshot

    def put_right(self, request: Request, *, verify: bool) -> list[str]:
        """Do what `Snapshot.put_right` says, and return warnings."""
        folder = self.folder / request.key
        warnings = []
        with locks.exclusive(lock_of(folder)):
            try:
                if folder.exists():
                    self._check(folder, verify=verify)
                else:
                    self._make(request)
            except DamagedError as damage:
                warnings.append(f"the snapshot of the dataset was damaged and made again: {damage}")
                self._make(request)
            _set_stamp(folder / USED, self._seconds())
        return warnings

    def _check(self, folder: Path, *, verify: bool) -> None:
        """Check names, sizes and times; all content on the first use, weekly, or on suspicion.

        Raises:
            DamagedError: Something is not as the manifest says.
        """
        expected = manifest.read(folder)
        touched = manifest.is_touched(expected, folder / DATA)
        verified_at, now = eviction.stamp(folder / _VERIFIED), self._seconds()
        fresh = verified_at is not None and 0 <= now - verified_at < VERIFY_EVERY_S
        if fresh and not touched and not verify:
            return
        # What is only in memory proves nothing about the device.
        tree_copies.settle([folder / DATA])
        manifest.check_content(expected, folder / DATA)
        if touched:
            tree_copies.give_facts(folder / DATA, expected.entries)
            if manifest.is_touched(expected, folder / DATA):
                raise DamagedError("its owners or modes changed and cannot be put back")
        _set_stamp(folder / _VERIFIED, now)

    def _make(self, request: Request) -> None:
        """Make a snapshot beside its place and move it there when it is whole."""
        folder = self.folder / request.key
        partial = self.folder / f"{request.key}.partial-{secrets.token_hex(4)}"
        leavings.remove(folder)
        eviction.remove_partials(folder)
        try:
            eviction.make_room(
                self.folder,
                partial,
                request.estimate,
                bytes_max=self._bytes_max,
                reserve=self.reserve,
            )
            (partial / DATA).mkdir()
            made = None if request.elsewhere is None else request.elsewhere.fetch(partial / DATA)
            _write(partial, request.key, made or _made(partial, request, reserve=self.reserve))
            partial.rename(folder)
            if request.elsewhere is not None and made is None:
                request.elsewhere.bring(folder)
        except OSError as error:
            free = gb(shutil.disk_usage(self.folder).free)
            raise DatasetError(
                "dataset", f"the snapshot could not be stored: {error}; {free} are free"
            ) from error
        finally:
            leavings.remove(partial)


def _made(partial: Path, request: Request, *, reserve: int) -> Made:
    """Let the snapshot be made here."""
    began = time.monotonic()
    facts = _fill(partial / DATA, request, reserve=reserve)
    load_seconds = round(time.monotonic() - began, 3)
    return Made(facts=facts, created_at=clock.now(), load_seconds=load_seconds)


def _write(partial: Path, key: str, made: Made) -> None:
    """Write the manifest of what was made, once all is on the device."""
    # Settled before the checksums: they are of what can be read back.
    tree_copies.settle([partial / DATA])
    entries = trees.scan(partial / DATA)
    written = Manifest(
        key=key,
        created_at=made.created_at,
        load_seconds=made.load_seconds,
        allocated=sum(entry.allocated for entry in entries),
        facts=dict(made.facts),
        entries=entries,
        checksums=trees.checksums(partial / DATA, entries),
    )
    with (partial / MANIFEST).open("w") as file:
        file.write(written.model_dump_json(indent=1))
        file.flush()
        os.fsync(file.fileno())


def _fill(data: Path, request: Request, *, reserve: int) -> Mapping[str, JsonValue]:
    """Run the maker; a failure on a full disk is told as such."""
    try:
        return request.make(data)
    except StageError as error:
        free = shutil.disk_usage(data).free
        if free >= reserve + _FULL_BYTES:
            raise
        text = (
            f"the disk became full while the dataset was loaded: {gb(free)} are free after "
            f"{gb(trees.allocated_bytes(data))} of about {gb(request.estimate.allocated)} "
            f"({request.estimate.because}): {error}"
        )
        raise DatasetError("dataset", text, error.log_tail) from error


def restore(folder: Path, targets: Sequence[Path], *, reserve: int = 0) -> Restored:
    """Make each of `targets` a copy of the snapshot in `folder`, replacing what is there.

    Each copy appears under its name whole or not at all, and lies on the device when this ends;
    `reserve` bytes stay free there.

    Raises:
        DamagedError: The snapshot is not what it was.
        DatasetError: There is no room, or the disk failed.
    """
    began = time.monotonic()
    with locks.shared(lock_of(folder)):
        expected = manifest.read(folder)
        if manifest.is_touched(expected, folder / DATA):
            raise DamagedError("its files were touched since it was checked")
        try:
            copied = _copy_out(folder / DATA, expected, targets, reserve=reserve)
        except OSError as error:
            if error.errno == errno.EIO:
                raise DamagedError(f"it cannot be read: {error}") from error
            free = gb(shutil.disk_usage(folder).free)
            raise DatasetError(
                "dataset",
                f"the snapshot could not be restored: {error}; {len(targets)} x "
                f"{gb(expected.allocated)} were to be written, and {free} are free",
            ) from error
    return Restored(
        way="reflink" if copied.shared else "copy",
        seconds=round(time.monotonic() - began, 3),
        size=copied.size // len(targets),
    )


def _copy_out(
    data: Path, expected: Manifest, targets: Sequence[Path], *, reserve: int
) -> tree_copies.Copied:
    partials = [target.with_name(f"{target.name}.partial") for target in targets]
    try:
        for path in (*targets, *partials):
            leavings.remove(path)
            path.parent.mkdir(parents=True, exist_ok=True)
        share = _shares_or_fits(expected, data, partials, reserve=reserve)
        copied = tree_copies.copy(data, expected.entries, partials, share=share)
        tree_copies.settle(partials)
        for partial, target in zip(partials, targets, strict=True):
            partial.rename(target)
    finally:
        for partial in partials:
            leavings.remove(partial)
    return copied


def _shares_or_fits(
    expected: Manifest, data: Path, partials: Sequence[Path], *, reserve: int
) -> bool:
    """Whether copies share blocks with the snapshot; if they do not, there is room for them.

    Raises:
        DatasetError: They do not, and there is not.
    """
    parent = partials[0].parent
    sample = max(trees.files(expected.entries), key=lambda entry: entry.size, default=None)
    if sample is not None and tree_copies.can_share(data / sample.path, parent):
        return True
    need, free = len(partials) * expected.allocated, shutil.disk_usage(parent).free
    if need > free - reserve:
        raise DatasetError(
            "dataset",
            f"no room to restore the dataset: {len(partials)} x {gb(expected.allocated)} = "
            f"{gb(need)}, and {gb(free)} are free on the disk of {parent}, of which {gb(reserve)} "
            "stay free (FORKWATCH_DISK_RESERVE)",
        )
    return False


def _set_stamp(path: Path, seconds: float) -> None:
    path.touch()
    os.utime(path, (seconds, seconds))
