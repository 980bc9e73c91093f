"""What a runner of a CI fetches and brings: the order of the job it was started for, and its run.

An identity that the CI proved comes in and an order with its credential goes out; with that
credential a run document comes in, and lies here until the flow that waits takes it. Only the run
that the service itself has started is given anything.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import SecretStr

from results.job import JobOrder
from service.core.dispatching import UNDER_WAY, DispatchState
from service.core.errors import (
    ConflictError,
    CredentialMissingError,
    CredentialRefusedError,
    NotFoundError,
)
from service.flows.ci_orders import HandedOrder, SpentTokens
from service.flows.intake import parse_document, refuse_others
from service.flows.steps import CREDENTIAL_BYTES, CREDENTIAL_GRACE, credential_hash
from service.store import dispatched_jobs

if TYPE_CHECKING:
    from datetime import timedelta

    from results.document import RunDocument
    from service.core.dispatching import DispatchedJob
    from service.core.identity import Identity
    from service.flows.dispatching import CiDispatcher


@dataclass(frozen=True, kw_only=True)
class DispatchedRuns:
    """The runs that a CI does for the service."""

    dispatcher: CiDispatcher
    #: Longest time one job may take; its credential is good for a while longer.
    job_time: timedelta
    spent: SpentTokens = field(default_factory=SpentTokens)

    def hand_over(self, identity: Identity, job: str, host_class: str) -> HandedOrder:
        """Return the order of a job to the run that was started for it.

        The same run may ask again, as after a restart: its new credential takes the older one's
        place.

        Args:
            identity: Of the run, as its CI swears.
            job: What it was started for.
            host_class: Of the machine that will measure, as it says itself.

        Raises:
            NotFoundError: Nobody waits for a run of that job.
            CredentialRefusedError: It is not the run that was started, or landed elsewhere.
            CredentialMissingError: The token was exchanged before.
        """
        dispatched = self._started(job)
        _check_is_run(identity, dispatched)
        if host_class != dispatched.host_class:
            self._lost_there(dispatched, host_class)
        now = self.dispatcher.clock.now()
        self.spent.spend(identity, at=now)
        credential = secrets.token_urlsafe(CREDENTIAL_BYTES)
        expires_at = now + self.job_time + CREDENTIAL_GRACE
        with self.dispatcher.database.writing() as session:
            taken = dispatched_jobs.take(
                session,
                dispatched,
                credential_hash=credential_hash(credential),
                expires_at=expires_at,
                at=now,
            )
        if not taken:
            raise _nobody_waits(job)
        order = JobOrder.model_validate_json(dispatched.order)
        return HandedOrder(
            order=order.model_copy(update=_elsewhere(credential)),
            credential_expires_at=expires_at,
        )

    def check(self, job: str, credential: str) -> DispatchedJob:
        """Return the dispatch that a credential is good for.

        Raises:
            CredentialMissingError: It is not known, or no longer good.
            CredentialRefusedError: It is another job's.
        """
        found, now = credential_hash(credential), self.dispatcher.clock.now()
        with self.dispatcher.database.reading() as session:
            dispatched = dispatched_jobs.by_credential(session, found, at=now)
        if dispatched is None:
            raise CredentialMissingError("this credential is not known, or no longer good")
        if dispatched.job != job:
            raise CredentialRefusedError(f"this credential is not of job {job}")
        return dispatched

    def bring(self, dispatched: DispatchedJob, text: bytes) -> bool:
        """Keep the run document of a dispatch; return whether it is new.

        Raises:
            BadDocumentError: It is no run document.
            CredentialRefusedError: It is of another job, or from another host class.
            CredentialMissingError: The dispatch was given up meanwhile.
            ConflictError: Another document of this job is here.
        """
        order = JobOrder.model_validate_json(dispatched.order)
        document = parse_document(text, built=order.build_only)
        if document.host.host_class != order.host_class:
            self._lost_there(dispatched, document.host.host_class)
        _check_is_of(document, order)
        canonical = document.model_dump_json().encode()
        now = self.dispatcher.clock.now()
        with self.dispatcher.database.writing() as session:
            if dispatched_jobs.state(session, dispatched) is DispatchState.ENDED:
                raise CredentialMissingError("this job was given up: nobody waits for its run")
            new = dispatched_jobs.bring(session, dispatched, canonical, at=now)
        if new is None:
            raise ConflictError(f"another run document of job {dispatched.job} is here")
        self.dispatcher.wake(dispatched)
        return new

    def _started(self, job: str) -> DispatchedJob:
        """Return the dispatch of a job that is under way, with its run, if that can be known."""
        dispatched = self.dispatcher.newest(job)
        if dispatched is not None and dispatched.external_id is None:
            # It is here before anybody has looked which one it is.
            self.dispatcher.status(job)
            dispatched = self.dispatcher.newest(job)
        if dispatched is None or dispatched.state not in UNDER_WAY:
            raise _nobody_waits(job)
        return dispatched

    def _lost_there(self, dispatched: DispatchedJob, host_class: str) -> NoReturn:
        """End a dispatch that landed on a machine of another host class.

        Raises:
            CredentialRefusedError: Always.
        """
        said = (
            f"it landed on a machine of the host class {host_class!r} and was ordered for "
            f"{dispatched.host_class!r}: correct the runner's labels or FORKWATCH_HOST_CLASS there"
        )
        if self.dispatcher.end(dispatched, said):
            self.dispatcher.wake(dispatched)
        raise CredentialRefusedError(said)


def _elsewhere(credential: str) -> dict[str, Any]:
    """Return what an order says differently to a machine that is not the service's own."""
    # Where things lie here is nobody's business there: a runner has its own checkout, and knows the
    # service's address.
    return {"repository": Path(), "submit_to": None, "credential": SecretStr(credential)}


def _nobody_waits(job: str) -> NotFoundError:
    return NotFoundError(f"nobody waits for a run of job {job}: it has its run, or was given up")


def _check_is_run(identity: Identity, dispatched: DispatchedJob) -> None:
    """Check that an identity is the run that was started for a dispatch."""
    branch = JobOrder.model_validate_json(dispatched.order).branch
    run = f"{identity.system.value} {identity.run_id}"
    expected = f"{dispatched.system.value} {dispatched.external_id}"
    if dispatched.external_id is None or run != expected:
        raise CredentialRefusedError(
            f"{identity.run} is not the run that was started for job {dispatched.job}"
        )
    # Whoever may push a branch may have changed the workflow there.
    if identity.branch != branch:
        raise CredentialRefusedError(
            f"{identity.run} is of the branch {identity.branch[:200]!r}; job {dispatched.job} is "
            f"run by {branch!r}"
        )


def _check_is_of(document: RunDocument, order: JobOrder) -> None:
    """Check that a document is of the job that was ordered; its flow checks the rest."""
    baseline = document.baseline.commit.sha if document.baseline else order.baseline
    pairs = (
        ("id", document.id, order.run),
        ("job", document.job, order.job),
        ("candidate.commit.sha", document.candidate.commit.sha, order.candidate),
        ("baseline.commit.sha", baseline, order.baseline),
    )
    refuse_others(pairs)
