"""A dispatcher over a real database and a CI in memory, with runners that come when told to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import delete

from results.job import JobOrder
from service.core.identity import CiSystem, Identity
from service.flows.dispatched_runs import DispatchedRuns
from service.flows.dispatching import CiDispatcher
from service.store.dispatch_tables import DispatchedJobRow
from tests.fakes.memory_ci import MemoryCi
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.run_documents import a_run, sha
from tests.fakes.scripted_measurement import PLAN

if TYPE_CHECKING:
    from results.document import RunDocument
    from service.core.dispatching import DispatchedJob
    from service.flows.ci_orders import HandedOrder
    from service.store.database import Database

WAIT = timedelta(hours=2)
JOB_TIME = timedelta(hours=6)
JOB = "single-1"
FLOW = "commit:demo:b"


@dataclass
class Scene:
    """What a service knows; `anew` is its dispatcher after one more start."""

    database: Database
    ci: MemoryCi = field(default_factory=MemoryCi)
    clock: StillClock = field(default_factory=StillClock)
    #: Flows that were woken.
    woken: list[str] = field(default_factory=list)
    tokens: int = 0
    #: Whether the settings still name the CI.
    named: bool = True

    def anew(self) -> CiDispatcher:
        return CiDispatcher(
            database=self.database,
            clock=self.clock,
            runners={self.ci.system: self.ci} if self.named else {},
            system_of=self.system_of,
            wait=WAIT,
            wake=lambda dispatched: self.woken.append(str(dispatched.flow)),
            flow=lambda: FLOW,
        )

    def system_of(self, host_class: str) -> CiSystem | None:
        return self.ci.system if host_class == "small" else None

    def runs(self) -> DispatchedRuns:
        return DispatchedRuns(dispatcher=self.anew(), job_time=JOB_TIME)

    def identity(self, run: str, *, branch: str = "main", token: str = "") -> Identity:
        """Return the identity of a run, with a token of its own unless one is named."""
        self.tokens += 1
        return Identity(
            system=self.ci.system,
            commit=sha("d"),
            branch=branch,
            run=f"github run {run}, attempt 1",
            digest=token or f"token-{self.tokens}",
            expires_at=AT + timedelta(days=1),
            run_id=run,
        )

    def taken(self, job: str = JOB) -> HandedOrder:
        """Let the newest run come for its order."""
        return self.runs().hand_over(self.identity(self.ci.last()), job, "small")

    def credential(self, job: str = JOB) -> str:
        """Return the credential of an order that is taken now."""
        given = self.taken(job).order.credential
        assert given is not None
        return given.get_secret_value()

    def bring(self, credential: str, document: RunDocument, job: str = JOB) -> bool:
        """Bring a run document; return whether it is new."""
        runs = self.runs()
        return runs.bring(runs.check(job, credential), text_of(document))

    def newest(self, job: str = JOB) -> DispatchedJob:
        """Return the last dispatch of a job, as it is stored."""
        found = self.anew().newest(job)
        assert found is not None
        return found


def a_scene(database: Database) -> Scene:
    """Return a scene in which nothing was dispatched, whatever was before."""
    with database.writing() as session:
        session.execute(delete(DispatchedJobRow))
    return Scene(database)


def order(
    job: str = JOB, *, host_class: str = "small", candidate: str = sha("b"), plan: str = PLAN
) -> JobOrder:
    """Return what is to be measured."""
    return JobOrder(
        job=job,
        run=f"run-{job}",
        repository=Path("/nowhere"),
        plan=plan,
        branch="main",
        suite="commit",
        host_class=host_class,
        candidate=candidate,
    )


def a_document(job: str = JOB, *, commit: str = sha("b"), level: float = 2.0) -> RunDocument:
    """Return the run of a job."""
    story = a_run().called(f"run-{job}", job=job).on(commit)
    return story.with_samples("scan", [[level], [level]]).build()


def text_of(document: RunDocument) -> bytes:
    """Return a document as it travels."""
    return document.model_dump_json().encode()
