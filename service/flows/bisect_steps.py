"""The steps of a bisect's flow: each one is done whole, and doing it again changes nothing.

A bisect that is written down comes in; jobs, observations, its answer and the words about it come
of them. What is measured next is for `bisects.search` to say, from the stored observations alone.
`bisect_flow` puts the steps in order and makes them durable.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from bisects.document import CommitState, Observation
from bisects.errors import BisectError
from bisects.observing import observation_of
from reports.bisect import bisect_sentence
from reports.markup import one_line
from reports.numbers import short
from results.document import Outcome
from service.core.bisections import JOB_ENDED, UNDER_WAY, BisectJobState, BisectState
from service.core.model import JobStatus
from service.flows.bisect_material import search_of, wall_seconds
from service.flows.bisect_orders import job_of, order_of
from service.flows.dispatching import why_lost
from service.flows.intake import parse_document, refuse_others
from service.flows.steps import Sight, sight_without_run
from service.store import bisect_jobs, bisects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

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
        wanted = search_of(question, known.material, known.observations).next()
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
        status = self.dispatcher.status(job_id)
        if status is JobStatus.FINISHED:
            document = parse_document(self.dispatcher.collect(job_id))
            _check_is_of(document, job, bisect)
            with self.database.writing() as session:
                bisect_jobs.store_document(session, job_id, document)
            return Sight.STORED
        if bisect.state not in UNDER_WAY:
            # It may have been started just when nobody wanted it any more.
            self.dispatcher.stop(job_id)
            return Sight.GIVE_UP
        return sight_without_run(
            self.dispatcher,
            job_id,
            status,
            attempt=attempt,
            started_at=job.started_at,
            now=self.clock.now(),
            settings=self.settings,
        )

    def observe(self, job_id: str, trouble: str) -> None:
        """Store what a job says of its commit, and what the search knows with it.

        A job without usable numbers is tried again; a commit of which several in a row brought
        none, or one brought no document at all, counts as broken.

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
        if brought is not None and _good_end_fails(brought):
            self._fail(job, known.bisect, _reason(brought))
            return
        observation, said = _read(brought, job, known.bisect.question.workload)
        why = trouble or (self._why(job_id, said) if brought is None else said)
        failed = _failed_in_a_row(known.jobs, job)
        wanted = known.bisect.state in UNDER_WAY
        if observation is None and (brought is None or len(failed) + 1 >= TRIES_MAX) and wanted:
            observation = _broken(job, why, seconds=self._spent(job))
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

    def give_up(self, bisect_id: str, error: str) -> None:
        """Finish a bisect that the service itself could not follow to the end."""
        # What an error says may be about this machine; what is said here is public.
        said = f"the service could not go on ({error}); its log says more"
        now = self.clock.now()
        with self.database.writing() as session:
            bisects.finish(session, bisect_id, BisectState.FAILED, said=said, at=now)

    def unfinished(self) -> list[Bisect]:
        """Return the bisects that were under way when the service stopped, oldest first."""
        with self.database.reading() as session:
            return bisects.unfinished(session)

    def stop(self, job_id: str) -> None:
        """End the runner of a job that nobody waits for, if it has one."""
        self.dispatcher.stop(job_id)

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
        observations = [*known.observations, observation]
        found = search_of(known.bisect.question, known.material, observations).document()
        with self.database.writing() as session:
            bisect_jobs.end(session, job.id, at=now, observation=observation, said=why)
            bisects.keep(session, job.bisect, found, said=bisect_sentence(found))

    def _fail(self, job: BisectJob, bisect: Bisect, why: str) -> None:
        """End a bisect that has nothing to compare with."""
        at, now = short(bisect.question.good), self.clock.now()
        said = f"nothing can be compared with the good end {at}, which cannot be built: {why}"
        with self.database.writing() as session:
            bisect_jobs.end(session, job.id, at=now, said=why)
            bisects.finish(session, bisect.id, BisectState.FAILED, said=said, at=now)

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


def _broken(job: BisectJob, why: str, *, seconds: float) -> Observation:
    return Observation(
        commit=job.commit,
        job=job.id,
        state=CommitState.BROKEN,
        log_ratios=(),
        seconds=seconds,
        build_seconds=0.0,
        failure=why,
    )


def _failed_in_a_row(jobs: Sequence[BisectJob], job: BisectJob) -> list[BisectJob]:
    """Return the jobs of the same commit right before this one that brought nothing."""
    before = [one for one in jobs if one.commit == job.commit and one.id != job.id]
    return list(takewhile(lambda one: one.state is BisectJobState.FAILED, reversed(before)))


def _good_end_fails(document: RunDocument) -> bool:
    """Whether it is not the commit in question that could not be built, but the good end."""
    return (
        document.outcome is Outcome.FAILED
        and document.candidate.artifact is not None
        and document.baseline is not None
        and document.baseline.artifact is None
    )


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
