"""How long one document takes: read, taken in, judged.

A filled store comes in, seconds go out. What a request adds to it is in the figures of many
documents at once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.service.documents import FORK, HOST_CLASS
from service.core.model import CommitOutcome
from service.core.settings import load_settings
from service.flows.intake import parse_document, take_run
from service.flows.steps import Steps
from service.store import commits, jobs, runs
from tests.fakes.memory_fork import MemoryAlerts, MemoryFork, MemoryRunners, StillClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from benchmarks.service.filling import Filler
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """What one document took, in seconds."""

    take_s: float
    judge_s: float

    @property
    def both_s(self) -> float:
        """From the bytes of the document to its verdicts."""
        return self.take_s + self.judge_s


def accept(database: Database, filler: Filler, *, count: int) -> Iterator[Accepted]:
    """Take documents of the commits after the history in, and judge them; give what each took."""
    for place in range(filler.branch.commits, filler.branch.commits + count):
        at = filler.branch.at(place)
        with database.writing() as session:
            ordered = filler.ordered(session, place)
            job = jobs.find(session, ordered.order.job)
        assert job is not None, "it was ordered"
        text = runs.canonical(filler.document(ordered, place, with_seconds=True))
        steps = _steps(database, at)

        began = time.perf_counter()
        document = parse_document(text)
        with database.writing() as session:
            take_run(session, document, job, at=at)
        taken = time.perf_counter()
        confirm = steps.judge_single(job.id)
        judged = time.perf_counter()

        if confirm is not None:
            _leave(database, ordered.commit.sha, at)
        yield Accepted(take_s=taken - began, judge_s=judged - taken)


def _steps(database: Database, at: datetime) -> Steps:
    """Return the steps of a service that never starts a runner here."""
    # It is no whole code host; judging asks it nothing.
    fork: Any = MemoryFork()
    return Steps(
        database=database,
        clock=StillClock(at),
        code_host=fork,
        dispatcher=MemoryRunners(fork),
        alerts=MemoryAlerts(),
        settings=load_settings(host_class=HOST_CLASS),
    )


def _leave(database: Database, sha: str, at: datetime) -> None:
    """Finish a commit that chance made suspicious; its pair is no part of this figure."""
    with database.writing() as session:
        reason = "suspicious, and not measured again"
        outcome = CommitOutcome.INCONCLUSIVE
        commits.finish(session, FORK, sha, outcome=outcome, reason=reason, at=at)
