"""The manifest of a snapshot: what the folder held when it was made, and whether it still does.

In comes a folder with its data and a manifest beside it; out goes what is wrong with it, if
anything. It repairs nothing, and must not know what the files mean.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, JsonValue

from runner import trees
from runner.errors import DatasetError
from runner.trees import Entry, Kind

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST: Final = "forkwatch-snapshot.json"
#: The folder of the files themselves, beside the manifest.
DATA: Final = "data"


class Manifest(BaseModel):
    """What a snapshot holds; written last, so that a snapshot without one is half made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["forkwatch.snapshot"] = "forkwatch.snapshot"
    version: Literal[1] = 1
    key: str
    created_at: AwareDatetime
    load_seconds: float
    #: Bytes on the device when it was stored.
    allocated: int
    #: What the maker says about the content, such as rows per table.
    facts: dict[str, JsonValue]
    entries: tuple[Entry, ...]
    checksums: dict[str, str]


class DamagedError(DatasetError):
    """A snapshot is not what it was when it was made."""

    def __init__(self, message: str) -> None:
        super().__init__("dataset", message)


def read(folder: Path) -> Manifest:
    """Return the manifest of the snapshot in `folder`.

    Raises:
        DamagedError: It is not there or not readable.
    """
    try:
        return Manifest.model_validate_json((folder / MANIFEST).read_text())
    except FileNotFoundError:
        raise DamagedError("it has no manifest") from None
    except (OSError, ValueError) as error:
        raise DamagedError(f"its manifest is not readable: {error}") from error


def is_touched(manifest: Manifest, data: Path) -> bool:
    """Whether a time, a mode or an owner changed, which only the content can show to be harmless.

    Raises:
        DamagedError: A file is missing, was added, or has another kind or size.
    """
    try:
        found = {entry.path: entry for entry in trees.scan(data)}
    except (OSError, DatasetError) as error:
        raise DamagedError(f"its files cannot be listed: {error}") from error
    expected = {entry.path: entry for entry in manifest.entries}
    for path in sorted(expected.keys() | found.keys()):
        if path not in found:
            raise DamagedError(f"{path} is missing")
        if path not in expected:
            raise DamagedError(f"{path} does not belong to it")
        then, now = expected[path], found[path]
        if (then.kind, then.target) != (now.kind, now.target):
            raise DamagedError(f"{path} is a {now.kind}, and was a {then.kind}")
        if then.size != now.size:
            raise DamagedError(f"{path} has {now.size} bytes, and had {then.size}")
    return any(_compared(expected[path]) != _compared(found[path]) for path in expected)


def _compared(entry: Entry) -> Entry:
    # Blocks move when a file system cleans up; the time of a folder says nothing about its files.
    mtime_ns = entry.mtime_ns if entry.kind is Kind.FILE else 0
    return replace(entry, allocated=0, mtime_ns=mtime_ns)


def check_content(manifest: Manifest, data: Path) -> None:
    """Read every byte and compare its checksum.

    Raises:
        DamagedError: A file has another content or cannot be read.
    """
    try:
        found = trees.checksums(data, manifest.entries)
    except OSError as error:
        raise DamagedError(f"it cannot be read: {error}") from error
    wrong = sorted(path for path, checksum in found.items() if manifest.checksums[path] != checksum)
    if wrong:
        raise DamagedError(f"the content of {wrong[0]} changed ({len(wrong)} files in all)")
