"""The steps of a pull request's flow: each one is done whole, and doing it again changes nothing.

News and orders come in; jobs, runners, checks and comments come of them. `pull_request_flow` puts
the steps in order and makes them durable.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from reports.numbers import short
from reports.sentence import outcome_sentence, sentence
from results.document import Outcome
from results.job import JobOrder
from service.core.errors import CodeHostError
from service.core.model import JobStatus
from service.core.pull_requests import UNDER_WAY, PullJobKind, PullJobState, PullRequest
from service.flows.dispatching import why_lost
from service.flows.intake import refuse_others
from service.flows.pull_judge import judge_pull, keep_verdicts
from service.flows.pull_orders import PUSHED, pull_order, run_job
from service.flows.pull_texts import comment_topic, shown
from service.flows.steps import Sight, sight_of
from service.store import forks, pull_jobs, pull_requests
from workloads.errors import CatalogError
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sqlalchemy.orm import Session

    from results.document import RunDocument
    from service.channels.github.webhooks import PullRequestChanged
    from service.core.clock import Clock
    from service.core.ports import CheckSink, CodeHost, Dispatcher, PullRequestComments
    from service.core.pull_requests import PullCommits, PullJob
    from service.core.settings import Settings
    from service.store.database import Database


#: What begins a measurement unasked; all other news only says what is so.
BEGINNING_ACTIONS: Final = ("opened", "synchronize", "reopened", "ready_for_review")


@dataclass(frozen=True, kw_only=True)
class Noted:
    """What follows from news of a pull request."""

    #: Has to be begun, unless it was already.
    job: PullJob | None = None
    #: Nobody waits for these any more.
    superseded: tuple[PullJob, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PullSteps:
    """The steps, with everything they touch."""

    database: Database
    clock: Clock
    code_host: CodeHost
    dispatcher: Dispatcher
    checks: CheckSink
    comments: PullRequestComments
    settings: Settings
    #: Held by whoever reads and then shows: else what is older may be shown over what is newer.
    alone: AbstractContextManager[object] = field(default_factory=nullcontext)

    def note(self, event: PullRequestChanged) -> Noted:
        """Write news down; return what follows from it, nothing from news older than what is known.

        Raises:
            CodeHostError: The plan cannot be read, or is wrong now.
        """
        try:
            fork = parse_plan(self.code_host.plan_text()).fork
        except CatalogError as error:
            raise CodeHostError(f"the plan cannot be used now: {error}") from error
        now = self.clock.now()
        with self.database.writing() as session:
            forks.ensure(session, fork.name, branch=fork.branch, at=now)
            known = pull_requests.find(session, fork.name, event.number)
            if known is not None and not _is_newer(event, known):
                return Noted(job=self._waiting(session, known))
            pull = _after(event, known, fork=fork.name)
            pull_requests.put(session, pull)
            said = (
                f"{short(pull.head_sha)} took its place"
                if pull.open
                else "the pull request was closed"
            )
            superseded = pull_jobs.supersede(
                session,
                fork.name,
                pull.number,
                keep_sha=pull.head_sha if pull.open else None,
                said=f"not measured to the end: {said}",
                at=now,
            )
            wanted = pull.open and not pull.draft and not pull.outside and pull.base == fork.branch
            if not wanted or event.action not in BEGINNING_ACTIONS:
                return Noted(superseded=tuple(superseded))
            job = self._run_of_head(session, pull)
        return Noted(job=job, superseded=tuple(superseded))

    def order(self, job_id: str) -> bool:
        """Write down what a runner will be asked; return whether there is anything to measure.

        Raises:
            CodeHostError: The repository cannot be read.
        """
        job = self._job(job_id)
        if job.state not in UNDER_WAY or job.order:
            return job.state in UNDER_WAY
        baseline, trouble = self._baseline(job)
        order = None
        if baseline is not None:
            order, trouble = self._order(job, baseline)
        with self.database.writing() as session:
            if order is None or baseline is None:
                now = self.clock.now()
                pull_jobs.finish(session, job_id, PullJobState.FAILED, said=trouble, at=now)
                return False
            text = order.model_dump_json()
            pull_jobs.put_order(session, job_id, baseline_sha=baseline, order=text)
        return True

    def dispatch(self, job_id: str, attempt: int) -> None:
        """Start a runner on a job that has none and is still wanted.

        Raises:
            DispatchError: No runner could be started.
        """
        if self.dispatcher.status(job_id) is not JobStatus.LOST:
            return
        with self.database.writing() as session:
            wanted = pull_jobs.begin_attempt(session, job_id, attempt, at=self.clock.now())
        if wanted:
            self.dispatcher.start(JobOrder.model_validate_json(self._job(job_id).order))

    def look(self, job_id: str, attempt: int) -> Sight:
        """Return what to do about a job; its document is taken from its folder here.

        Raises:
            BadDocumentError, CredentialRefusedError: The runner left something else there.
        """
        job = self._job(job_id)
        if job.state is PullJobState.SUPERSEDED:
            # It may have been started just when nobody wanted it any more.
            self.dispatcher.stop(job_id)
            return Sight.GIVE_UP
        if job.state not in {PullJobState.WAITING, PullJobState.MEASURING}:
            return Sight.STORED

        def take(document: RunDocument) -> None:
            _check_is_of(document, job, host_class=self.settings.host_class)
            with self.database.writing() as session:
                pull_jobs.store_document(session, job_id, document)

        return sight_of(
            self.dispatcher,
            job_id,
            self.dispatcher.status(job_id),
            take=take,
            attempt=attempt,
            started_at=job.started_at,
            now=self.clock.now(),
            settings=self.settings,
        )

    def judge(self, job_id: str) -> None:
        """Judge a job that brought a run, and finish one that did not."""
        now = self.clock.now()
        with self.database.writing() as session:
            job = _found(session, job_id)
            if job.state is not PullJobState.STORED:
                because = why_lost(self.dispatcher, job_id)
                said = (
                    f"{short(job.candidate_sha)} was not measured: "
                    f"its runner was lost {job.attempts} times or took too long"
                    f"{f'; {because}' if because else ''}"
                )
                pull_jobs.finish(session, job_id, PullJobState.FAILED, said=said, at=now)
                return
            document = pull_jobs.document(session, job_id)
            assert document is not None, "a stored job has its document"
            said, kept = _judged(job, document)
            pull_jobs.finish(session, job_id, PullJobState.JUDGED, said=said, verdicts=kept, at=now)

    def give_up(self, job_id: str, error: str) -> None:
        """Finish a job that the service itself could not follow to the end."""
        # What an error says may be about this machine; what is said here is public.
        said = f"the service could not go on ({error}); its log says more"
        with self.database.writing() as session:
            pull_jobs.finish(session, job_id, PullJobState.FAILED, said=said, at=self.clock.now())

    def show(self, job_id: str) -> None:
        """Have check and comment say what is so now, whatever it was when somebody asked for it.

        Raises:
            RateLimitedError: GitHub wants to be left alone for a while.
            CodeHostError: It may be there or not; showing it again is safe.
            RefusedError: GitHub does not allow it.
        """
        with self.alone:
            self._show(job_id)

    def _show(self, job_id: str) -> None:
        with self.database.reading() as session:
            job = _found(session, job_id)
            found = shown(job, pull_jobs.document(session, job_id))
            newest = _newest_told(pull_jobs.of_pull(session, job.fork, job.pull), job)
        if found.check is not None:
            self.checks.publish(job.candidate_sha, found.check, suite=job.suite, key=job.id)
        # What an older head showed is not to be said over what the newest one did.
        if found.comment is not None and newest:
            topic = comment_topic(job)
            self.comments.stick(job.pull, found.comment, suite=topic, loud=found.loud)

    def unfinished(self) -> list[PullJob]:
        """Return the jobs that were under way when the service stopped."""
        with self.database.reading() as session:
            return pull_jobs.unfinished(session)

    def stop(self, job_id: str) -> None:
        """End the runner of a job that nobody waits for, if it has one."""
        self.dispatcher.stop(job_id)

    def _baseline(self, job: PullJob) -> tuple[str | None, str]:
        """Return what a job's candidate is measured against, or why it is not."""
        if job.kind is not PullJobKind.RUN:
            return job.baseline_sha, ""
        with self.database.reading() as session:
            pull = pull_requests.find(session, job.fork, job.pull)
        assert pull is not None, "a run is of a pull request that is known"
        return _merge_base(job, self.code_host.pull_request(job.pull, base=pull.base))

    def _order(self, job: PullJob, baseline: str) -> tuple[JobOrder | None, str]:
        """Return a job's order, or why the plan of the default branch gives none."""
        text = self.code_host.plan_text()
        try:
            order = pull_order(
                job,
                baseline=baseline,
                plan=parse_plan(text),
                plan_text=text,
                repository=self.code_host.repository,
                settings=self.settings,
            )
        except CatalogError as error:
            return None, f"the plan of the default branch cannot be used: {error}"
        return order, ""

    def _run_of_head(self, session: Session, pull: PullRequest) -> PullJob | None:
        """Return the job that a push of this head begins, or None where it was measured already."""
        suite, now = self.settings.suite, self.clock.now()
        for job in pull_jobs.of_pull(session, pull.fork, pull.number):
            same = job.kind is PullJobKind.RUN and job.suite == suite
            if same and job.candidate_sha == pull.head_sha:
                if job.state is not PullJobState.SUPERSEDED:
                    return job if job.state is PullJobState.WAITING else None
                # The head that was replaced, or closed, is back.
                back = run_job(pull, suite=suite, key=f"after-{job.id}", at=now)
                return pull_jobs.create_once(session, back)
        return pull_jobs.create_once(session, run_job(pull, suite=suite, key=PUSHED, at=now))

    def _waiting(self, session: Session, pull: PullRequest) -> PullJob | None:
        """Return the job of a head that was written down, and perhaps not begun before a crash."""
        for job in pull_jobs.of_pull(session, pull.fork, pull.number):
            if job.state is PullJobState.WAITING and job.candidate_sha == pull.head_sha:
                return job
        return None

    def _job(self, job_id: str) -> PullJob:
        with self.database.reading() as session:
            return _found(session, job_id)


