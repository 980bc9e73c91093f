"""The steps of an A/A check: have one commit measured against itself, and learn about the host.

A check that is written down comes in; the noise of its host and words about it go out. No baseline
learns from it and no commit is judged by it. `aside_flow` makes the steps durable.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.numbers import short
from reports.sentence import outcome_sentence
from results.document import Outcome
from results.job import JobOrder
from service.core.aa_checks import AaState
from service.core.model import EventKind, JobStatus
from service.flows import host_noise
from service.flows.aa_judging import result_words, results_of
from service.flows.dispatching import why_lost
from service.flows.intake import refuse_others
from service.flows.steps import Sight, sight_of
from service.store import aa_checks, events
from workloads.plan import Gates

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from results.document import RunDocument
    from service.core.aa_checks import AaCheck, AaResult
    from service.core.clock import Clock
    from service.core.ports import CodeHost, Dispatcher
    from service.core.settings import Settings
    from service.store.database import Database

_log = logging.getLogger("forkwatch.aa")


@dataclass(frozen=True, kw_only=True)
class AaSteps:
    """The steps, with everything they touch; a check and its job have one name."""

    database: Database
    clock: Clock
    code_host: CodeHost
    dispatcher: Dispatcher
    settings: Settings

    def waiting(self) -> list[str]:
        """Return the checks from which something is still to come, oldest first."""
        with self.database.reading() as session:
            return [check.id for check in aa_checks.unfinished(session)]

    def order(self, about: str) -> str | None:
        """Return the job of a check, None where it has ended."""
        with self.database.reading() as session:
            return about if _check(session, about).open else None

    def dispatch(self, job_id: str, attempt: int) -> None:
        """Start a runner on a check that has neither a runner nor a document.

        Raises:
            DispatchError: No runner could be started.
        """
        if self.dispatcher.status(job_id) is not JobStatus.LOST:
            return
        with self.database.writing() as session:
            wanted = aa_checks.begin_attempt(session, job_id, attempt, at=self.clock.now())
            order = aa_checks.order_of(session, job_id)
        if wanted:
            asked = JobOrder.model_validate_json(order)
            here = {"repository": self.code_host.repository}
            self.dispatcher.start(asked.model_copy(update=here))

    def look(self, job_id: str, attempt: int) -> Sight:
        """Return what to do about a job; its document is taken from its folder here.

        Raises:
            BadDocumentError, CredentialRefusedError: The runner left something else there.
        """
        with self.database.reading() as session:
            check = _check(session, job_id)
        if not check.open:
            return Sight.STORED

        def take(document: RunDocument) -> None:
            _check_is_of(document, check)
            with self.database.writing() as session:
                aa_checks.store_document(session, job_id, document)

        return sight_of(
            self.dispatcher,
            job_id,
            self.dispatcher.status(job_id),
            take=take,
            attempt=attempt,
            started_at=check.started_at,
            now=self.clock.now(),
            settings=self.settings,
        )

    def note(self, about: str) -> None:
        """Write down what a check says of its host, or why it says nothing.

        A host that was unstable meanwhile is not judged by it; how noisy it was is kept.
        """
        now = self.clock.now()
        with self.database.writing() as session:
            check = _check(session, about)
            if not check.open:
                return
            brought = aa_checks.document(session, about)
            if brought is None:
                log = f"its log is in the service's home, jobs/{about}/log"
                because = why_lost(self.dispatcher, about, otherwise=log)
                said = f"the job brought no run after {check.attempts} attempts; {because}"
                aa_checks.finish(session, about, AaState.FAILED, said=said, at=now)
                return
            host_noise.record(session, brought, at=now)
            found: tuple[AaResult, ...] = ()
            state = AaState.FAILED
            if brought.outcome is Outcome.MEASURED:
                gates = Gates.model_validate_json(aa_checks.gates_of(session, about))
                found = results_of(brought, gates)
                state, said = AaState.DONE, result_words(found, brought.host.name)
            else:
                said = outcome_sentence(brought.outcome, at=check.sha, failure=brought.failure)
            aa_checks.finish(
                session, about, state, said=said, at=now, results=found, host=brought.host
            )
            if any(one.alarms for one in found):
                _log.warning("A/A check of the host class %s: %s", check.host_class, said)
                self._raise_event(session, check, said)

    def give_up(self, about: str, error: str) -> None:
        """End a check that the service itself could not follow to its end."""
        said = f"the service could not go on ({error}); its log says more"
        with self.database.writing() as session:
            aa_checks.finish(session, about, AaState.FAILED, said=said, at=self.clock.now())

    def _raise_event(self, session: Session, check: AaCheck, said: str) -> None:
        events.append_once(
            session,
            check.fork,
            check.sha,
            EventKind.AA_CHECK,
            f"A/A check of the host class {check.host_class} with {short(check.sha)}: {said}",
            at=self.clock.now(),
            about=check.id,
        )


def _check(session: Session, name: str) -> AaCheck:
    check = aa_checks.find(session, name)
    assert check is not None, "a check is written down before its flow begins"
    return check


def _check_is_of(document: RunDocument, check: AaCheck) -> None:
    """Refuse a document that is not of the check in whose folder it lay."""
    pairs = (
        ("id", document.id, check.run),
        ("job", document.job, check.id),
        ("fork", document.fork, check.fork),
        ("host.host_class", document.host.host_class, check.host_class),
        ("candidate.commit.sha", document.candidate.commit.sha, check.sha),
    )
    refuse_others(pairs)
