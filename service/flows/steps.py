"""The steps of a commit's flow: each one is done whole, and doing it again changes nothing.

A step reads what it needs, decides, and writes in one transaction; runners are started and people
told after the transaction. `commit_flow` puts the steps in order and makes them durable.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from reports.sentence import outcome_sentence
from results.document import Outcome
from results.job import JobOrder
from service.core.model import CommitOutcome, EventKind, JobKind, JobState, JobStatus
from service.flows.baseline import newest_measured
from service.flows.dispatching import why_lost
from service.flows.intake import parse_document, take_run
from service.flows.orders import job_of, single_order
from service.flows.verdict_steps import judge_own_run, judge_paired_run, read_alert
from service.store import commits, events, jobs, runs
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sqlalchemy.orm import Session

    from results.document import RunDocument
    from service.core.clock import Clock
    from service.core.model import Job
    from service.core.ports import AlertSink, CodeHost, Dispatcher
    from service.core.settings import Settings
    from service.store.database import Database

_log = logging.getLogger("forkwatch.flow")

#: How long a credential is good beyond the job's own time: a runner that finds no service keeps
#: trying, and a service may be down overnight.
CREDENTIAL_GRACE: Final = timedelta(days=1)
CREDENTIAL_BYTES: Final = 32
#: Kept of an unexpected error in a commit's reason; the log has all of it.
ERROR_LENGTH_MAX: Final = 500


class Sight(StrEnum):
    """What the flow should do after a look at a job."""

    #: The run is in the store: go on.
    STORED = "stored"
    #: A runner works on it: wait.
    WAIT = "wait"
    #: Its runner is gone: start another.
    RESTART = "restart"
    #: Runners were lost too often, or it took too long: go on without.
    GIVE_UP = "give-up"


def sight_of(
    dispatcher: Dispatcher,
    job: str,
    status: JobStatus,
    *,
    take: Callable[[RunDocument], None],
    attempt: int,
    started_at: datetime | None,
    now: datetime,
    settings: Settings,
) -> Sight:
    """Return what to do about a job: take what it brought, wait, stop it or start it again.

    Args:
        dispatcher: Who does it.
        job: Which.
        status: What the dispatcher says of it.
        take: Refuses the document of another job, and stores that of this one.
        attempt: Counts the runners of the job.
        started_at: When the present one was begun.
        now: The time.
        settings: Of the service.

    Raises:
        BadDocumentError, CredentialRefusedError: The runner left something else there.
    """
    if status is JobStatus.FINISHED:
        take(parse_document(dispatcher.collect(job)))
        return Sight.STORED
    if status is JobStatus.ALIVE:
        assert started_at is not None, "a runner is noted before it is started"
        if now - started_at <= timedelta(minutes=settings.job_timeout_minutes):
            return Sight.WAIT
        dispatcher.stop(job)
        return Sight.GIVE_UP
    _log.warning("job %s: runner lost on attempt %d", job, attempt)
    return Sight.GIVE_UP if attempt >= settings.runner_attempts_max else Sight.RESTART


def credential_hash(credential: str) -> str:
    """Return the form in which a credential is stored; 256 random bits need no salt."""
    return hashlib.sha256(credential.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps, with everything they touch."""

    database: Database
    clock: Clock
    code_host: CodeHost
    dispatcher: Dispatcher
    alerts: AlertSink
    settings: Settings

    def order_single(self, fork: str, sha: str) -> str | None:
        """Write down the job that measures this commit alone; return its id.

        None where it was skipped while it waited.

        Raises:
            CodeHostError, PlanError: The plan cannot be read or is wrong.
        """
        text = self.code_host.plan_text()
        plan = parse_plan(text)
        with self.database.writing() as session:
            commit = commits.begin(session, fork, sha)
            if commit is None:
                return None
            order = single_order(
                commit,
                plan=plan,
                plan_text=text,
                repository=self.code_host.repository,
                unchanged_from=newest_measured(session, fork, sha),
                settings=self.settings,
            )
            job = job_of(order, fork=fork, kind=JobKind.SINGLE, at=self.clock.now())
            jobs.create_once(session, job)
        return job.id

    def dispatch(self, job_id: str, attempt: int) -> None:
        """Start a runner on a job that has neither a runner nor a run.

        Raises:
            DispatchError: No runner could be started.
        """
        with self.database.reading() as session:
            job = _job(session, job_id)
        if job.state is JobState.STORED or self.dispatcher.status(job_id) is not JobStatus.LOST:
            return
        # A fresh credential each time: the one of a lost runner is of no use to anybody after.
        credential = secrets.token_urlsafe(CREDENTIAL_BYTES)
        now = self.clock.now()
        lifetime = timedelta(minutes=self.settings.job_timeout_minutes) + CREDENTIAL_GRACE
        with self.database.writing() as session:
            jobs.begin_attempt(
                session,
                job_id,
                attempt,
                credential_hash=credential_hash(credential),
                expires_at=now + lifetime,
            )
            again = "" if attempt == 1 else f", attempt {attempt}"
            events.append_once(
                session,
                job.fork,
                job.sha,
                EventKind.DISPATCHED,
                f"{job.kind.value} job started on host class {job.host_class}{again}",
                at=now,
                about=f"{job_id}:{attempt}",
            )
        order = JobOrder.model_validate({**_order(job), "credential": credential})
        self.dispatcher.start(order)

    def look(self, job_id: str, attempt: int) -> Sight:
        """Return what to do about a job; a document found in its folder is taken in here.

        Raises:
            BadDocumentError, CredentialRefusedError: The runner left something else there.
        """
        with self.database.reading() as session:
            job = _job(session, job_id)
        if job.state is JobState.STORED:
            return Sight.STORED
        status = self.dispatcher.status(job_id)
        if status is JobStatus.FINISHED:
            document = parse_document(self.dispatcher.collect(job_id))
            with self.database.writing() as session:
                take_run(session, document, job, at=self.clock.now())
            return Sight.STORED
        if status is JobStatus.ALIVE:
            return self._overdue(job)
        last = attempt >= self.settings.runner_attempts_max
        self._note_lost(job, attempt, last=last)
        return Sight.GIVE_UP if last else Sight.RESTART

    def judge_single(self, job_id: str) -> str | None:
        """Judge a commit's own job; return the job that has to confirm a suspicion, if any.

        Without a suspicion the commit is finished here.
        """
        now = self.clock.now()
        with self.database.writing() as session:
            job = _job(session, job_id)
            if job.state is not JobState.STORED:
                self._finish(
                    session,
                    job,
                    CommitOutcome.FAILED,
                    f"{job_id} brought no run after {job.attempts} attempts; {self._why(job_id)}",
                )
                return None
            document = runs.document(session, job.run)
            if document.outcome is not Outcome.MEASURED:
                reason = outcome_sentence(document.outcome, at=job.sha, failure=document.failure)
                self._finish(session, job, CommitOutcome(document.outcome.value), reason)
                return None
            confirm, conclusion = judge_own_run(session, job, document, at=now)
            if confirm is not None:
                return confirm
            assert conclusion is not None, "a run without a suspicion has a conclusion"
            self._finish(session, job, conclusion.outcome, conclusion.reason)
        return None

    def judge_confirm(self, job_id: str) -> str | None:
        """Judge a paired job; return the id of the alert it raises, if any."""
        with self.database.writing() as session:
            return judge_paired_run(session, _job(session, job_id), at=self.clock.now()).alert

    def tell(self, alert_id: str) -> None:
        """Tell people about an alert."""
        page = f"{self.settings.pages_url}/alerts/{alert_id}"
        with self.database.reading() as session:
            alert, text, notify = read_alert(session, alert_id, page=page)
        where = self.alerts.raise_alert(alert, text, notify)
        with self.database.writing() as session:
            events.append_once(
                session,
                alert.fork,
                alert.sha,
                EventKind.ALERTED,
                f"alert {alert.id} told: {where}",
                at=self.clock.now(),
                about=alert.id,
            )

    def note_untold(self, fork: str, sha: str, error: str) -> None:
        """Record that an alert is open and nobody could be told."""
        with self.database.writing() as session:
            events.append_once(
                session,
                fork,
                sha,
                EventKind.ALERTED,
                f"the alert is open, and telling failed: {error[:ERROR_LENGTH_MAX]}",
                at=self.clock.now(),
                about="untold",
            )

    def finish_confirmed(self, job_id: str) -> None:
        """Finish a commit whose paired job has been judged."""
        with self.database.writing() as session:
            job = _job(session, job_id)
            conclusion = judge_paired_run(session, job, at=self.clock.now()).conclusion
            self._finish(session, job, conclusion.outcome, conclusion.reason)

    def give_up(self, fork: str, sha: str, error: str) -> None:
        """Finish a commit that the service itself could not follow to the end."""
        with self.database.writing() as session:
            reason = f"the service could not go on: {error[:ERROR_LENGTH_MAX]}"
            self._finish_commit(session, fork, sha, CommitOutcome.FAILED, reason)

    def _overdue(self, job: Job) -> Sight:
        allowed = timedelta(minutes=self.settings.job_timeout_minutes)
        if self.clock.now() - job.created_at <= allowed:
            return Sight.WAIT
        self.dispatcher.stop(job.id)
        with self.database.writing() as session:
            jobs.finish(session, job.id, JobState.ABANDONED, at=self.clock.now())
            events.append_once(
                session,
                job.fork,
                job.sha,
                EventKind.RUNNER_LOST,
                f"{job.kind.value} job stopped: it took more than {allowed}",
                at=self.clock.now(),
                about=f"{job.id}:overdue",
            )
        return Sight.GIVE_UP

    def _note_lost(self, job: Job, attempt: int, *, last: bool) -> None:
        then = "given up" if last else "starting another"
        because = why_lost(self.dispatcher, job.id)
        said = f" ({because})" if because else ""
        _log.warning("job %s: runner lost on attempt %d, %s", job.id, attempt, then)
        with self.database.writing() as session:
            if last:
                jobs.finish(session, job.id, JobState.ABANDONED, at=self.clock.now())
            events.append_once(
                session,
                job.fork,
                job.sha,
                EventKind.RUNNER_LOST,
                f"the runner of the {job.kind.value} job was lost on attempt {attempt}{said}; "
                f"{then}",
                at=self.clock.now(),
                about=f"{job.id}:{attempt}",
            )

    def _why(self, job_id: str) -> str:
        """Return why a job brought nothing, or where to look for that."""
        log = f"its log is in the service's home, jobs/{job_id}/log"
        return why_lost(self.dispatcher, job_id, otherwise=log)

    def _finish(self, session: Session, job: Job, outcome: CommitOutcome, reason: str) -> None:
        self._finish_commit(session, job.fork, job.sha, outcome, reason)

    def _finish_commit(
        self, session: Session, fork: str, sha: str, outcome: CommitOutcome, reason: str
    ) -> None:
        now = self.clock.now()
        commits.finish(session, fork, sha, outcome=outcome, reason=reason, at=now)
        events.append_once(
            session, fork, sha, EventKind.FINISHED, f"{outcome.value}: {reason}", at=now
        )


def _order(job: Job) -> dict[str, object]:
    return JobOrder.model_validate_json(job.order).model_dump(exclude={"credential"})


def _job(session: Session, job_id: str) -> Job:
    job = jobs.find(session, job_id)
    assert job is not None, "a job is written down before anything is done about it"
    return job
