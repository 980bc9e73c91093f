"""Sources: which source files of a pair's trees neither of its servers is made of.

Names come in, a part of the run document goes out. A big tree has more of them than a document may
hold, so that some can be left out; what they are for is not known here.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, StringConstraints

from results.values import Part

if TYPE_CHECKING:
    from collections.abc import Collection

#: MySQL's tree has about 15,000 files that compilers read; a megabyte of JSON, some 60 kB packed.
NAMES_MAX: Final = 20_000
#: Letters of one path; longer ones are left out.
PATH_MAX: Final = 500

SourcePath = Annotated[str, StringConstraints(min_length=1, max_length=PATH_MAX)]


class OutsideSources(Part):
    """Source files that neither server of a pair is made of."""

    #: SHA-256 over all of them in their order, each with a line break behind it.
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    #: How many there are.
    count: Annotated[int, Field(ge=1)]
    #: Their paths, evenly thinned where there are more than may be named.
    names: Annotated[tuple[SourcePath, ...], Field(max_length=NAMES_MAX)]


def told(names: Collection[str]) -> OutsideSources | None:
    """Return source files as a document has them; None where there are none."""
    if not names:
        return None
    ordered = sorted(names)
    short = [name for name in ordered if len(name) <= PATH_MAX]
    step = 1 + max(0, len(short) - 1) // NAMES_MAX
    text = "".join(f"{name}\n" for name in ordered)
    return OutsideSources(
        digest=hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest(),
        count=len(ordered),
        names=tuple(short[::step]),
    )
