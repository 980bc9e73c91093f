"""Weeks of a fork in a real store: commits with their runs, verdicts and alerts, each at its time.

What `stored_fork` tells of one morning is told here of any day; the rows are moved there after they
were written the ordinary way.
"""

from __future__ import annotations

import hashlib
import math
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import update

from reports.sentence import sentence
from service.core.model import Alert, AlertState, AlertWorkload, CommitOutcome
from service.flows import host_noise
from service.store import alerts, commits, forks
from service.store.tables import AlertRow, RunRow, VerdictRow
from tests.fakes.stored_fork import a_pair, a_stored_run, git_commit, measured
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.orm import Session

    from detectors.verdict import Verdict
    from results.document import RunDocument

#: The Monday of the week 2026-W45.
MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEK = timedelta(weeks=1)
SAME = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
SLOWER = a_verdict(-9.1, low=-10.0, high=-8.2)
FASTER = a_verdict(9.8, low=8.9, high=10.7)


def sha_of(number: int) -> str:
    """Return the hash of the n-th commit, which looks like one."""
    return hashlib.sha1(str(number).encode()).hexdigest()


def with_baseline(verdict: Verdict, runs: int) -> Verdict:
    """Return a verdict whose baseline had so many runs."""
    return replace(verdict, change=replace(verdict.change, n_baseline=runs))


@dataclass
class Weeks:
    """A fork whose commits come one after the other."""

    session: Session
    fork: str = "demo"
    count: int = 0

    def commit(
        self,
        at: datetime,
        *,
        subject: str = "A change",
        author: str = "Ada",
        scan: float = 2.0,
        point: float = 63_000.0,
        found: Mapping[str, Verdict] | None = None,
        outcome: CommitOutcome = CommitOutcome.NO_CHANGE,
    ) -> str:
        """Store a commit that was seen, measured alone and finished at this time."""
        sha = self._seen(at, subject=subject, author=author)
        document = a_stored_run(
            self.session,
            measured(f"{self.fork}-{self.count}", sha, scan=scan, point=point, fork=self.fork),
            found,
        )
        self._moved(document, at)
        self._finished(sha, outcome, found or {}, at)
        return sha

    def confirmed(
        self,
        at: datetime,
        found: Mapping[str, Verdict],
        *,
        outcome: CommitOutcome = CommitOutcome.REGRESSION,
        subject: str = "A change",
        author: str = "Ada",
        scan: float = 1.82,
        point: float = 63_000.0,
    ) -> RunDocument:
        """Store a commit that a paired job was made for; return that job's run."""
        sha = self._seen(at, subject=subject, author=author)
        name = f"{self.fork}-{self.count}"
        single = a_stored_run(
            self.session, measured(name, sha, scan=scan, point=point, fork=self.fork), found
        )
        pair = a_stored_run(
            self.session, a_pair(f"{name}c", sha, sha_of(self.count - 1), fork=self.fork), found
        )
        self._moved(single, at)
        self._moved(pair, at)
        self._finished(sha, outcome, found, at)
        return pair

    def alert(self, pair: RunDocument, found: Mapping[str, Verdict], at: datetime) -> str:
        """Open an alert about a paired run; return its id."""
        assert pair.baseline is not None
        alert = Alert(
            id=f"alert-{pair.id}",
            fork=self.fork,
            sha=pair.candidate.commit.sha,
            subject="",
            author="",
            baseline_sha=pair.baseline.commit.sha,
            state=AlertState.CONFIRMED,
            workloads=tuple(
                AlertWorkload(
                    workload=workload,
                    effect=verdict.change.effect,
                    low=verdict.change.interval.low,
                    high=verdict.change.interval.high,
                    p_value=verdict.change.p_value,
                    gate=verdict.gate,
                )
                for workload, verdict in found.items()
            ),
            run=pair.id,
            opened_at=at,
        )
        alerts.open_once(self.session, alert)
        return alert.id

    def closed(self, alert: str, state: AlertState, at: datetime, *, true: bool | None) -> None:
        """Close an alert at this time, with what people say of it."""
        self._change(alert, state=state, closed_at=at, true_alarm=true)

    def owned(self, alert: str, owner: str) -> None:
        """Give an alert to somebody, who has seen it."""
        self._change(alert, state=AlertState.ACKNOWLEDGED, owner=owner)

    def _change(self, alert: str, **values: object) -> None:
        self.session.execute(update(AlertRow).where(AlertRow.id == alert).values(**values))

    def _seen(self, at: datetime, *, subject: str, author: str) -> str:
        self.count += 1
        sha = sha_of(self.count)
        parent = sha_of(self.count - 1) if self.count > 1 else None
        forks.ensure(self.session, self.fork, branch="main", at=at)
        commit = git_commit(sha, parent=parent, subject=subject, author=author)
        commits.register(self.session, self.fork, [commit], at=at)
        return sha

    def _finished(
        self, sha: str, outcome: CommitOutcome, found: Mapping[str, Verdict], at: datetime
    ) -> None:
        reason = sentence(found, at=sha)
        commits.finish(self.session, self.fork, sha, outcome=outcome, reason=reason, at=at)

    def _moved(self, document: RunDocument, at: datetime) -> None:
        """Give a run's rows their time, as if it had been stored then."""
        host_noise.record(self.session, document, at=at)
        self.session.execute(update(RunRow).where(RunRow.id == document.id).values(stored_at=at))
        self.session.execute(
            update(VerdictRow).where(VerdictRow.run == document.id).values(created_at=at)
        )
        self.session.flush()


def a_telling_week(session: Session) -> None:
    """Store the week that docs/digest.md shows: 40 commits with a slow drift, then a slow one."""
    luck = random.Random(45)
    weeks = Weeks(session)
    calm = {"scan": SAME, "point-query": SAME}
    before = weeks.commit(MONDAY - 6 * DAY, subject="Import 10.11.19", found=calm)
    assert before == sha_of(1)
    lost = weeks.confirmed(
        MONDAY - 5 * DAY, {"scan": SLOWER, "point-query": SAME}, subject="Read rows one by one"
    )
    old = weeks.alert(lost, {"scan": SLOWER}, MONDAY - 5 * DAY)
    weeks.confirmed(
        MONDAY + HOUR,
        {"scan": FASTER, "point-query": SAME},
        outcome=CommitOutcome.IMPROVEMENT,
        subject="Read rows in batches again",
        scan=2.0,
    )
    weeks.closed(old, AlertState.FIXED, MONDAY + HOUR, true=True)
    for number in range(40):
        weeks.commit(
            MONDAY + (2 + number) * HOUR,
            scan=2.0 * math.exp(luck.gauss(0, 0.004)),
            point=63_000.0 * math.exp(-0.0015 * number + luck.gauss(0, 0.004)),
            found=calm,
        )
    slow = weeks.confirmed(
        MONDAY + 3 * DAY,
        {"scan": SLOWER, "point-query": SAME},
        subject="Check the record format in row_search_mvcc",
        author="Grace",
    )
    weeks.owned(weeks.alert(slow, {"scan": SLOWER}, MONDAY + 3 * DAY), "github:grace")
