"""Backfills: orders to measure past commits, and the steps that do it one commit at a time.

What is measured here is history: it becomes a part of baselines and is judged in no other way, so
it raises no alert. A change of level in it begins the baseline at the present level, by a mark.
Measuring is that of any commit (`steps`); `aside_flow` makes it durable and last in the queue.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.sentence import outcome_sentence
from results.document import Outcome
from results.job import JobOrder
from service.core.backfills import (
    COMMITS_MAX,
    Backfill,
    BackfillOrder,
    BackfillProgress,
    BackfillRefusedError,
    BackfillState,
    in_order,
)
from service.core.errors import NotFoundError
from service.core.model import CommitOutcome, EventKind, JobKind, JobState
from service.flows.alert_actions import NAME_LENGTH_MAX
from service.flows.baseline import newest_measured
from service.flows.old_levels import mark_levels
from service.flows.orders import job_of, single_order
from service.flows.watcher import LOOK_COMMITS_MAX
from service.store import backfills, commits, events, jobs, runs
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.core.clock import Clock
    from service.core.model import GitCommit, Job
    from service.core.ports import CodeHost
    from service.core.settings import Settings
    from service.flows.steps import Sight, Steps
    from service.store.database import Database

HISTORY: Final = "measured for the baseline alone: it is from before the first judged commit"


@dataclass(frozen=True, kw_only=True)
class Backfills:
    """Orders about backfills."""

    database: Database
    clock: Clock
    code_host: CodeHost

    def ask(self, fork: str, count: int, *, order: BackfillOrder, actor: str, via: str) -> Backfill:
        """Begin a backfill of the newest commits before the first one that was seen.

        Raises:
            NotFoundError: The service does not watch that fork, or has not seen its branch.
            BackfillRefusedError: One is under way, or there are no such commits.
            CodeHostError: The repository cannot be read.
        """
        if not 1 <= count <= COMMITS_MAX:
            raise BackfillRefusedError(f"a backfill has 1 to {COMMITS_MAX} commits")
        chosen, first = self._chosen(fork, count)
        now, shas = self.clock.now(), [one.sha for one in chosen]
        with self.database.writing() as session:
            others = backfills.under_way(session, fork)
            if others:
                raise BackfillRefusedError(
                    f"a backfill of {len(others[0].commits)} commits is under way; "
                    "wait for its end, or cancel it"
                )
            reason = "not measured yet: a backfill comes to it when nothing else waits"
            for one in commits.register_before(session, fork, chosen, at=now, reason=reason):
                said = f"known from a backfill by {actor}: {one.subject}"
                events.append_once(session, fork, one.sha, EventKind.SEEN, said, at=now)
            if not backfills.unmeasured(session, fork, shas):
                raise BackfillRefusedError(f"all {count} commits before {first} were looked at")
            backfill = Backfill(
                id=_id(fork, number=backfills.count(session)),
                fork=fork,
                state=BackfillState.UNDER_WAY,
                order=order,
                before_sha=first,
                commits=in_order(shas, order),
                asked_by=actor[:NAME_LENGTH_MAX],
                via=via,
                said="",
                created_at=now,
                finished_at=None,
            )
            backfills.add(session, backfill)
        return backfill

    def cancel(self, fork: str, *, actor: str) -> BackfillProgress:
        """End the backfill of a fork; what was measured stays, a job under way is measured still.

        Raises:
            NotFoundError: None is under way.
        """
        with self.database.writing() as session:
            found = backfills.under_way(session, fork)
            if not found:
                raise NotFoundError(f"no backfill of {fork!r} is under way")
            said, now = f"ended by {actor}", self.clock.now()
            ended = backfills.finish(
                session, found[0].id, BackfillState.CANCELLED, said=said, at=now
            )
            return backfills.progress(session, ended)

    def newest(self, fork: str) -> list[BackfillProgress]:
        """Return the backfills of a fork, newest first."""
        with self.database.reading() as session:
            return backfills.newest(session, fork)

    def _chosen(self, fork: str, count: int) -> tuple[list[GitCommit], str]:
        """Return the newest commits before the first one seen, oldest first, and that one."""
        plan = parse_plan(self.code_host.plan_text())
        if fork != plan.fork.name:
            raise NotFoundError(f"the service watches {plan.fork.name!r}, not {fork!r}")
        with self.database.reading() as session:
            seen = commits.seen(session, fork)
        # What was pushed since the last look at the branch comes on top.
        limit = len(seen) + count + LOOK_COMMITS_MAX
        found = self.code_host.branch_commits(plan.fork.branch, limit=limit)
        place = next((at for at, one in enumerate(found) if one.sha in seen), None)
        if place is None:
            raise NotFoundError(f"no commit of {fork!r} was seen yet; is the service running?")
        if place == 0:
            raise BackfillRefusedError(f"there is no commit before {found[0].sha}, the first seen")
        return found[max(0, place - count) : place], found[place].sha


@dataclass(frozen=True, kw_only=True)
class BackfillSteps:
    """The steps of one commit of a backfill; it is named by both, `BACKFILL/SHA`."""

    #: Those of any commit, of which dispatching and looking are used here.
    steps: Steps

    @property
    def settings(self) -> Settings:
        """Of the service."""
        return self.steps.settings

    def waiting(self) -> list[str]:
        """Return the commits that are still to be measured, in their order."""
        with self.steps.database.reading() as session:
            found = []
            for backfill in backfills.under_way(session):
                left = backfills.unmeasured(session, backfill.fork, backfill.commits)
                found += [f"{backfill.id}/{sha}" for sha in backfill.commits if sha in left]
        return found

    def order(self, about: str) -> str | None:
        """Write down the job of a commit and return it; None where nobody wants it any more.

        Raises:
            CodeHostError, PlanError: The plan cannot be read or is wrong.
        """
        text = self.steps.code_host.plan_text()
        plan = parse_plan(text)
        with self.steps.database.writing() as session:
            backfill, sha = _named(session, about)
            commit = commits.find(session, backfill.fork, sha)
            assert commit is not None, "a backfill writes its commits down"
            wanted = backfill.state is BackfillState.UNDER_WAY
            if not wanted or commit.outcome is not CommitOutcome.SKIPPED:
                return None
            asked = single_order(
                commit,
                plan=plan,
                plan_text=text,
                repository=self.steps.code_host.repository,
                unchanged_from=newest_measured(session, backfill.fork, sha),
                settings=self.settings,
            )
            at = self.steps.clock.now()
            job = job_of(asked, fork=backfill.fork, kind=JobKind.SINGLE, at=at)
            return jobs.create_once(session, job).id

    def dispatch(self, job_id: str, attempt: int) -> None:
        """Start a runner on a job that has neither a runner nor a run."""
        self.steps.dispatch(job_id, attempt)

    def look(self, job_id: str, attempt: int) -> Sight:
        """Return what to do about a job; its document is taken in as any other."""
        return self.steps.look(job_id, attempt)

    def note(self, about: str) -> None:
        """Write down what came of a commit, and where its past shows another level."""
        now = self.steps.clock.now()
        with self.steps.database.writing() as session:
            backfill, sha = _named(session, about)
            job = _own_job(session, backfill.fork, sha)
            outcome, reason = _outcome(session, job)
            commits.fill(session, backfill.fork, sha, outcome=outcome, reason=reason, at=now)
            said = f"{outcome.value}: {reason}"
            events.append_once(session, backfill.fork, sha, EventKind.FINISHED, said, at=now)
            gates = parse_plan(JobOrder.model_validate_json(job.order).plan).gates
            mark_levels(session, backfill, gates, at=now)
            if not backfills.unmeasured(session, backfill.fork, backfill.commits):
                done = f"looked at {len(backfill.commits)} commits"
                backfills.finish(session, backfill.id, BackfillState.DONE, said=done, at=now)

    def give_up(self, about: str, error: str) -> None:
        """End a backfill that the service itself could not go on with; it may be asked again."""
        with self.steps.database.writing() as session:
            backfill, _ = _named(session, about)
            said = f"the service could not go on ({error}); its log says more"
            now = self.steps.clock.now()
            backfills.finish(session, backfill.id, BackfillState.CANCELLED, said=said, at=now)


def _outcome(session: Session, job: Job) -> tuple[CommitOutcome, str]:
    """Return what came of a commit's own job."""
    if job.state is not JobState.STORED:
        return CommitOutcome.FAILED, f"{job.id} brought no run after {job.attempts} attempts"
    document = runs.document(session, job.run)
    if document.outcome is Outcome.MEASURED:
        return CommitOutcome.BASELINE, HISTORY
    said = outcome_sentence(document.outcome, at=job.sha, failure=document.failure)
    return CommitOutcome(document.outcome.value), said


def _own_job(session: Session, fork: str, sha: str) -> Job:
    for job in jobs.of_commit(session, fork, sha):
        if job.kind is JobKind.SINGLE:
            return job
    raise NotFoundError(f"{sha} has no job of its own")


def _named(session: Session, about: str) -> tuple[Backfill, str]:
    backfill_id, _, sha = about.partition("/")
    backfill = backfills.find(session, backfill_id)
    assert backfill is not None, "a backfill is written down before its commits are measured"
    return backfill, sha


def _id(fork: str, *, number: int) -> str:
    return f"backfill-{number}-{hashlib.sha256(fork.encode()).hexdigest()[:8]}"
