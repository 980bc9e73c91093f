"""The steps of a bisect's flow: each one is done whole, and doing it again changes nothing.

A bisect that is written down comes in; jobs, observations, its answer and the words about it come
of them. What is measured next is for `bisects.search` to say, from the stored observations alone.
`bisect_flow` puts the steps in order and makes them durable.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from bisects.errors import BisectError
from bisects.observing import (
    given_up,
    good_end_fails,
    host_fails,
    is_hosts_fault,
    observation_of,
)
from bisects.search import NextOrder
from reports.bisect import bisect_sentence
from reports.markup import one_line
from reports.numbers import short
from service.core.bisections import JOB_ENDED, UNDER_WAY, BisectJobState, BisectState
from service.core.model import JobStatus
from service.flows.bisect_ahead import BuildsAhead
from service.flows.bisect_material import outside_of, search_of, wall_seconds
from service.flows.bisect_orders import job_of, order_of
from service.flows.dispatching import why_lost
from service.flows.intake import refuse_others
from service.flows.steps import Sight, sight_of
from service.store import bisect_jobs, bisects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from bisects.document import Observation
    from results.document import RunDocument
    from service.core.bisections import Bisect, BisectJob, Material
    from service.core.clock import Clock
    from service.core.ports import CodeHost, Dispatcher
    from service.core.settings import Settings
    from service.store.database import Database

_log = logging.getLogger("forkwatch.bisect")

#: Jobs in a row that end without usable numbers before their commit counts as broken: an unstable
#: host and a server that fails once are common, three in a row are not luck.
TRIES_MAX: Final = 3
#: Of the host, where no commit is to blame for what did not come.
_HOST_FAILS: Final = (
    "the host kept two commits in a row from being measured, however often that was tried; once "
    "it is mended the same can be asked again, and what was measured counts"
)
#: Kept of why a commit cannot be measured: a paragraph.
FAILURE_LENGTH_MAX: Final = 500


@dataclass(frozen=True, kw_only=True)
class _Known:
    """All that is stored of a bisect."""

    bisect: Bisect
    material: Material
    #: In the order in which they were asked for.
    jobs: Sequence[BisectJob]

    @property
    def observations(self) -> list[Observation]:
        """What was observed so far, in that order."""
        return [job.observation for job in self.jobs if job.observation is not None]


@dataclass(frozen=True, kw_only=True)
class BisectSteps:
    """The steps, with everything they touch."""

    database: Database
    clock: Clock
    code_host: CodeHost
    dispatcher: Dispatcher
    settings: Settings

    def begin(self, bisect_id: str) -> bool:
        """Note that a bisect's turn has come; return whether anything is left to do about it."""
        with self.database.writing() as session:
            return bisects.begin(session, bisect_id, at=self.clock.now())

    def next_job(self, bisect_id: str) -> str | None:
        """Write down what is to be measured next; return the job, None where the search is over."""
        known = self._known(bisect_id)
        if known.bisect.state not in UNDER_WAY:
            return None
        question = known.bisect.question
        built = self._ahead.built(question)
        search = search_of(question, known.material, known.observations, built=built)
        wanted = search.next()
        if wanted is None:
            return None
        number = sum(job.commit == wanted.commit and job.state in JOB_ENDED for job in known.jobs)
        job = job_of(question, wanted, number=number, at=self.clock.now())
        with self.database.writing() as session:
            return bisect_jobs.create_once(session, job).id

    def dispatch(self, job_id: str, attempt: int) -> None:
        """Start a runner on a job that has none and is still wanted.

        Raises:
            DispatchError: No runner could be started.
        """
        if self.dispatcher.status(job_id) is not JobStatus.LOST:
            return
        with self.database.writing() as session:
            wanted = bisect_jobs.begin_attempt(session, job_id, attempt, at=self.clock.now())
        if not wanted:
            return
        with self.database.reading() as session:
            job = _job(session, job_id)
            bisect = _bisect(session, job.bisect)
            material = bisects.material(session, bisect.id)
        order = order_of(job, bisect.question, material, repository=self.code_host.repository)
        self.dispatcher.start(order)
        self._build_ahead(job)

    def look(self, job_id: str, attempt: int) -> Sight:
        """Return what to do about a job; its document is taken from its folder here.

        Raises:
            BadDocumentError, CredentialRefusedError: The runner left something else there.
        """
        with self.database.reading() as session:
            job = _job(session, job_id)
            bisect = _bisect(session, job.bisect)
        if job.state not in {BisectJobState.WAITING, BisectJobState.MEASURING}:
            return Sight.STORED

        def take(document: RunDocument) -> None:
            _check_is_of(document, job, bisect)
            with self.database.writing() as session:
                bisect_jobs.store_document(session, job_id, document)

        status = self.dispatcher.status(job_id)
        if status is not JobStatus.FINISHED and bisect.state not in UNDER_WAY:
            # It may have been started just when nobody wanted it any more.
            self.dispatcher.stop(job_id)
            return Sight.GIVE_UP
        return sight_of(
            self.dispatcher,
            job_id,
            status,
            take=take,
            attempt=attempt,
            started_at=job.started_at,
            now=self.clock.now(),
            settings=self.settings,
        )

    def observe(self, job_id: str, trouble: str) -> None:
        """Store what a job says of its commit, and what the search knows with it.

        A job without usable numbers is tried again; a commit of which several in a row brought
        none, or one brought no document at all, is set aside. Where that was the host's doing its
        observation says so, and two such commits in a row end the bisect.

        Args:
            job_id: Which.
            trouble: What kept the flow from following it to its end; empty where nothing did.
        """
        with self.database.reading() as session:
            job = _job(session, job_id)
            brought = bisect_jobs.document(session, job_id)
        if job.state in JOB_ENDED:
            return
        known = self._known(job.bisect)
        observation, said = _read(brought, job, known.bisect.question.workload)
        why = trouble or (self._why(job_id, said) if brought is None else said)
        by_host = self._was_lost(job) if brought is None else is_hosts_fault(brought)
        failed = _failed_in_a_row(known.jobs, job)
        last = brought is None or len(failed) + 1 >= TRIES_MAX
        if brought is not None and good_end_fails(brought) and (last or not by_host):
            self._fail(job, known.bisect, _without_good_end(known.bisect, _reason(brought)))
            return
        if observation is None and last and known.bisect.state in UNDER_WAY:
            tries = self._tries_of_host(job, failed, lost=brought is None) if by_host else 0
            observation = given_up(
                commit=job.commit, job=job.id, why=why, seconds=self._spent(job), tries=tries
            )
            if host_fails(known.observations, observation):
                self._fail(job, known.bisect, f"{_HOST_FAILS}: {why}")
                return
        if observation is not None:
            lost = sum(self._spent(other) for other in failed)
            observation = observation.model_copy(update={"seconds": observation.seconds + lost})
        self._keep(known, job, observation, why)

    def finish(self, bisect_id: str) -> None:
        """Write the answer of a search down that is over."""
        known = self._known(bisect_id)
        if known.bisect.state not in UNDER_WAY:
            return
        found = search_of(known.bisect.question, known.material, known.observations).document()
        said, now = bisect_sentence(found), self.clock.now()
        with self.database.writing() as session:
            bisects.finish(session, bisect_id, BisectState.OVER, said=said, at=now, found=found)
        self.stop_builds(bisect_id)

    def give_up(self, bisect_id: str, error: str) -> None:
        """Finish a bisect that the service itself could not follow to the end."""
        # What an error says may be about this machine; what is said here is public.
        said = f"the service could not go on ({error}); its log says more"
        now = self.clock.now()
        with self.database.writing() as session:
            bisects.finish(session, bisect_id, BisectState.FAILED, said=said, at=now)
        self.stop_builds(bisect_id)

    def unfinished(self) -> list[Bisect]:
        """Return the bisects that were under way when the service stopped, oldest first."""
        with self.database.reading() as session:
            return bisects.unfinished(session)

    def stop(self, job_id: str) -> None:
        """End the runner of a job that nobody waits for, if it has one."""
        self.dispatcher.stop(job_id)

    def stop_builds(self, bisect_id: str) -> None:
        """End what other machines build for a bisect that wants nothing any more."""
        with self.database.reading() as session:
            question = _bisect(session, bisect_id).question
        self._ahead.stop(question)

    @property
    def _ahead(self) -> BuildsAhead:
        return BuildsAhead(dispatcher=self.dispatcher, most=self.settings.bisect_builds_ahead)

    def _build_ahead(self, job: BisectJob) -> None:
        """Have built elsewhere what is probably wanted after a job that has just been begun."""
        if not self.settings.bisect_builds_ahead:
            return
        known = self._known(job.bisect)
        question, material = known.bisect.question, known.material
        built = self._ahead.built(question)
        self._ahead.begin(
            question,
            material,
            search_of(question, material, known.observations, built=built),
            NextOrder(commit=job.commit, sha=job.sha, starts=job.starts),
            repository=self.code_host.repository,
        )

    def _known(self, bisect_id: str) -> _Known:
        with self.database.reading() as session:
            return _Known(
                bisect=_bisect(session, bisect_id),
                material=bisects.material(session, bisect_id),
                jobs=bisect_jobs.of_bisect(session, bisect_id),
            )

    def _keep(
        self, known: _Known, job: BisectJob, observation: Observation | None, why: str
    ) -> None:
        """Write down what came of a job, and what the search knows with it."""
        now = self.clock.now()
        if observation is None:
            _log.warning("job %s says nothing: %s", job.id, why)
            with self.database.writing() as session:
                bisect_jobs.end(session, job.id, at=now, said=why)
            return
        outside = self._told_outside(known, job)
        material = replace(known.material, outside=outside) if outside else known.material
        observations = [*known.observations, observation]
        found = search_of(known.bisect.question, material, observations).document()
        with self.database.writing() as session:
            if outside:
                bisects.tell_outside(session, job.bisect, outside)
            bisect_jobs.end(session, job.id, at=now, observation=observation, said=why)
            bisects.keep(session, job.bisect, found, said=bisect_sentence(found))

    def _told_outside(self, known: _Known, job: BisectJob) -> tuple[str, ...]:
        """Return which sources neither end's server is made of, where a job tells it first."""
        if known.material.outside or job.commit != len(known.material.commits) - 1:
            return ()
        with self.database.reading() as session:
            brought = bisect_jobs.document(session, job.id)
        return outside_of(brought, known.material.commits) if brought is not None else ()

    def _fail(self, job: BisectJob, bisect: Bisect, said: str) -> None:
        """End a bisect that cannot go on."""
        now = self.clock.now()
        with self.database.writing() as session:
            bisect_jobs.end(session, job.id, at=now, said=said)
            bisects.finish(session, bisect.id, BisectState.FAILED, said=said, at=now)
        self.stop_builds(bisect.id)

    def _was_lost(self, job: BisectJob) -> bool:
        """Whether a job without a document has lost its runners, and did not take too long."""
        overdue = self._spent(job) > 60 * self.settings.job_timeout_minutes
        return job.attempts >= self.settings.runner_attempts_max and not overdue

    def _tries_of_host(self, job: BisectJob, failed: Sequence[BisectJob], *, lost: bool) -> int:
        """Return how often the host kept a commit from its numbers; 0 if anything else did once."""
        if lost:
            return job.attempts
        with self.database.reading() as session:
            before = [bisect_jobs.document(session, one.id) for one in failed]
        known = [one for one in before if one is not None]
        return 1 + len(known) if all(map(is_hosts_fault, known)) else 0

    def _why(self, job_id: str, said: str) -> str:
        """Return why a job brought no document, in the words of whoever started it."""
        return one_line(
            why_lost(self.dispatcher, job_id, otherwise=said), length_max=FAILURE_LENGTH_MAX
        )

    def _spent(self, job: BisectJob) -> float:
        """Return the seconds that a job took, by our own clock."""
        if job.started_at is None:
            return 0.0
        return ((job.finished_at or self.clock.now()) - job.started_at).total_seconds()


