"""The steps of a bridge: measure the last commit of old series once more, and relate old to new.

A bridge that is written down comes in, relations and words about them go out. No baseline learns
from what is measured here, and no number of a series is changed by it. `aside_flow` makes the steps
durable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from detectors.pairwise import compare
from reports.sentence import outcome_sentence
from results.document import Outcome
from results.job import JobOrder
from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.bridges import OPEN, BridgeState, Relation
from service.core.model import EventKind, JobKind, JobStatus, SampleSet
from service.flows.baseline import BASELINE_RUNS_MAX, SingleInputs, level_at
from service.flows.bridge_texts import related_words
from service.flows.changes import CONFIDENCE, changes_of_run
from service.flows.intake import refuse_others
from service.flows.steps import Sight, sight_of
from service.store import bridges, events, series

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from detectors.change import Change
    from results.document import RunDocument
    from service.core.bridges import Bridge, Joint
    from service.core.clock import Clock
    from service.core.ports import CodeHost, Dispatcher
    from service.core.settings import Settings
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class BridgeSteps:
    """The steps, with everything they touch; a bridge and its job have one name."""

    database: Database
    clock: Clock
    code_host: CodeHost
    dispatcher: Dispatcher
    settings: Settings

    def waiting(self) -> list[str]:
        """Return the bridges from which something is still to come, oldest first."""
        with self.database.reading() as session:
            return [bridge.id for bridge in bridges.unfinished(session)]

    def order(self, about: str) -> str | None:
        """Return the job of a bridge, None where it has ended."""
        with self.database.reading() as session:
            return about if _bridge(session, about).state in OPEN else None

    def dispatch(self, job_id: str, attempt: int) -> None:
        """Start a runner on a bridge that has neither a runner nor a document.

        Raises:
            DispatchError: No runner could be started.
        """
        if self.dispatcher.status(job_id) is not JobStatus.LOST:
            return
        with self.database.writing() as session:
            wanted = bridges.begin_attempt(session, job_id, attempt, at=self.clock.now())
            order = _bridge(session, job_id).order
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
            bridge = _bridge(session, job_id)
        if bridge.state not in OPEN:
            return Sight.STORED

        def take(document: RunDocument) -> None:
            _check_is_of(document, bridge)
            with self.database.writing() as session:
                bridges.store_document(session, job_id, document)

        return sight_of(
            self.dispatcher,
            job_id,
            self.dispatcher.status(job_id),
            take=take,
            attempt=attempt,
            started_at=bridge.started_at,
            now=self.clock.now(),
            settings=self.settings,
        )

    def note(self, about: str) -> None:
        """Write down how old and new relate, or why nobody can say."""
        now = self.clock.now()
        with self.database.reading() as session:
            bridge = _bridge(session, about)
            brought = bridges.document(session, about)
            found = _relations(session, bridge, brought, at=now) if brought else []
        if found:
            self._end(bridge, BridgeState.RELATED, related_words(bridge, found), found)
        else:
            self._end(bridge, BridgeState.FAILED, _why_not(bridge, brought))

    def give_up(self, about: str, error: str) -> None:
        """End a bridge that the service itself could not follow to its end."""
        with self.database.reading() as session:
            bridge = _bridge(session, about)
        said = f"the service could not go on ({error}); its log says more"
        self._end(bridge, BridgeState.FAILED, said)

    def _end(
        self, bridge: Bridge, state: BridgeState, said: str, found: list[Relation] | None = None
    ) -> None:
        now = self.clock.now()
        with self.database.writing() as session:
            bridges.relate_once(session, found or [])
            bridges.finish(session, bridge.id, state, said=said, at=now)
            events.append_once(
                session,
                bridge.fork,
                bridge.sha,
                EventKind.SERIES_BEGAN,
                said if found else f"old and new series are not related: {said}",
                at=now,
                about=f"{bridge.id}:ended",
            )


def _relations(
    session: Session, bridge: Bridge, brought: RunDocument, *, at: datetime
) -> list[Relation]:
    """Return how each workload relates that was measured under both conditions."""
    if brought.outcome is not Outcome.MEASURED:
        return []
    changes = _paired(bridge, brought) if bridge.paired else _apart(session, bridge, brought)
    return [
        Relation(
            bridge=bridge.id,
            workload=joint.workload,
            before=joint.before,
            after=joint.after,
            sha=bridge.sha,
            old_sha=bridge.old_sha,
            effect=change.effect,
            low=change.interval.low,
            high=change.interval.high,
            confidence=change.interval.confidence,
            paired=bridge.paired,
            method=change.method,
            at=at,
        )
        for joint, change in changes
    ]


def _paired(bridge: Bridge, brought: RunDocument) -> list[tuple[Joint, Change]]:
    """Return the changes of a job that measured both conditions in alternation."""
    found = []
    for joint in bridge.joints:
        old = brought.samples(joint.workload, THROUGHPUT.name, SideName.BASELINE)
        new = brought.samples(joint.workload, THROUGHPUT.name)
        if any(old) and any(new):
            found.append((joint, compare(old, new, confidence=CONFIDENCE)))
    return found


def _apart(session: Session, bridge: Bridge, brought: RunDocument) -> list[tuple[Joint, Change]]:
    """Return the changes from the level that ended with the old commit to it as it is now.

    The noise between runs is in their intervals, for the new level was measured in one run.
    """
    inputs: dict[Joint, SingleInputs] = {}
    for joint in bridge.joints:
        key = series.find(session, joint.before)
        assert key is not None, "a series that begins anew had one before"
        history = level_at(session, key, bridge.old_sha)[-BASELINE_RUNS_MAX:]
        new = brought.samples(joint.workload, THROUGHPUT.name)
        if history and any(new):
            candidate = SampleSet(
                run=bridge.run,
                side=SideName.CANDIDATE,
                sha=bridge.old_sha,
                kind=JobKind.SINGLE,
                starts=tuple(tuple(start) for start in new),
            )
            inputs[joint] = SingleInputs(series=key, history=history, candidate=candidate)
    return list(zip(inputs, changes_of_run(list(inputs.values())), strict=True))


def _why_not(bridge: Bridge, brought: RunDocument | None) -> str:
    if brought is None:
        return f"the job brought no run after {bridge.attempts} attempts"
    if brought.outcome is not Outcome.MEASURED:
        return outcome_sentence(brought.outcome, at=bridge.old_sha, failure=brought.failure)
    return "no workload was measured under both conditions"


def _bridge(session: Session, name: str) -> Bridge:
    bridge = bridges.find(session, name)
    assert bridge is not None, "a bridge is written down before its flow begins"
    return bridge


def _check_is_of(document: RunDocument, bridge: Bridge) -> None:
    """Refuse a document that is not of the bridge in whose folder it lay."""
    order = JobOrder.model_validate_json(bridge.order)
    pairs = (
        ("id", document.id, bridge.run),
        ("job", document.job, bridge.id),
        ("fork", document.fork, bridge.fork),
        ("host.host_class", document.host.host_class, order.host_class),
        ("candidate.commit.sha", document.candidate.commit.sha, bridge.old_sha),
    )
    refuse_others(pairs)
