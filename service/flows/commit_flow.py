"""The durable flow of a commit: measure, judge, confirm, tell, finish, settle what it ended.

DBOS remembers which steps are done, so a service killed at any point goes on after the last one.
The steps themselves are in `steps`; here is only their order. Commits of one host class go through
one queue, one at a time, because two measurements on one machine would disturb each other.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.exc import OperationalError

from results.log_lines import about
from service.core.model import CommitState
from service.flows.durable import RECOVERIES_MAX, run_step
from service.flows.steps import Sight

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.core.model import CommitRecord, Job
    from service.flows.alert_life import AlertLife
    from service.flows.steps import Steps

_log = logging.getLogger("forkwatch.flow")

#: Raise it when the order of steps changes: flows begun under another version are not resumed.
FLOW_VERSION: Final = "2"
QUEUE_POLL_SECONDS: Final = 0.5


class CommitFlow:
    """The flow, registered with DBOS; make one before DBOS is launched."""

    def __init__(
        self,
        steps: Steps,
        *,
        life: AlertLife | None = None,
        alerted: Callable[[str, str], None] | None = None,
        shown: Callable[[str, str, CommitState], None] | None = None,
        step_pause_seconds: float = 1.0,
    ) -> None:
        """Register the flow.

        Args:
            steps: What it does.
            life: Closes the alerts whose loss is gone with a commit; nobody does where absent.
            alerted: Told of each alert and the commit that raised it, as no step of the flow.
            shown: Told of each state that a commit comes to, as no step of the flow.
            step_pause_seconds: The first pause before a step is tried again.
        """
        self._steps = steps
        self._life = life
        self._alerted = alerted
        self._shown = shown
        self._pause = step_pause_seconds
        self._queue = f"measure-{steps.settings.host_class}"
        self._workflow = self._registered()

    @property
    def queue(self) -> str:
        """The queue in which all measuring on the host class waits, whatever asks for it."""
        return self._queue

    def open_queue(self) -> None:
        """Declare the queue of the host class; DBOS has to be launched."""
        DBOS.register_queue(
            self._queue, global_concurrency=1, polling_interval_sec=QUEUE_POLL_SECONDS
        )

    def enqueue(self, commit: CommitRecord) -> None:
        """Begin the flow of a commit, unless it was begun already; older commits go first."""
        with (
            SetWorkflowID(workflow_id(commit.fork, commit.sha)),
            # Two commits can be enqueued in the same millisecond; the position tells them apart.
            SetEnqueueOptions(priority=commit.position + 1),
        ):
            DBOS.enqueue_workflow(self._queue, self._workflow, commit.fork, commit.sha)
        self.show(commit.fork, commit.sha, CommitState.WAITING)

    def show(self, fork: str, sha: str, state: CommitState) -> None:
        """Tell whoever shows commits of a state that one came to; twice is as good as once."""
        if self._shown is not None:
            self._shown(fork, sha, state)

    def notify(self, job: Job) -> None:
        """Wake the flow that waits for this job's run.

        A flow looks for itself too, so a message that cannot be delivered costs a little time only.
        """
        try:
            DBOS.send(
                workflow_id(job.fork, job.sha), job.run, topic=job.id, idempotency_key=job.run
            )
        except dbos_error.DBOSNonExistentWorkflowError:
            # It is of a backfill, whose flow has another name and looks for itself.
            return
        except (dbos_error.DBOSException, OperationalError) as error:
            _log.warning("job %s: its flow could not be woken: %s", job.id, error)

    def _registered(self) -> Callable[[str, str], None]:
        @DBOS.workflow(name="watch_commit", max_recovery_attempts=RECOVERIES_MAX)
        def watch_commit(fork: str, sha: str) -> None:
            with about(commit=(fork, sha)):
                try:
                    self._walk(fork, sha)
                except Exception as error:  # noqa: BLE001  a commit must not stay unfinished for a bug
                    _log.exception("the flow of %s failed", sha)
                    self._step(self._steps.give_up, fork, sha, f"{type(error).__name__}: {error}")
                self.show(fork, sha, CommitState.FINISHED)
                self._settle(fork, sha)

        return watch_commit

    def _walk(self, fork: str, sha: str) -> None:
        steps = self._steps
        single = self._step(steps.order_single, fork, sha)
        if single is None:
            return
        self.show(fork, sha, CommitState.MEASURING)
        with about(job=single):
            self._run_job(single)
            confirm = self._step(steps.judge_single, single)
        if confirm is None:
            return
        self.show(fork, sha, CommitState.CONFIRMING)
        with about(job=confirm):
            self._run_job(confirm)
            alert = self._step(steps.judge_confirm, confirm)
            if alert is not None:
                self._tell(fork, sha, alert)
                if self._alerted is not None:
                    self._alerted(alert, sha)
            self._step(steps.finish_confirmed, confirm)

    def _run_job(self, job: str) -> None:
        """Wait until a job's run is stored, or the job is given up."""
        steps, attempt = self._steps, 1
        self._step(steps.dispatch, job, attempt)
        while True:
            sight = Sight(self._step(steps.look, job, attempt))
            if sight in {Sight.STORED, Sight.GIVE_UP}:
                return
            if sight is Sight.RESTART:
                attempt += 1
                self._step(steps.dispatch, job, attempt)
            DBOS.recv(topic=job, timeout_seconds=steps.settings.poll_seconds)

    def _settle(self, fork: str, sha: str) -> None:
        """Close the alerts that a commit ended, and tell of it; what fails is tried by the next."""
        if self._life is None:
            return
        try:
            entries = self._step(self._life.settle, fork, sha)
        except Exception:  # noqa: BLE001  the commit is finished all the same
            _log.exception("alerts could not be settled after %s", sha)
            return
        for entry in entries:
            try:
                self._step(self._life.tell, entry)
            except Exception:  # noqa: BLE001  the log of orders keeps it as untold
                _log.exception("entry %d of the audit log could not be told", entry)

    def _tell(self, fork: str, sha: str, alert: str) -> None:
        try:
            self._step(self._steps.tell, alert)
        except Exception as error:  # noqa: BLE001  the verdict stands, told or not
            _log.exception("alert %s could not be told", alert)
            self._step(self._steps.note_untold, fork, sha, f"{type(error).__name__}: {error}")

    def _step(self, step: Callable[..., Any], *arguments: str | int) -> Any:
        """Do a step once and for all, trying again while the outside fails."""
        return run_step(step, *arguments, pause_seconds=self._pause)


def workflow_id(fork: str, sha: str) -> str:
    """Return the id of a commit's flow."""
    return f"commit:{fork}:{sha}"
