"""A bisect for pictures: asked for over the commits of the story, and searched to its end.

A store, the branch and a workload come in; each look halves what is left and sees what the story
tells, with the scatter of a quiet host. The id of the bisect goes out.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final, cast

from reports.bisect import bisect_sentence
from service.core.bisections import BisectState
from service.store import bisects
from tests.fakes.stored_bisects import BisectCaller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.screenshots.story import StoryFork
    from service.store.database import Database
    from tests.fakes.bisect_world import LongFork
    from tests.fakes.memory_fork import StillClock

STARTS: Final = 6
#: Log sd of a start of a pair.
START_SD: Final = 0.004
#: Of the good end's speed: what is below has the loss.
SLOW: Final = 0.97


def searched(database: Database, fork: StoryFork, *, workload: str, clock: StillClock) -> str:
    """Store a bisect of the whole branch that is over; return its id."""
    # What only pull requests ask of a code host is not asked here.
    caller = BisectCaller(database, clock=clock, fork=cast("LongFork", fork))
    bisect = caller.ask(workload=workload)
    with database.writing() as session:
        bisects.begin(session, bisect.id, at=clock.now())
    rng = random.Random(workload)
    for place in _looks(fork, workload):
        level = math.log(_speed(fork, place, workload))
        caller.observe(bisect, place, [level + rng.gauss(0, START_SD) for _ in range(STARTS)])
    with database.writing() as session:
        found = bisects.document(session, bisect.id)
        assert found is not None, "it was observed a moment ago"
        said = bisect_sentence(found)
        bisects.finish(session, bisect.id, BisectState.OVER, said=said, at=clock.now(), found=found)
    return bisect.id


def _looks(fork: StoryFork, workload: str) -> Iterator[int]:
    """Give the places that are looked at: the bad end, then the middle of what is left."""
    good, bad = 0, len(fork.commits) - 1
    yield bad
    while bad - good > 1:
        middle = (good + bad) // 2
        yield middle
        if _speed(fork, middle, workload) < SLOW:
            bad = middle
        else:
            good = middle


def _speed(fork: StoryFork, place: int, workload: str) -> float:
    """Return how fast a commit is, of the good end's speed."""
    first, there = fork.commits[0].sha, fork.commits[place].sha
    return fork.speed(there, workload) / fork.speed(first, workload)
