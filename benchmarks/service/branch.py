"""The commits of a fork that never was, by their places on its branch.

How many commits and how many in a week come in, commits and times go out. The last of them end with
the week that the digest is about.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from service.core.model import GitCommit
from service.core.weeks import Week

if TYPE_CHECKING:
    from datetime import datetime

#: The week that the last commits were seen in.
WEEK: Final = Week(year=2026, number=45)
ZONE: Final = ZoneInfo("UTC")
_TREE: Final = "7" * 40


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A branch of so many commits; places beyond them are commits of the week after."""

    commits: int
    commits_a_week: int

    def sha(self, place: int) -> str:
        """Return the hash of a commit, which looks like one."""
        return hashlib.sha256(f"bench {place}".encode()).hexdigest()[:40]

    def at(self, place: int) -> datetime:
        """Return when a commit was measured."""
        pause = timedelta(weeks=1) / self.commits_a_week
        return WEEK.ends(ZONE).astimezone(UTC) - (self.commits - place) * pause

    def commit(self, place: int) -> GitCommit:
        """Return a commit as git would tell it."""
        return GitCommit(
            sha=self.sha(place),
            tree=_TREE,
            parent=self.sha(place - 1) if place else None,
            author="Ada Lovelace",
            subject=f"Change number {place} of the record format in row_search_mvcc",
            committed_at=self.at(place) - timedelta(hours=5),
        )
