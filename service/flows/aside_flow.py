"""The durable flow of measurements that nobody waits for: the past, bridges, and A/A checks.

What is to be measured comes in, one flow for each goes out. They wait in the queue of the host
class behind all else: a push, a pull request or a bisect goes first whenever it comes.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.exc import OperationalError

from results.log_lines import about as about_line
from service.flows.durable import RECOVERIES_MAX, run_step
from service.flows.steps import Sight

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.core.settings import Settings

_log = logging.getLogger("forkwatch.aside")

#: Commits of a branch wait by their position, of which there are never so many.
BRIDGES_PRIORITY: Final = 1_000_000_000
#: A check a week goes before a past of many weeks, or it would never be made.
AA_PRIORITY: Final = 1_250_000_000
#: What is history can wait for what is news.
BACKFILL_PRIORITY: Final = 1_500_000_000


class AsideWork(Protocol):
    """What is measured, and what comes of it; each step may be done twice."""

    @property
    def settings(self) -> Settings:
        """Of the service."""
        ...

    def waiting(self) -> Sequence[str]:
        """Return names of what is to be measured, in the order in which it is."""
        ...

    def order(self, about: str) -> str | None:
        """Return the job that measures it; None where nobody wants it any more."""
        ...

    def dispatch(self, job_id: str, attempt: int) -> None:
        """Start a runner on a job that has neither a runner nor a run."""
        ...

    def look(self, job_id: str, attempt: int) -> Sight:
        """Return what to do about a job."""
        ...

    def note(self, about: str) -> None:
        """Write down what came of it, whatever became of the job."""
        ...

    def give_up(self, about: str, error: str) -> None:
        """Write down that the service could not follow it to its end."""
        ...


class AsideFlow:
    """The flow of one kind of such work, registered with DBOS; make one before it is launched."""

    def __init__(
        self,
        work: AsideWork,
        *,
        name: str,
        queue: str,
        priority: int,
        step_pause_seconds: float = 1.0,
    ) -> None:
        """Register the workflow.

        Args:
            work: What it does.
            name: Of the workflow; ids of flows begin with it.
            queue: In which all measuring on the host class waits.
            priority: Of the first; a larger number waits longer.
            step_pause_seconds: The first pause before a step is tried again.
        """
        self._work = work
        self._name = name
        self._queue = queue
        self._priority = priority
        self._pause = step_pause_seconds
        self._begun: set[str] = set()
        self._workflow = self._registered()

    def begin_waiting(self) -> None:
        """Begin what waits and was not begun; what cannot be begun now, the next call finds."""
        try:
            for place, about in enumerate(self._work.waiting()):
                if about not in self._begun:
                    self._enqueue(about, priority=self._priority + place)
                    self._begun.add(about)
        except (dbos_error.DBOSException, OperationalError) as error:
            _log.warning("%s: nothing can be begun now: %s", self._name, error)

    def _enqueue(self, about: str, *, priority: int) -> None:
        # Begun by an earlier life of the service, it is there already, and this changes nothing.
        with (
            SetWorkflowID(f"{self._name}:{about}"),
            SetEnqueueOptions(priority=priority),
        ):
            DBOS.enqueue_workflow(self._queue, self._workflow, about)

    def _registered(self) -> Callable[[str], None]:
        @DBOS.workflow(name=self._name, max_recovery_attempts=RECOVERIES_MAX)
        def measure_aside(about: str) -> None:
            try:
                self._walk(about)
            except Exception as error:  # noqa: BLE001  it must not stay unfinished for a bug
                _log.exception("the flow of %s failed", about)
                self._step(self._work.give_up, about, type(error).__name__)

        return measure_aside

    def _walk(self, about: str) -> None:
        work, attempt = self._work, 1
        job = self._step(work.order, about)
        if job is None:
            return
        with about_line(job=job):
            self._step(work.dispatch, job, attempt)
            while True:
                sight = Sight(self._step(work.look, job, attempt))
                if sight in {Sight.STORED, Sight.GIVE_UP}:
                    break
                if sight is Sight.RESTART:
                    attempt += 1
                    self._step(work.dispatch, job, attempt)
                DBOS.recv(topic=job, timeout_seconds=work.settings.poll_seconds)
            self._step(work.note, about)

    def _step(self, step: Callable[..., Any], *arguments: str | int) -> Any:
        return run_step(step, *arguments, pause_seconds=self._pause)
