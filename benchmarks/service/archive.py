"""What a store has besides measured commits: settled alerts, bisects, the digests of a year.

A filled store comes in. The first digest is written by the service's own step, which is timed; the
older ones repeat its words, since nobody looks into their weeks.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete

from benchmarks.service.branch import WEEK, ZONE
from benchmarks.service.documents import FORK, HOST_CLASS
from bisects.commits import RangeCommit
from bisects.document import BisectQuestion
from service.channels.file_digests import FileDigests
from service.core.alert_actions import OPEN_STATES, OrderVia
from service.core.bisections import Bisect, BisectState, Material
from service.core.model import AlertState
from service.flows.digest import DigestSteps
from service.store import alerts, bisects, commits, digests
from service.store.digest_tables import DigestRow
from tests.fakes.memory_fork import StillClock

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.orm import Session

    from service.core.model import Alert
    from service.store.database import Database

#: Alerts that somebody still looks after; the others are settled.
OPEN: Final = 10
#: Digests of the archive: a year.
WEEKS: Final = 52
_SAID: Final = (None, True, False)


def settle(database: Database) -> None:
    """Settle all alerts but the newest, each with what somebody says of it."""
    with database.writing() as session:
        found = alerts.in_states(session, FORK, OPEN_STATES)
        for number, alert in enumerate(found[OPEN:]):
            closed_at = alert.opened_at + timedelta(days=1)
            said = _SAID[number % len(_SAID)]
            state = AlertState.FALSE if said is False else AlertState.FIXED
            settled = replace(alert, state=state, closed_at=closed_at, true_alarm=said)
            alerts.keep(session, settled)


def bisect(database: Database) -> None:
    """Store a bisect for each of the newest alerts, each over."""
    with database.writing() as session:
        for alert in alerts.newest(session, FORK):
            _bisect(session, alert)


def write_digest(database: Database, folder: Path, *, times: int) -> list[float]:
    """Have the digest of the week written so often, and return the seconds of each time."""
    steps = DigestSteps(
        database=database,
        clock=StillClock(WEEK.ends(ZONE)),
        sink=FileDigests(folder),
        zone=ZONE,
        base_url="http://127.0.0.1",
    )
    took = []
    for _ in range(times):
        with database.writing() as session:
            # It is written once; to be written again it has to be forgotten.
            session.execute(delete(DigestRow))
        began = time.perf_counter()
        steps.write(FORK, WEEK.name)
        took.append(time.perf_counter() - began)
    return took


def keep_digests(database: Database) -> None:
    """Store the digests of the weeks before, as they were sent."""
    with database.writing() as session:
        (newest,) = digests.newest(session, FORK)
        for back in range(1, WEEKS):
            week = WEEK.after(-back)
            sent = replace(newest, week=week, sent_at=week.ends(ZONE), sent_to="digests")
            digests.store_once(session, sent)


def _bisect(session: Session, alert: Alert) -> None:
    ends = [commits.find(session, FORK, sha) for sha in (alert.baseline_sha, alert.sha)]
    question = BisectQuestion(
        fork=FORK,
        workload=alert.workloads[0].workload,
        suite="commit",
        host_class=HOST_CLASS,
        variant="rel",
        config="default",
        good=alert.baseline_sha,
        bad=alert.sha,
        budget_minutes=120.0,
    )
    material = Material(
        commits=tuple(
            RangeCommit(
                sha=end.sha,
                subject=end.subject,
                author=end.author,
                committed_at=end.committed_at,
                files=("sql/handler.cc",),
            )
            for end in ends
            if end is not None
        ),
        engine="mariadb",
        storage_engine="innodb",
        tool_version="0.1.0",
        plan_text="",
        trusted=True,
    )
    asked = Bisect(
        id=question.id,
        question=question,
        state=BisectState.WAITING,
        commits=len(material.commits),
        alert=alert.id,
        asked_by="forkwatch",
        via=OrderVia.FLOW.value,
        number=None,
        said="",
        created_at=alert.opened_at,
        started_at=None,
        finished_at=None,
    )
    bisects.create_once(session, asked, material)
    said = f"The commit {alert.sha[:12]} is the first slow one, with a probability of 0.97."
    at = alert.opened_at + timedelta(hours=6)
    bisects.finish(session, asked.id, BisectState.OVER, said=said, at=at)
