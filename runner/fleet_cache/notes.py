"""Notes: what the fleet's cache says about one pack, and how its objects are named.

A note is small and written last, so a pack that is half there has none. It is found by a key that
was known before, says what it is of, and ends with its own hash: one that was put in another's
place is noticed, and so is one that lost a bit.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from runner.fleet_cache.errors import DamagedPackError

#: Bytes of the tar in one part: small enough to be in memory a few times and for a request that
#: ends soon, large enough that a request's latency does not count.
PART_BYTES: Final = 16 * 1024 * 1024
#: What zstd adds to bytes that cannot be compressed is less than this.
PACKED_BYTES_MAX: Final = PART_BYTES + 1024 * 1024
#: A part has some 130 bytes in it: this is a pack of 400 GB.
NOTE_BYTES_MAX: Final = 4 * 1024 * 1024
#: Raise it when a pack's form changes: older runners then look elsewhere.
FORM: Final = "v1"
_KEY: Final = re.compile(r"[0-9a-f]{8,64}")


class Level(StrEnum):
    """Whose jobs made it, and so who may read it."""

    #: Jobs of the watched branch; everybody reads it.
    TRUSTED = "trusted"
    #: Jobs of strangers; only such jobs read it.
    OUTSIDE = "outside"


class Kind(StrEnum):
    """What is in a pack."""

    ARTIFACT = "artifact"
    DATASET = "dataset"


@dataclass(frozen=True, kw_only=True)
class Item:
    """What is looked for."""

    kind: Kind
    #: What decides its content, as a digest.
    key: str
    #: Digest of what a machine has to be like to use it.
    system: str

    def __post_init__(self) -> None:
        """Keep digests that are none out of names of objects."""
        assert _KEY.fullmatch(self.key), self.key
        assert _KEY.fullmatch(self.system), self.system

    def name(self, level: Level) -> str:
        """Return the name of its note."""
        return f"{FORM}/{level}/{self.kind}s/{self.key}-{self.system}.note"


class Part(BaseModel):
    """One part of a pack: an object that is named by the hash of its content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(gt=0, le=PACKED_BYTES_MAX)
    unpacked: int = Field(gt=0, le=PART_BYTES)


def part_name(part: Part, level: Level) -> str:
    """Return the name of a part's object: each level has its own."""
    return f"{FORM}/{level}/parts/{part.sha256[:2]}/{part.sha256}"


class Note(BaseModel):
    """What a pack is, and its parts in order."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["forkwatch.pack"] = "forkwatch.pack"
    kind: Kind
    key: str
    system: str
    made_at: AwareDatetime
    #: Name of the machine that made it, for a person who looks for a bad one.
    made_on: str = Field(max_length=255)
    #: Bytes in all files.
    unpacked: int = Field(ge=0)
    parts: tuple[Part, ...] = Field(min_length=1)
    #: What the maker says about it.
    facts: dict[str, JsonValue]

    def sealed(self) -> bytes:
        """Return the object that holds it: a line of JSON and a line with the hash of the first."""
        line = self.model_dump_json().encode()
        return b"%s\n%s\n" % (line, hashlib.sha256(line).hexdigest().encode())


def opened(content: bytes, item: Item) -> Note:
    """Return the note of `item` from the object that should hold it.

    Raises:
        DamagedPackError: It is not what was written, or the note of something else.
    """
    line, _, seal = content.partition(b"\n")
    if seal != hashlib.sha256(line).hexdigest().encode() + b"\n":
        raise DamagedPackError("its note is not what was written")
    try:
        note = Note.model_validate_json(line)
    except ValidationError as error:
        raise DamagedPackError(f"its note has {error.error_count()} faults") from None
    if (note.kind, note.key, note.system) != (item.kind, item.key, item.system):
        raise DamagedPackError(f"its note is of the {note.kind} {note.key[:64]}")
    return note
