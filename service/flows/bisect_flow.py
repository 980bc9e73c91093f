"""The durable flow of a bisect: measure a commit, take in what it says, until the search is over.

DBOS remembers which steps are done, so a service killed at any point goes on after the last one.
One bisect is under way at a time, and the others wait in their order. Each of its measurements
waits in the queue of the host class, so that what is measured beside it gets its turn in between.
"""

from __future__ import annotations

import logging
from contextvars import Context
from typing import TYPE_CHECKING, Final

from dbos import DBOS, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.exc import OperationalError

from service.flows.bisect_telling import Turn
from service.flows.commit_flow import QUEUE_POLL_SECONDS
from service.flows.durable import RECOVERIES_MAX
from service.flows.pull_request_flow import DurableSteps
from service.flows.steps import Sight

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.flows.bisect_merges import BisectMerges
    from service.flows.bisect_steps import BisectSteps
    from service.flows.bisect_telling import BisectTelling

_log = logging.getLogger("forkwatch.bisect")

#: Bisects wait here for each other: a service watches one fork, and has one machine of a class.
BISECT_QUEUE: Final = "bisect"


class BisectFlow:
    """The flow, registered with DBOS; make one before DBOS is launched."""

    def __init__(
        self,
        steps: BisectSteps,
        telling: BisectTelling,
        *,
        queue: str,
        step_pause_seconds: float = 1.0,
        poll_seconds: float = QUEUE_POLL_SECONDS,
        merges: BisectMerges | None = None,
    ) -> None:
        """Register the workflows.

        Args:
            steps: What they do.
            telling: Who hears of it.
            queue: That of the host class, which commits and pull requests wait in as well.
            step_pause_seconds: The first pause before a step is tried again.
            poll_seconds: Between looks at a queue, and at a measurement under way.
            merges: Follows a culprit that is a merge; None leaves it at that.
        """
        self._steps, self._telling, self._merges = steps, telling, merges
        self._durable = DurableSteps(pause_seconds=step_pause_seconds)
        self._queue = queue
        self._poll_seconds = poll_seconds
        self._bisect = self._registered_bisect()
        self._measure = self._registered_measure()
        self._tell, self._show = self._registered_words()

    def open_queue(self) -> None:
        """Declare the queue of bisects, and go on with those that a crash left behind."""
        DBOS.register_queue(
            BISECT_QUEUE, global_concurrency=1, polling_interval_sec=self._poll_seconds
        )
        for bisect in self._steps.unfinished():
            self.begin(bisect.id)

    def begin(self, bisect_id: str) -> None:
        """Begin the flow of a bisect, unless it was begun already.

        Where it cannot be begun now, the next start of the service finds it.
        """
        self._aside(self._enqueue, bisect_id)

    def cancelled(self, bisect_id: str, jobs: Sequence[str]) -> None:
        """Let a bisect that somebody ended cost no more time, and tell that it is over.

        Args:
            bisect_id: Which.
            jobs: Those of it that have not ended.
        """
        for job in jobs:
            self._steps.stop(job)
            self._aside(self._wake, job)
        self._steps.stop_builds(bisect_id)
        self._aside(self._begin_end, bisect_id)

    def _registered_bisect(self) -> Callable[[str], None]:
        @DBOS.workflow(name="bisect", max_recovery_attempts=RECOVERIES_MAX)
        def bisect(bisect_id: str) -> None:
            try:
                self._search(bisect_id)
            except Exception as error:  # noqa: BLE001  a bisect must not stay unfinished for a bug
                _log.exception("the flow of %s failed", bisect_id)
                self._durable.do(self._steps.give_up, bisect_id, type(error).__name__)
            self._begin_end(bisect_id)
            self._follow(bisect_id)

        return bisect

    def _registered_measure(self) -> Callable[[str], str]:
        @DBOS.workflow(name="measure_bisect", max_recovery_attempts=RECOVERIES_MAX)
        def measure_bisect(job_id: str) -> str:
            """Return what kept the job from coming to its end; nothing where it did."""
            try:
                self._measured(job_id)
            except Exception as error:  # noqa: BLE001  one measurement of many; the search goes on
                _log.exception("job %s failed", job_id)
                return f"the service could not follow its job ({type(error).__name__})"
            return ""

        return measure_bisect

    def _registered_words(self) -> tuple[Callable[[str, str], None], Callable[[str], None]]:
        @DBOS.workflow(name="tell_bisect", max_recovery_attempts=RECOVERIES_MAX)
        def tell_bisect(bisect_id: str, turn: str) -> None:
            if turn == Turn.ENDED:
                self._durable.do(self._telling.advance, bisect_id, turn)
            self._told(self._telling.tell, bisect_id, turn)
            self._told(self._telling.show, bisect_id)

        @DBOS.workflow(name="show_bisect", max_recovery_attempts=RECOVERIES_MAX)
        def show_bisect(bisect_id: str) -> None:
            self._told(self._telling.show, bisect_id)

        return tell_bisect, show_bisect

    def _search(self, bisect_id: str) -> None:
        """Measure until the search is over, and write its answer down."""
        do, steps = self._durable.do, self._steps
        if not do(steps.begin, bisect_id):
            return
        do(self._telling.advance, bisect_id, Turn.BEGUN.value)
        self._begin_tell(bisect_id, Turn.BEGUN)
        job = do(steps.next_job, bisect_id)
        while job is not None:
            # Without a priority it goes before the branch's commits: a person waits for it.
            with SetWorkflowID(_measuring(job)):
                handle = DBOS.enqueue_workflow(self._queue, self._measure, job)
            trouble = handle.get_result(polling_interval_sec=self._poll_seconds)
            do(steps.observe, job, trouble)
            with SetWorkflowID(f"{bisect_id}:show:{job}"):
                DBOS.start_workflow(self._show, bisect_id)
            job = do(steps.next_job, bisect_id)
        do(steps.finish, bisect_id)

    def _follow(self, bisect_id: str) -> None:
        """Have searched what the culprit merged, if it is a merge: by a bisect of its own."""
        if self._merges is None:
            return
        try:
            within = self._durable.do(self._merges.follow, bisect_id)
        except Exception:  # noqa: BLE001  the merge is the answer all the same
            _log.exception("what the culprit of %s merged is not searched", bisect_id)
            return
        if within is not None:
            self._enqueue(within)

    def _measured(self, job_id: str) -> None:
        """Wait until a job's run is stored, or the job is given up."""
        do, steps, attempt = self._durable.do, self._steps, 1
        do(steps.dispatch, job_id, attempt)
        while True:
            sight = Sight(do(steps.look, job_id, attempt))
            if sight in {Sight.STORED, Sight.GIVE_UP}:
                return
            if sight is Sight.RESTART:
                attempt += 1
                do(steps.dispatch, job_id, attempt)
            DBOS.recv(topic=job_id, timeout_seconds=steps.settings.poll_seconds)

    def _begin_tell(self, bisect_id: str, turn: Turn) -> None:
        """Have people hear of a turn, beside the search: they may not be reachable for hours."""
        with SetWorkflowID(f"{bisect_id}:{turn.value}"):
            DBOS.start_workflow(self._tell, bisect_id, turn.value)

    def _begin_end(self, bisect_id: str) -> None:
        self._begin_tell(bisect_id, Turn.ENDED)

    def _enqueue(self, bisect_id: str) -> None:
        with SetWorkflowID(bisect_id):
            DBOS.enqueue_workflow(BISECT_QUEUE, self._bisect, bisect_id)

    def _wake(self, job_id: str) -> None:
        DBOS.send(_measuring(job_id), "cancelled", topic=job_id, idempotency_key=job_id)

    def _aside(self, deed: Callable[[str], None], about: str) -> None:
        """Do something as from outside; what cannot be done now, somebody else looks for.

        Bisects are asked for inside the steps of other flows too. Begun in their context, a flow
        would be written down as a part of the step, in the step's own place.
        """
        try:
            Context().run(deed, about)
        except (dbos_error.DBOSException, OperationalError) as error:
            _log.warning("%s: %s", about, error)

    def _told(self, step: Callable[..., None], *arguments: str) -> None:
        try:
            self._durable.do(step, *arguments)
        except Exception:  # noqa: BLE001  the bisect stands, told or not
            _log.exception("bisect %s could not be told", arguments[0])


def _measuring(job_id: str) -> str:
    return f"bisect-measure:{job_id}"