def _found(session: Session, job_id: str) -> PullJob:
    job = pull_jobs.find(session, job_id)
    assert job is not None, "a job is written down before anything is done about it"
    return job


def _is_newer(event: PullRequestChanged, known: PullRequest) -> bool:
    """Whether news is of a later time than what is known; GitHub's times are whole seconds."""
    if event.at != known.changed_at:
        return event.at > known.changed_at
    if event.head_sha == known.head_sha:
        return (event.open, event.draft) != (known.open, known.draft)
    return event.before_sha == known.head_sha


def _after(event: PullRequestChanged, known: PullRequest | None, *, fork: str) -> PullRequest:
    same_head = known is not None and known.head_sha == event.head_sha
    pull = PullRequest(
        fork=fork,
        number=event.number,
        head_sha=event.head_sha,
        head_at=event.at,
        base=event.base,
        outside=event.outside,
        draft=event.draft,
        open=event.open,
        changed_at=event.at,
    )
    return replace(pull, head_at=known.head_at) if known is not None and same_head else pull


def _merge_base(job: PullJob, commits: PullCommits) -> tuple[str | None, str]:
    """Return what a head is measured against, or why it is not."""
    at = short(job.candidate_sha)
    if commits.head.sha != job.candidate_sha:
        return None, f"{at} was not measured: the head is {short(commits.head.sha)} by now"
    if commits.merge_base is None:
        return None, f"{at} was not measured: it has no commit in common with its base branch"
    if commits.merge_base.sha == job.candidate_sha:
        return None, f"{at} was not measured: it is in its base branch already"
    return commits.merge_base.sha, ""


