"""A long history in a store, written by the service's own code.

A branch and a shape come in, rows go out: each commit is registered, ordered, taken in and
finished as the flow of a commit does it. Verdicts of most commits are those of one that was judged,
with other numbers and their own baseline; the others are judged, and some of them lost something.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.service.documents import FORK, HOST_CLASS, Shape, Wanted, document_of, measured
from reports.sentence import sentence
from results.job import JobOrder
from results.slice import SideName
from service.core.clock import SystemClock
from service.core.model import CommitOutcome, CommitState, EventKind, JobKind
from service.core.settings import load_settings
from service.flows.baseline import BASELINE_RUNS_MAX
from service.flows.intake import take_run
from service.flows.orders import job_of, single_order
from service.flows.steps import credential_hash
from service.flows.verdict_steps import judge_own_run, judge_paired_run
from service.store import commits, events, forks, jobs, verdicts
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy.orm import Session

    from benchmarks.service.branch import Branch
    from results.document import RunDocument, Start
    from service.core.model import CommitRecord, VerdictRecord
    from service.flows.judge import Conclusion
    from service.store.database import Database

#: The plan that jobs are ordered with. The names of workloads are filled in.
PLAN: Final = """
[fork]
name = "bench"
branch = "main"
engine = "mariadb"

[builds.rel]

[datasets.small]
rows = 50_000_000

[suites.commit]
workloads = [{workloads}]

