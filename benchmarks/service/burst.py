"""Many documents at once over HTTP: what was lost, what was stored twice, how long each took.

A filled store and the address of a service on it come in, counts and seconds go out. Each document
is sent twice, by two clients at the same time, as a runner does that heard no answer.
"""

from __future__ import annotations

import gzip
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx
from sqlalchemy import func, select

from results.metric import METRICS
from service.core.model import EventKind
from service.store import runs
from service.store.host_tables import HostNoiseRow
from service.store.tables import EventRow, RunRow, SampleRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import InstrumentedAttribute, Session

    from benchmarks.service.filling import Filler
    from service.store.database import Database

#: A runner waits so long for an answer, and then comes back.
ANSWER_SECONDS_MAX: Final = 120
TIMES_SENT: Final = 2
#: A service that is too busy says so, and a runner comes back.
_BUSY: Final = 503
_TRIES_MAX: Final = 10
_PAUSE_S: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A run as its runner sends it."""

    run: str
    sha: str
    credential: str
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back."""

    run: str
    status: int
    #: With all tries and the pauses between them.
    seconds: float
    tries: int


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What the store has of the documents that were sent."""

    #: Runs that are not there, or lack samples, noise or their event.
    lost: int
    #: Runs that have something twice.
    double: int


def prepare(database: Database, filler: Filler, *, first: int, count: int) -> list[Submission]:
    """Order jobs for so many commits, and return what their runners would send."""
    prepared = []
    with database.writing() as session:
        for place in range(first, first + count):
            ordered = filler.ordered(session, place)
            document = filler.document(ordered, place, with_seconds=True)
            prepared.append(
                Submission(
                    run=document.id,
                    sha=ordered.commit.sha,
                    credential=ordered.credential,
                    body=gzip.compress(runs.canonical(document)),
                )
            )
    return prepared


def send(url: str, prepared: Sequence[Submission], *, clients: int) -> list[Answer]:
    """Send every document twice from so many clients, and return all answers."""
    with (
        httpx.Client(base_url=url, timeout=ANSWER_SECONDS_MAX) as client,
        ThreadPoolExecutor(max_workers=clients) as pool,
    ):
        # Neighbours, so that two clients have the same document in hand.
        every = [one for one in prepared for _ in range(TIMES_SENT)]
        return list(pool.map(lambda one: _post(client, one), every))


def statuses(answers: Sequence[Answer]) -> str:
    """Return how often each status came, such as `100 x 200, 100 x 201, 0 tries more`."""
    counted = Counter(answer.status for answer in answers)
    more = sum(answer.tries - 1 for answer in answers)
    told = [f"{count} x {status}" for status, count in sorted(counted.items())]
    return ", ".join((*told, f"{more} tries more"))


def kept(database: Database, prepared: Sequence[Submission], filler: Filler) -> Kept:
    """Return what of the documents is missing in the store, and what is there twice."""
    ids = [one.run for one in prepared]
    workloads = len(filler.shape.workloads)
    expected = (
        (RunRow.id, 1),
        (SampleRow.run, workloads * filler.shape.starts * len(METRICS)),
        (HostNoiseRow.run, workloads),
    )
    lost, double = set[str](), set[str]()
    with database.reading() as session:
        for column, wanted in expected:
            found = _counted(session, column, ids)
            lost.update(run for run in ids if found.get(run, 0) < wanted)
            double.update(run for run in ids if found.get(run, 0) > wanted)
        told = _events(session, [one.sha for one in prepared])
    lost.update(one.run for one in prepared if told.get(one.sha, 0) < 1)
    double.update(one.run for one in prepared if told.get(one.sha, 0) > 1)
    return Kept(lost=len(lost), double=len(double))


def _post(client: httpx.Client, one: Submission) -> Answer:
    began = time.perf_counter()
    headers = {
        "Authorization": f"Bearer {one.credential}",
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
    }
    answer, tries = client.post("/api/v1/runs", content=one.body, headers=headers), 1
    while answer.status_code == _BUSY and tries < _TRIES_MAX:
        time.sleep(_PAUSE_S)
        answer, tries = client.post("/api/v1/runs", content=one.body, headers=headers), tries + 1
    seconds = time.perf_counter() - began
    return Answer(run=one.run, status=answer.status_code, seconds=seconds, tries=tries)


def _counted(
    session: Session, column: InstrumentedAttribute[str], ids: Sequence[str]
) -> dict[str, int]:
    query = select(column, func.count()).where(column.in_(ids)).group_by(column)
    return dict(session.execute(query).all())


def _events(session: Session, shas: Sequence[str]) -> dict[str, int]:
    query = (
        select(EventRow.sha, func.count())
        .where(EventRow.sha.in_(shas), EventRow.kind == EventKind.STORED)
        .group_by(EventRow.sha)
    )
    return dict(session.execute(query).all())