def _judged(job: PullJob, document: RunDocument) -> tuple[str, str]:
    """Return the sentence about a run, and its verdicts as they are kept."""
    if document.outcome is not Outcome.MEASURED:
        at = job.candidate_sha
        return outcome_sentence(document.outcome, at=at, failure=document.failure), ""
    order = JobOrder.model_validate_json(job.order)
    assert order.starts is not None, "a pair is ordered with the most starts"
    verdicts = judge_pull(
        document,
        parse_plan(order.plan).gates,
        level=max(order.alphas.values()),
        starts_max=order.starts,
    )
    return sentence(verdicts, at=job.candidate_sha), keep_verdicts(verdicts)


def _newest_told(jobs: list[PullJob], job: PullJob) -> bool:
    """Whether no later job has something to say in the same comment; newest come first."""
    topic = comment_topic(job)
    told = (
        other
        for other in jobs
        if comment_topic(other) == topic
        and (other.id == job.id or other.state in {PullJobState.JUDGED, PullJobState.FAILED})
    )
    return next(told, job).id == job.id


def _check_is_of(document: RunDocument, job: PullJob, *, host_class: str) -> None:
    """Refuse a document that is not of the job whose folder it lay in."""
    baseline = document.baseline.commit.sha if document.baseline else job.baseline_sha
    pairs = (
        ("id", document.id, job.run),
        ("job", document.job, job.id),
        ("fork", document.fork, job.fork),
        ("host.host_class", document.host.host_class, host_class),
        ("candidate.commit.sha", document.candidate.commit.sha, job.candidate_sha),
        ("baseline.commit.sha", baseline, job.baseline_sha),
    )
    refuse_others(pairs)