[gates]
default = 0.05
"""
#: Commits of one transaction, as of one push.
BATCH: Final = 50
#: Of SQLite, while a store is filled: a transaction touches some ten thousand pages of indexes.
CACHE_KIB: Final = 200_000
#: Different measurements that quiet commits share.
BODIES: Final = 32
PAIR_STARTS: Final = 6
#: What a slow commit leaves of the throughput of so many workloads.
LEFT: Final = 0.85
SLOWED: Final = 3
#: Credentials of jobs; the store's clock is another one than the service's.
_GOOD_FOR: Final = timedelta(days=36_500)


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """A commit whose job is out."""

    commit: CommitRecord
    order: JobOrder
    #: Of the job.
    credential: str


class Filler:
    """Writes commits into a store, one after the other."""

    def __init__(
        self,
        branch: Branch,
        shape: Shape,
        *,
        seed: int,
        alert_every: int = 100,
        judged_first: int = BASELINE_RUNS_MAX,
        seconds_kept: int = 200,
    ) -> None:
        """Begin with nothing stored.

        Args:
            branch: The commits.
            shape: Of their documents.
            seed: Of everything random.
            alert_every: One commit of so many is slow, is confirmed, and has an alert.
            judged_first: The first so many commits are judged, and the one that gives the pattern.
            seconds_kept: The newest so many documents have their seconds.
        """
        self.branch, self.shape = branch, shape
        self._rng = random.Random(seed)
        self._alert_every, self._judged_first = alert_every, judged_first
        self._seconds_kept = seconds_kept
        self._plan = PLAN.format(workloads=", ".join(f'"{name}"' for name in shape.workloads))
        self._parsed = parse_plan(self._plan)
        self._settings = load_settings(suite="commit", host_class=HOST_CLASS)
        self._bodies = {
            with_seconds: [
                measured(shape, self._rng, Wanted(with_seconds=with_seconds)) for _ in range(BODIES)
            ]
            for with_seconds in (False, True)
        }
        self._pattern: list[VerdictRecord] = []
        self._past: deque[str] = deque(maxlen=BASELINE_RUNS_MAX)

    def fill(self, database: Database, *, say: Callable[[str], None]) -> None:
        """Store all commits of the branch."""
        with database.writing() as session:
            # Seen today, whatever its commits' times: no digest of their weeks is due.
            forks.ensure(session, FORK, branch="main", at=SystemClock().now())
        for begin in range(0, self.branch.commits, BATCH):
            places = range(begin, min(begin + BATCH, self.branch.commits))
            with database.writing() as session:
                _remember_more(session)
                found = self._registered(session, places)
                for place, commit in zip(places, found, strict=True):
                    self._take(session, place, commit)
            say(f"{places[-1] + 1:,} of {self.branch.commits:,} commits stored")
        # What is measured has connections of the usual kind.
        database.engine.dispose()

    def ordered(self, session: Session, place: int) -> Ordered:
        """Write down a commit and the job that measures it."""
        (commit,) = self._registered(session, range(place, place + 1))
        return self._order(session, commit, place)

    def document(self, ordered: Ordered, place: int, *, with_seconds: bool) -> RunDocument:
        """Return the document of a quiet commit."""
        body = self._rng.choice(self._bodies[with_seconds])
        return self._document(ordered, place, body)

    def _registered(self, session: Session, places: range) -> list[CommitRecord]:
        told = [self.branch.commit(place) for place in places]
        found = commits.register(session, FORK, told, at=self.branch.at(places[0]))
        for commit in found:
            self._say(session, commit, EventKind.SEEN, f"seen on main: {commit.subject}", places[0])
        return found

    def _order(self, session: Session, commit: CommitRecord, place: int) -> Ordered:
        order = single_order(
            commit,
            plan=self._parsed,
            plan_text=self._plan,
            repository=Path("/nowhere"),
            unchanged_from=None,
            settings=self._settings,
        )
        at = self.branch.at(place)
        jobs.create_once(session, job_of(order, fork=FORK, kind=JobKind.SINGLE, at=at))
        commits.mark(session, FORK, commit.sha, CommitState.MEASURING)
        ordered = Ordered(commit=commit, order=order, credential=f"credential-of-{order.job}")
        self._begin(session, ordered, place)
        return ordered

    def _begin(self, session: Session, ordered: Ordered, place: int) -> None:
        jobs.begin_attempt(
            session,
            ordered.order.job,
            1,
            credential_hash=credential_hash(ordered.credential),
            expires_at=self.branch.at(place) + _GOOD_FOR,
        )
        said = f"job started on host class {HOST_CLASS}"
        about = ordered.order.job
        self._say(session, ordered.commit, EventKind.DISPATCHED, said, place, about=about)

    def _take(self, session: Session, place: int, commit: CommitRecord) -> None:
        """Store what a commit measured, and what came of it."""
        ordered = self._order(session, commit, place)
        slow = place >= self._judged_first and place % self._alert_every == self._alert_every - 1
        if slow:
            self._judged(session, ordered, place, left=self._slowed(place))
        elif self._pattern:
            self._like_pattern(session, ordered, place)
        else:
            self._judged(session, ordered, place, left={})
            self._learn(session, ordered, place)
        self._past.append(ordered.order.run)

    def _like_pattern(self, session: Session, ordered: Ordered, place: int) -> None:
        """Finish a quiet commit with verdicts like those of the pattern."""
        at, sha = self.branch.at(place), ordered.commit.sha
        self._stored(session, ordered, self._quiet(ordered, place), place)
        inputs = tuple((run, SideName.CANDIDATE.value) for run in self._past)
        found = [
            replace(
                one,
                run=ordered.order.run,
                sha=sha,
                effect=one.effect * self._rng.uniform(-1, 1),
                detectable_effect=one.detectable_effect * self._rng.uniform(0.9, 1.1),
                baseline_inputs=inputs,
                created_at=at,
            )
            for one in self._pattern
        ]
        verdicts.store_once(session, found)
        said = sentence({one.series.workload: one.verdict for one in found}, at=sha)
        self._say(session, ordered.commit, EventKind.JUDGED, said, place, about=ordered.order.run)
        self._finish(session, ordered, place, CommitOutcome.NO_CHANGE, said)

    def _learn(self, session: Session, ordered: Ordered, place: int) -> None:
        """Take the verdicts of a quiet commit with a full baseline as the pattern."""
        found = verdicts.of_run(session, ordered.order.run)
        if place >= self._judged_first and not any(one.suspicious for one in found):
            self._pattern = found

    def _judged(
        self, session: Session, ordered: Ordered, place: int, *, left: Mapping[str, float]
    ) -> None:
        """Judge a commit as the flow does, with a pair where it is suspicious."""
        at = self.branch.at(place)
        document = self._quiet(ordered, place)
        if left:
            wanted = Wanted(left=left, with_seconds=self._has_seconds(place))
            document = self._document(ordered, place, measured(self.shape, self._rng, wanted))
        self._stored(session, ordered, document, place)
        job = jobs.find(session, ordered.order.job)
        assert job is not None, "it was ordered"
        confirm, conclusion = judge_own_run(session, job, document, at=at)
        if confirm is not None:
            conclusion = self._confirmed(session, ordered, confirm, place, left=left)
        assert conclusion is not None, "a commit has a conclusion in the end"
        self._finish(session, ordered, place, conclusion.outcome, conclusion.reason)

    def _confirmed(
        self,
        session: Session,
        ordered: Ordered,
        confirm: str,
        place: int,
        *,
        left: Mapping[str, float],
    ) -> Conclusion:
        """Measure a suspicious commit beside its baseline, and judge the pair."""
        job = jobs.find(session, confirm)
        assert job is not None, "the judge has just ordered it"
        order = JobOrder.model_validate_json(job.order)
        baseline = commits.find(session, FORK, order.baseline or "")
        paired = replace(ordered, order=order, credential=f"credential-of-{confirm}")
        self._begin(session, paired, place)
        wanted = Wanted(
            sides=(SideName.BASELINE, SideName.CANDIDATE),
            left=left,
            with_seconds=self._has_seconds(place),
        )
        shape = replace(self.shape, starts=PAIR_STARTS)
        document = document_of(
            order,
            measured(shape, self._rng, wanted),
            candidate=ordered.commit,
            baseline=baseline,
            at=self.branch.at(place),
        )
        self._stored(session, paired, document, place)
        stored = jobs.find(session, confirm)
        assert stored is not None, "it was there a moment ago"
        return judge_paired_run(session, stored, at=self.branch.at(place)).conclusion

    def _stored(
        self, session: Session, ordered: Ordered, document: RunDocument, place: int
    ) -> None:
        job = jobs.find(session, ordered.order.job)
        assert job is not None, "it was ordered"
        take_run(session, document, job, at=self.branch.at(place))

    def _quiet(self, ordered: Ordered, place: int) -> RunDocument:
        return self.document(ordered, place, with_seconds=self._has_seconds(place))

    def _document(self, ordered: Ordered, place: int, body: tuple[Start, ...]) -> RunDocument:
        at = self.branch.at(place)
        return document_of(ordered.order, body, candidate=ordered.commit, at=at)

    def _has_seconds(self, place: int) -> bool:
        return place >= self.branch.commits - self._seconds_kept

    def _slowed(self, place: int) -> dict[str, float]:
        """Return which workloads a slow commit slows: others than the one before it did."""
        names = self.shape.workloads
        first = SLOWED * (place // self._alert_every)
        return {names[(first + number) % len(names)]: LEFT for number in range(SLOWED)}

    def _finish(
        self,
        session: Session,
        ordered: Ordered,
        place: int,
        outcome: CommitOutcome,
        reason: str,
    ) -> None:
        commit, at = ordered.commit, self.branch.at(place)
        commits.finish(session, FORK, commit.sha, outcome=outcome, reason=reason, at=at)
        self._say(session, commit, EventKind.FINISHED, f"{outcome.value}: {reason}", place)

    def _say(
        self,
        session: Session,
        commit: CommitRecord,
        kind: EventKind,
        message: str,
        place: int,
        *,
        about: str = "",
    ) -> None:
        at = self.branch.at(place)
        events.append_once(session, FORK, commit.sha, kind, message, at=at, about=about)


def _remember_more(session: Session) -> None:
    """Have SQLite keep the pages of a whole transaction in memory."""
    connection = session.connection()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA cache_size=-{CACHE_KIB}")