def _read(
    brought: RunDocument | None, job: BisectJob, workload: str
) -> tuple[Observation | None, str]:
    """Return what a job's document says of its commit, or why it says nothing."""
    if brought is None:
        return None, "its runner was lost too often, or it took too long"
    seconds = wall_seconds(brought)
    try:
        observation = observation_of(brought, commit=job.commit, workload=workload, seconds=seconds)
    except BisectError as error:
        return None, one_line(str(error), length_max=FAILURE_LENGTH_MAX)
    return observation, ""


def _failed_in_a_row(jobs: Sequence[BisectJob], job: BisectJob) -> list[BisectJob]:
    """Return the jobs of the same commit right before this one that brought nothing."""
    before = [one for one in jobs if one.commit == job.commit and one.id != job.id]
    return list(takewhile(lambda one: one.state is BisectJobState.FAILED, reversed(before)))


def _without_good_end(bisect: Bisect, why: str) -> str:
    at = short(bisect.question.good)
    return f"nothing can be compared with the good end {at}, which cannot be built: {why}"


def _reason(document: RunDocument) -> str:
    why = document.failure.message if document.failure else document.outcome.value
    return one_line(why, length_max=FAILURE_LENGTH_MAX)


def _bisect(session: Session, bisect_id: str) -> Bisect:
    bisect = bisects.find(session, bisect_id)
    assert bisect is not None, "a bisect is written down before its flow begins"
    return bisect


def _job(session: Session, job_id: str) -> BisectJob:
    job = bisect_jobs.find(session, job_id)
    assert job is not None, "a job is written down before anything is done about it"
    return job


def _check_is_of(document: RunDocument, job: BisectJob, bisect: Bisect) -> None:
    """Refuse a document that is not of the job whose folder it lay in."""
    question = bisect.question
    baseline = document.baseline.commit.sha if document.baseline else question.good
    pairs = (
        ("id", document.id, job.run),
        ("job", document.job, job.id),
        ("fork", document.fork, question.fork),
        ("host.host_class", document.host.host_class, question.host_class),
        ("candidate.commit.sha", document.candidate.commit.sha, job.sha),
        ("baseline.commit.sha", baseline, question.good),
    )
    refuse_others(pairs)
