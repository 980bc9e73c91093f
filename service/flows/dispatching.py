"""Jobs done by a CI: a dispatcher that asks for a run, finds it again, and notices how it ends.

Orders come in and rows of `dispatched_jobs` keep how far each dispatch is; a flow sees what it sees
of a runner on this machine. A dispatch is written down before the CI is asked and looked for before
it is asked again, so that a crash in between costs no second run. What a runner fetches and brings
is in `dispatched_runs`.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from dbos import DBOS
from dbos import error as dbos_error
from sqlalchemy.exc import OperationalError

from results.job import JobOrder
from service.core.dispatching import (
    UNDER_WAY,
    CiRunState,
    DispatchedJob,
    DispatchRefusedError,
    DispatchState,
    RunAsk,
)
from service.core.errors import DispatchError, TransientError
from service.core.model import JobStatus
from service.core.ports import ExplainingDispatcher
from service.store import dispatched_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from service.core.clock import Clock
    from service.core.dispatching import CiRun, RunEnded
    from service.core.identity import CiSystem
    from service.core.ports import CiRunners, Dispatcher
    from service.store.database import Database

_log = logging.getLogger("forkwatch.dispatch")

#: After this a run that was asked for is listed, and what is not listed was not begun. GitHub shows
#: a new run after some seconds; until then nobody is asked a second time.
SETTLED_AFTER: Final = timedelta(minutes=2)
#: Run documents stay here for as long as a service may be away; then their flow has them.
DOCUMENTS_KEPT: Final = timedelta(days=14)
_STATUS: Final = {
    DispatchState.ASKED: JobStatus.ALIVE,
    DispatchState.TAKEN: JobStatus.ALIVE,
    DispatchState.BROUGHT: JobStatus.FINISHED,
    DispatchState.ENDED: JobStatus.LOST,
}


def wake_flow(dispatched: DispatchedJob) -> None:
    """Wake the flow that waits for a job; it looks for itself too, a little later."""
    if dispatched.flow is None:
        return
    key = f"{dispatched.job}:{dispatched.attempt}:news"
    try:
        DBOS.send(dispatched.flow, "news", topic=dispatched.job, idempotency_key=key)
    except (dbos_error.DBOSException, OperationalError) as error:
        _log.warning("job %s: its flow could not be woken: %s", dispatched.job, error)


def current_flow() -> str | None:
    """Return the flow that is dispatching, None outside of one."""
    return DBOS.workflow_id


def why_lost(dispatcher: Dispatcher, job: str, *, otherwise: str = "") -> str:
    """Return why a job was lost, as far as its dispatcher knows."""
    if isinstance(dispatcher, ExplainingDispatcher):
        return dispatcher.why_lost(job) or otherwise
    return otherwise


@dataclass(frozen=True, kw_only=True)
class CiDispatcher:
    """Has a CI do jobs, and looks after them."""

    database: Database
    clock: Clock
    runners: Mapping[CiSystem, CiRunners]
    #: The CI of a host class.
    system_of: Callable[[str], CiSystem | None]
    #: From asking for a run until a runner has to come for the order.
    wait: timedelta
    wake: Callable[[DispatchedJob], None] = wake_flow
    flow: Callable[[], str | None] = current_flow

    def start(self, order: JobOrder) -> None:
        """Ask for a run, unless one is under way or has brought the document.

        A CI that cannot be asked now is asked again at every look, for as long as a runner may
        take to come.

        Raises:
            DispatchError: No CI does the jobs of its host class.
        """
        system = self.system_of(order.host_class)
        if system is None:
            raise DispatchError(f"no CI does the jobs of the host class {order.host_class!r}")
        now = self.clock.now()
        with self.database.writing() as session:
            last = dispatched_jobs.newest(session, order.job)
            if last is None or last.state is DispatchState.ENDED:
                dispatched = DispatchedJob(
                    job=order.job,
                    attempt=last.attempt + 1 if last else 1,
                    system=system,
                    host_class=order.host_class,
                    state=DispatchState.ASKED,
                    # Its credential is for nobody: the runner that comes is given one of its own.
                    order=order.model_dump_json(exclude={"credential"}),
                    flow=self.flow(),
                    external_id=None,
                    page="",
                    said="",
                    asked_at=now,
                    posted_at=None,
                    taken_at=None,
                    ended_at=None,
                )
                dispatched_jobs.begin(session, dispatched)
            dispatched_jobs.drop_documents(session, before=now - DOCUMENTS_KEPT)
        self.status(order.job)

    def status(self, job: str) -> JobStatus:
        """Return what became of a job, having looked after it; one never dispatched is lost."""
        found = self.newest(job)
        if found is not None and found.state in UNDER_WAY:
            self.follow(found)
            found = self.newest(job)
        return JobStatus.LOST if found is None else _STATUS[found.state]

    def stop(self, job: str) -> None:
        """End a dispatch that is under way, and its run."""
        found = self.newest(job)
        if found is not None and found.state in UNDER_WAY:
            self.end(found, "nobody waits for it any more", cancel=True)

    def collect(self, job: str) -> bytes:
        """Return the run document of a finished job as JSON.

        Raises:
            DispatchError: There is none.
        """
        with self.database.reading() as session:
            found = dispatched_jobs.document(session, job)
        if found is None:
            raise DispatchError(f"no run document of job {job} is here")
        return found

    def why_lost(self, job: str) -> str:
        """Return why the last dispatch of a job brought nothing; empty where that is not so."""
        found = self.newest(job)
        return found.said if found is not None and found.state is DispatchState.ENDED else ""

    def is_elsewhere(self, host_class: str) -> bool:
        """Whether a CI does the jobs of a host class."""
        return self.system_of(host_class) is not None

    def begun(self, prefix: str) -> dict[str, JobStatus]:
        """Return the jobs whose names begin so, each looked after, with what became of it."""
        with self.database.reading() as session:
            jobs = dispatched_jobs.named(session, prefix)
        return {job: self.status(job) for job in jobs}

    def heard(self, news: RunEnded) -> bool:
        """Take news of a run that is over; return whether anybody waited for it."""
        with self.database.reading() as session:
            found = dispatched_jobs.by_run(session, news.system, news.external_id)
        if found is None or not self.end(found, _ended(found, news.how)):
            return False
        self.wake(found)
        return True

    def newest(self, job: str) -> DispatchedJob | None:
        """Return the last dispatch of a job, if it was ever dispatched."""
        with self.database.reading() as session:
            return dispatched_jobs.newest(session, job)

    def follow(self, dispatched: DispatchedJob) -> None:
        """Bring what is known of a dispatch up to date: ask for its run, or ask how it is."""
        runners = self.runners.get(dispatched.system)
        if runners is None:
            self.end(dispatched, f"jobs are not dispatched to {dispatched.system.value} any more")
            return
        try:
            if dispatched.external_id is None:
                self._ask(runners, dispatched)
            else:
                self._look(runners, dispatched)
        except TransientError as error:
            # It is asked again at the next look; what takes too long ends below.
            _log.warning("job %s: %s", dispatched.job, error)
        waited = self.clock.now() - dispatched.asked_at
        if dispatched.state is DispatchState.ASKED and waited > self.wait:
            said = (
                f"no runner of the host class {dispatched.host_class} came for it within "
                f"{self.wait}{_where(dispatched)}"
            )
            self.end(dispatched, said, only=DispatchState.ASKED, cancel=True)

    def end(
        self,
        dispatched: DispatchedJob,
        said: str,
        *,
        only: DispatchState | None = None,
        cancel: bool = False,
    ) -> bool:
        """End a dispatch, and its run where asked for; return whether it was under way.

        Args:
            dispatched: Which.
            said: Why, for people.
            only: Leave it alone if it is in any other state by now.
            cancel: End its run at the CI too, as far as that can be done now.
        """
        states = UNDER_WAY if only is None else (only,)
        now = self.clock.now()
        with self.database.writing() as session:
            ended = dispatched_jobs.end(session, dispatched, said, at=now, states=states)
        if not ended:
            return False
        _log.warning("job %s, dispatch %d: %s", dispatched.job, dispatched.attempt, said)
        runners = self.runners.get(dispatched.system)
        if cancel and runners is not None and dispatched.external_id is not None:
            # It could bring nothing any more, and only costs its machine some time.
            with suppress(TransientError, DispatchRefusedError):
                runners.cancel(dispatched.external_id)
        return True

    def _ask(self, runners: CiRunners, dispatched: DispatchedJob) -> None:
        """Find the run of a dispatch, or ask for it where none was begun."""
        ask = _ask_of(dispatched)
        try:
            # Nobody looks for what was never asked for.
            run = runners.find(ask) if dispatched.posted_at is not None else None
            if run is None and self._may_post(dispatched):
                run = runners.begin(ask)
        except DispatchRefusedError as error:
            self.end(dispatched, str(error))
            return
        if run is not None:
            self._note(dispatched, run)

    def _may_post(self, dispatched: DispatchedJob) -> bool:
        """Note that the CI is about to be asked for a run; return whether it is for us to do."""
        now = self.clock.now()
        if dispatched.posted_at is not None and now - dispatched.posted_at < SETTLED_AFTER:
            return False
        with self.database.writing() as session:
            return dispatched_jobs.begin_posting(session, dispatched, at=now)

    def _note(self, dispatched: DispatchedJob, run: CiRun) -> None:
        with self.database.writing() as session:
            dispatched_jobs.note_run(session, dispatched, run)
        _log.info("job %s: %s run %s", dispatched.job, dispatched.system.value, run.external_id)

    def _look(self, runners: CiRunners, dispatched: DispatchedJob) -> None:
        assert dispatched.external_id is not None, "a run is looked at once it is known"
        try:
            run = runners.look(dispatched.external_id)
        except DispatchRefusedError as error:
            # The run goes on whether we may see it or not, and what it brings counts.
            _log.warning("job %s: %s", dispatched.job, error)
            return
        if run.state is CiRunState.ENDED:
            # A runner brings its document before it ends: it is here by now, or never.
            self.end(dispatched, _ended(dispatched, run.how))


def _ask_of(dispatched: DispatchedJob) -> RunAsk:
    order = JobOrder.model_validate_json(dispatched.order)
    return RunAsk(
        job=dispatched.job,
        attempt=dispatched.attempt,
        host_class=dispatched.host_class,
        candidate=order.candidate,
        suite=order.suite,
        branch=order.branch,
        asked_at=dispatched.asked_at,
    )


def _ended(dispatched: DispatchedJob, how: str) -> str:
    return f"its run ended as {how or 'completed'!r} without a run document{_where(dispatched)}"


def _where(dispatched: DispatchedJob) -> str:
    return f": {dispatched.page}" if dispatched.page else ""
