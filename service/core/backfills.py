"""Backfills: past commits measured so that a baseline has a past; what is asked, and what came.

Frozen values that the store returns and the flows, the API and the pages read, and the orders in
which commits can be measured. This module knows neither tables nor HTTP.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  the API makes its schema from these classes
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from service.core.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Commits of one backfill: at twenty minutes each this is a week of a machine that does nothing
#: else, and more than any detector reads.
COMMITS_MAX: Final = 500


class BackfillRefusedError(ConflictError):
    """This backfill cannot be begun or ended now; the message says why."""


class BackfillState(StrEnum):
    """How far a backfill has come."""

    #: Its commits are measured one by one, whenever nothing else waits.
    UNDER_WAY = "under-way"
    #: Each of its commits was measured, or says why not.
    DONE = "done"
    #: Somebody ended it; what was measured stays.
    CANCELLED = "cancelled"


class BackfillOrder(StrEnum):
    """In which order commits are measured."""

    #: The newest, the oldest, then the middle of each gap: soon useful, finer with every commit.
    SPREAD = "spread"
    #: As they were made.
    OLDEST_FIRST = "oldest-first"


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """Past commits that are measured for the baseline."""

    id: str
    fork: str
    state: BackfillState
    order: BackfillOrder
    #: The oldest commit that was known before; all of the backfill come before it.
    before_sha: str
    #: In the order in which they are measured.
    commits: tuple[str, ...]
    asked_by: str
    via: str
    #: What came of it, as one sentence; empty while it is under way.
    said: str
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class BackfillProgress:
    """A backfill and how far it is."""

    backfill: Backfill
    #: Commits that were looked at, measured or not.
    done: int

    @property
    def words(self) -> str:
        """Where it stands, in one sentence."""
        count, state = len(self.backfill.commits), self.backfill.state
        if state is BackfillState.DONE:
            return f"Backfill of {_commits(count)}: done."
        if state is BackfillState.CANCELLED:
            return f"Backfill of {_commits(count)}: ended after {self.done}, {self.backfill.said}."
        return (
            f"Backfill: {self.done} of {_commits(count)} from before the first judged one are "
            "measured; they are history, and raise no alert."
        )


def in_order(oldest_first: Sequence[str], order: BackfillOrder) -> tuple[str, ...]:
    """Return commits in the order in which a backfill measures them."""
    if order is BackfillOrder.OLDEST_FIRST:
        return tuple(oldest_first)
    return tuple(oldest_first[place] for place in spread(len(oldest_first)))


def spread(count: int) -> list[int]:
    """Return the places 0 (oldest) to count - 1 (newest): the ends, then middles, newer ones first.

    After any number of them, no gap is more than about twice as long as another.
    """
    if count < 2:  # noqa: PLR2004  one end or none
        return list(range(count))
    places = [count - 1, 0]
    gaps = deque([(0, count - 1)])
    while gaps:
        low, high = gaps.popleft()
        if high - low < 2:  # noqa: PLR2004  neighbours have nothing in between
            continue
        middle = (low + high) // 2
        places.append(middle)
        gaps += [(middle, high), (low, middle)]
    return places


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count} commits"
