"""The durable flow of a pull request's head: order a pair, measure it, judge it, show it.

Three workflows share it, so that nobody waits where others queue: what asks git and GitHub runs
beside what measures, and only that has the queue of the host class. The steps are in `pull_steps`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.exc import OperationalError

from results.log_lines import about
from service.channels.github.errors import RateLimitedError
from service.flows.commit_flow import QUEUE_POLL_SECONDS
from service.flows.durable import RECOVERIES_MAX, may_work_later, run_step
from service.flows.steps import Sight

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.channels.github.webhooks import PullRequestChanged
    from service.core.pull_requests import PullJob
    from service.flows.pull_steps import PullSteps

_log = logging.getLogger("forkwatch.pull")

#: What asks git and GitHub waits here; a limit of GitHub's holds all of it up, and nothing else.
GITHUB_QUEUE: Final = "github"
#: GitHub is asked one request at a time anyway; more would only wait for each other.
GITHUB_CONCURRENCY: Final = 4
#: GitHub's limits end within the hour, and every wait is at most this long.
LIMIT_SECONDS_MAX: Final = 3700.0
#: Waits of one text before it counts as not to be told.
LIMIT_WAITS_MAX: Final = 24


class DurableSteps:
    """Does steps of a workflow once and for all, trying again while the outside fails."""

    def __init__(self, *, pause_seconds: float = 1.0) -> None:
        self._pause = pause_seconds

    def do(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a step returned when it was done; a limit of GitHub's is slept through."""
        for _ in range(LIMIT_WAITS_MAX):
            try:
                return self._once(step, *arguments)
            except RateLimitedError as error:
                _log.warning("%s: %s", step.__name__, error)
                DBOS.sleep(min(error.retry_after_s, LIMIT_SECONDS_MAX))
        return self._once(step, *arguments)

    def _once(self, step: Callable[..., Any], *arguments: Any) -> Any:
        return run_step(step, *arguments, pause_seconds=self._pause, should_retry=_may_work_soon)


class PullRequestFlow:
    """The flow, registered with DBOS; make one before DBOS is launched."""

    def __init__(
        self,
        steps: PullSteps,
        *,
        queue: str,
        step_pause_seconds: float = 1.0,
        poll_seconds: float = QUEUE_POLL_SECONDS,
    ) -> None:
        """Register the workflows.

        Args:
            steps: What they do.
            queue: That of the host class, which commits of the branch wait in as well.
            step_pause_seconds: The first pause before a step is tried again.
            poll_seconds: Between looks at the queue of what asks GitHub.
        """
        self._steps = steps
        self._durable = DurableSteps(pause_seconds=step_pause_seconds)
        self._queue = queue
        self._poll_seconds = poll_seconds
        self._prepare, self._measure, self._show = self._registered()

    def open_queue(self) -> None:
        """Declare the queue of what asks GitHub, and go on with jobs that a crash left behind."""
        DBOS.register_queue(
            GITHUB_QUEUE,
            global_concurrency=GITHUB_CONCURRENCY,
            polling_interval_sec=self._poll_seconds,
        )
        for job in self._steps.unfinished():
            self.begin(job.id)

    def changed(self, event: PullRequestChanged) -> None:
        """Do what follows from news of a pull request; news that came twice is done once.

        Raises:
            CodeHostError: The plan cannot be read now.
        """
        noted = self._steps.note(event)
        for job in noted.superseded:
            self.end(job)
        if noted.job is not None:
            self.begin(noted.job.id)

    def begin(self, job_id: str) -> None:
        """Begin the flow of a job, unless it was begun already."""
        with SetWorkflowID(f"pull:{job_id}"):
            DBOS.enqueue_workflow(GITHUB_QUEUE, self._prepare, job_id)

    def end(self, job: PullJob) -> None:
        """Let a superseded job cost no more time, and show that it is over."""
        self._steps.stop(job.id)
        try:
            DBOS.send(_measuring(job.id), "superseded", topic=job.id, idempotency_key=job.id)
        except (dbos_error.DBOSException, OperationalError) as error:
            # It looks for itself, too.
            _log.info("job %s: nobody waits for its runner: %s", job.id, error)
        self.show(job.id, "superseded")

    def show(self, job_id: str, news: str) -> None:
        """Have check and comment of a job say what is so, once for each piece of news."""
        with SetWorkflowID(f"pull-show:{job_id}:{news}"):
            DBOS.enqueue_workflow(GITHUB_QUEUE, self._show, job_id)

    def _registered(self) -> tuple[Callable[[str], None], ...]:
        @DBOS.workflow(name="prepare_pull_request", max_recovery_attempts=RECOVERIES_MAX)
        def prepare_pull_request(job_id: str) -> None:
            with about(job=job_id):
                self._guarded(self._prepared, job_id)
                # Last, because GitHub may want to be left alone for an hour.
                self._tell(job_id)

        @DBOS.workflow(name="measure_pull_request", max_recovery_attempts=RECOVERIES_MAX)
        def measure_pull_request(job_id: str) -> None:
            with about(job=job_id):
                self._guarded(self._measured, job_id)
                self.show(job_id, "over")

        @DBOS.workflow(name="show_pull_request", max_recovery_attempts=RECOVERIES_MAX)
        def show_pull_request(job_id: str) -> None:
            with about(job=job_id):
                self._tell(job_id)

        return prepare_pull_request, measure_pull_request, show_pull_request

    def _prepared(self, job_id: str) -> None:
        if self._durable.do(self._steps.order, job_id):
            # Without a priority it goes before the branch's commits: a person waits for it.
            with SetWorkflowID(_measuring(job_id)):
                DBOS.enqueue_workflow(self._queue, self._measure, job_id)

    def _measured(self, job_id: str) -> None:
        """Wait until a job's run is stored or given up, and judge it."""
        do, steps, attempt = self._durable.do, self._steps, 1
        do(steps.dispatch, job_id, attempt)
        while True:
            sight = Sight(do(steps.look, job_id, attempt))
            if sight in {Sight.STORED, Sight.GIVE_UP}:
                break
            if sight is Sight.RESTART:
                attempt += 1
                do(steps.dispatch, job_id, attempt)
            DBOS.recv(topic=job_id, timeout_seconds=steps.settings.poll_seconds)
        do(steps.judge, job_id)

    def _guarded(self, part: Callable[[str], None], job_id: str) -> None:
        """Do a part of a flow; a job must not stay unfinished for a bug."""
        try:
            part(job_id)
        except Exception as error:  # noqa: BLE001  a job must not stay unfinished for a bug
            _log.exception("the flow of job %s failed", job_id)
            self._durable.do(self._steps.give_up, job_id, type(error).__name__)

    def _tell(self, job_id: str) -> None:
        try:
            self._durable.do(self._steps.show, job_id)
        except Exception:  # noqa: BLE001  the job stands, shown or not
            _log.exception("job %s could not be shown", job_id)


def _measuring(job_id: str) -> str:
    return f"pull-measure:{job_id}"


def _may_work_soon(error: BaseException) -> bool:
    """Whether trying again within minutes may help; a limit says by itself when it ends."""
    return may_work_later(error) and not isinstance(error, RateLimitedError)
