"""The cache as one job sees it: what it may read, where it may write, and what went wrong.

A trusted job reads and writes what is trusted. Any other reads both levels and writes only outside.
Nothing here raises because of the place or of what lies there: it becomes a warning, and a place
that is away is not asked again.
"""

from __future__ import annotations

import platform
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner import clock, leavings, shell
from runner.errors import DatasetError
from runner.eviction import gb
from runner.fleet_cache import packs
from runner.fleet_cache.errors import AwayError, DamagedPackError
from runner.fleet_cache.notes import NOTE_BYTES_MAX, Item, Level, Note, opened, part_name
from runner.settings import CACHE_PACK_SIZE, CACHE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pydantic import JsonValue

    from runner.fleet_cache.contents import Index
    from runner.fleet_cache.notes import Kind, Part
    from runner.fleet_cache.places import Place

_MESSAGE_LENGTH: Final = 300


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How much may be fetched or brought at once."""

    #: Bytes in all files of one pack.
    pack_bytes: int = CACHE_PACK_SIZE
    #: Seconds for one pack, and one request more.
    seconds: float = CACHE_SECONDS
    #: Bytes that stay free on the disk.
    disk_reserve: int = 0


class FleetCache:
    """What other machines of the fleet have made, and what this job adds to it."""

    def __init__(
        self,
        open_place: Callable[[], Place],
        *,
        systems: Mapping[Kind, str],
        trusted: bool,
        writes: bool = True,
        bounds: Bounds | None = None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember who asks; the place is opened when it is first needed.

        Args:
            open_place: Gives the place, or raises AwayError.
            systems: What stands for machines like this one.
            trusted: Whether others may rely on what this job makes.
            writes: Whether this machine adds anything at all.
            bounds: Sizes and times.
            seconds: A clock that only goes forward.
        """
        self._open_place = open_place
        self._systems = systems
        self._bounds = bounds or Bounds()
        self._seconds = seconds
        self._writes = writes
        self._own = Level.TRUSTED if trusted else Level.OUTSIDE
        self.levels: tuple[Level, ...] = tuple(dict.fromkeys((Level.TRUSTED, self._own)))
        self._opened: Place | None = None
        self._is_away = False
        self._damaged: set[tuple[Level, Item]] = set()
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the results should know."""
        return tuple(self._warnings)

    def fetch(
        self,
        kind: Kind,
        key: str,
        into: Path,
        *,
        level: Level,
        accept: Callable[[Mapping[str, JsonValue]], None],
    ) -> Mapping[str, JsonValue] | None:
        """Fill the empty folder `into`; return what the maker said, or None where it is not there.

        The folder is empty again where nothing came. `accept` looks at the files and at what was
        said of them, and raises DamagedPackError where they do not fit.
        """
        assert level in self.levels, "a trusted job reads nothing of strangers"
        if self._is_away:
            return None
        item = self._item(kind, key)
        try:
            found = self._fetch(item, into, level)
            if found is not None:
                accept(found)
                return found
        except DamagedPackError as error:
            self._damaged.add((level, item))
            self._warn(f"the {kind} in the fleet's cache was damaged and is not used: {error}")
        except AwayError as error:
            self._give_up(error)
        except (OSError, DatasetError) as error:
            self._warn(f"the {kind} from the fleet's cache could not be stored here: {error}")
        leavings.remove(into)
        into.mkdir()
        return None

    def told(self, kind: Kind, key: str, *, level: Level) -> Mapping[str, JsonValue] | None:
        """Return what the maker of a thing said, without fetching it; None if it is not there.

        A note is no promise: what it is of may be gone when it is fetched, and is made again then.
        """
        assert level in self.levels, "a trusted job reads nothing of strangers"
        if self._is_away:
            return None
        item = self._item(kind, key)
        try:
            text = self._place.get(item.name(level), bytes_max=NOTE_BYTES_MAX)
            return None if text is None else opened(text, item).facts
        except DamagedPackError as error:
            self._warn(f"a note in the fleet's cache was damaged and is not used: {error}")
        except AwayError as error:
            self._give_up(error)
        return None

    def bring(
        self,
        kind: Kind,
        key: str,
        folder: Path,
        describe: Callable[[], Index],
        facts: Mapping[str, JsonValue],
    ) -> None:
        """Give the fleet a folder that nobody writes to any more, unless it has one.

        `describe` returns the folder's index, which may take a while and is not always needed.
        """
        if self._is_away or not self._writes:
            return
        item = self._item(kind, key)
        try:
            self._bring(item, folder, describe, facts)
        except AwayError as error:
            self._give_up(error)
        except (OSError, DatasetError, DamagedPackError) as error:
            self._warn(f"the {kind} could not be given to the fleet's cache: {error}")

    def _item(self, kind: Kind, key: str) -> Item:
        return Item(kind=kind, key=key, system=self._systems[kind])

    @property
    def _place(self) -> Place:
        if self._opened is None:
            self._opened = self._open_place()
        return self._opened

    def _warn(self, text: str) -> None:
        self._warnings.append(shell.readable(text).replace("\n", " ")[:_MESSAGE_LENGTH])

    def _give_up(self, error: AwayError) -> None:
        """Ask no more: every further question would wait as long."""
        self._is_away = True
        self._warn(f"the fleet's cache was away, so all was made here: {error}")

    def _fetch(self, item: Item, into: Path, level: Level) -> Mapping[str, JsonValue] | None:
        until = self._seconds() + self._bounds.seconds
        text = self._place.get(item.name(level), bytes_max=NOTE_BYTES_MAX)
        if text is None:
            return None
        note = opened(text, item)
        if note.unpacked > self._bounds.pack_bytes:
            self._warn(
                f"the {item.kind} in the fleet's cache has {gb(note.unpacked)} and was not "
                f"fetched: {gb(self._bounds.pack_bytes)} are allowed (FORKWATCH_CACHE_PACK_SIZE)"
            )
            return None
        if note.unpacked + self._bounds.disk_reserve > shutil.disk_usage(into).free:
            # Whoever makes it instead says what there is no room for.
            return None
        stretches = self._stretches(note, level, until)
        index = packs.unpack(stretches, into, bytes_max=note.unpacked)
        if index.size != note.unpacked:
            raise DamagedPackError(f"it has {index.size} bytes, and should have {note.unpacked}")
        return note.facts

    def _stretches(self, note: Note, level: Level, until: float) -> Iterator[bytes]:
        """Give the stretches of a pack, each checked, for as long as there is time."""
        for part in note.parts:
            self._in_time(until)
            content = self._place.get(part_name(part, level), bytes_max=part.size)
            if content is None:
                raise DamagedPackError(f"a part of its {len(note.parts)} is gone")
            yield packs.decompressed(part, content)

    def _in_time(self, until: float) -> None:
        if self._seconds() > until:
            raise AwayError(
                f"it took more than {self._bounds.seconds:g} s (FORKWATCH_CACHE_SECONDS)"
            )

    def _bring(
        self,
        item: Item,
        folder: Path,
        describe: Callable[[], Index],
        facts: Mapping[str, JsonValue],
    ) -> None:
        until = self._seconds() + self._bounds.seconds
        name = item.name(self._own)
        # What was found damaged is the one thing that is written again.
        anew = (self._own, item) in self._damaged
        if not anew and self._place.get(name, bytes_max=NOTE_BYTES_MAX) is not None:
            return
        index = describe()
        if index.size > self._bounds.pack_bytes:
            self._warn(
                f"the {item.kind} has {gb(index.size)} and was not given to the fleet's cache: "
                f"{gb(self._bounds.pack_bytes)} are allowed (FORKWATCH_CACHE_PACK_SIZE)"
            )
            return
        parts = self._put_parts(folder, index, anew=anew, until=until)
        note = Note(
            kind=item.kind,
            key=item.key,
            system=item.system,
            made_at=clock.now(),
            made_on=platform.node()[:255],
            unpacked=index.size,
            parts=parts,
            facts=dict(facts),
        )
        self._place.put(name, note.sealed(), anew=anew)

    def _put_parts(
        self, folder: Path, index: Index, *, anew: bool, until: float
    ) -> tuple[Part, ...]:
        parts: list[Part] = []

        def put(stretch: bytes) -> None:
            self._in_time(until)
            part, content = packs.compressed(stretch)
            self._place.put(part_name(part, self._own), content, anew=anew)
            parts.append(part)

        packs.pack(folder, index, put)
        return tuple(parts)
