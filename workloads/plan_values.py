"""What every table of a plan is made of: bounded names, words, paths, and the digest of a table.

Nothing here knows what a table is for. Text that is out of bounds raises ValueError, which the
parser of the plan turns into a line that names the place.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

if TYPE_CHECKING:
    from collections.abc import Iterable

Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
OptionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_:.-]{0,127}$")]
OptionValue = Annotated[str, StringConstraints(max_length=4096)] | int | float | bool
#: An argument handed to a compiler or build tool; never a shell line.
Argument = Annotated[str, StringConstraints(max_length=4096)]


def _stays_inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError("has to be a relative path without '..'")
    return path


def _names_a_folder(path: str) -> str:
    if ".." in path.split("/") or not path.strip("/"):
        raise ValueError("has to be the absolute path of a folder, without '..'")
    return path


RelativePath = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_./+-]+$", max_length=255),
    AfterValidator(_stays_inside),
]
#: A folder of the host.
AbsolutePath = Annotated[
    str,
    StringConstraints(pattern=r"^/[^\x00-\x1f\x7f]*$", max_length=1024),
    AfterValidator(_names_a_folder),
]


class Table(BaseModel):
    """A table of the plan: closed and unchanging."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Keys that joined after digests were in use. At their default they are left out of a digest,
    #: so that what was built, loaded or measured before keeps its identity.
    joined_later: ClassVar[frozenset[str]] = frozenset()
    #: Keys that never are part of a digest, because what it identifies does not depend on them.
    not_identity: ClassVar[frozenset[str]] = frozenset()


def digest(part: Table) -> str:
    """Return a stable digest of a part of the plan: equal parts, equal digests."""
    data = part.model_dump(mode="json")
    for name in part.joined_later:
        if getattr(part, name) == type(part).model_fields[name].get_default():
            del data[name]
    for name in part.not_identity:
        del data[name]
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def nearest(name: str, known: Iterable[object]) -> str:
    """Return a hint that names the nearest known name, or lists them all."""
    names = [str(item) for item in known]
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known here: {', '.join(sorted(names))}" if names else ""
