"""Commits of a range as values; whoever reads git makes them.

A range is (good, bad] with its good end before it: the first commit of a sequence is the good end,
the last one the bad end, and each is the first parent of the next. What a merge brought is a range
too: its first parent, the commits of the other parent, and the merge.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  stores make a schema from this class
from typing import Final

from bisects.errors import BisectError

#: Commits of a range, both ends counted. More is years of work: narrow it by a release first.
RANGE_COMMITS_MAX: Final = 2_000


@dataclass(frozen=True, kw_only=True)
class RangeCommit:
    """One commit of a range."""

    sha: str
    subject: str
    author: str
    committed_at: datetime
    #: Paths that it touches beside its first parent.
    files: tuple[str, ...]


def refuse_range(commits: int) -> None:
    """Refuse a range that is too short or too long.

    Raises:
        BisectError: It is.
    """
    if commits < 2:  # noqa: PLR2004  a range has two ends
        raise BisectError("a range has a good end and a bad one after it; give two commits")
    if commits > RANGE_COMMITS_MAX:
        raise BisectError(
            f"the range has {commits} commits and may have {RANGE_COMMITS_MAX}: compare releases "
            "first, and bisect between the two that differ"
        )
