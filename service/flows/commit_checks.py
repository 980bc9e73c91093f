"""The durable flow that shows on each commit of the branch what is known about it.

News of a commit comes in and is only an occasion: what is shown is what the store says at that
moment. `commit_texts` words it; where it is shown, and how once and not twice, the channel knows.
"""

from __future__ import annotations

import logging
from contextvars import Context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.exc import OperationalError

from results.log_lines import about
from service.flows.commit_texts import commit_check
from service.flows.durable import RECOVERIES_MAX
from service.flows.pull_request_flow import GITHUB_QUEUE, DurableSteps

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from service.core.model import CommitState
    from service.core.ports import CheckSink
    from service.core.settings import Settings
    from service.store.database import Database

_log = logging.getLogger("forkwatch.flow")

#: Behind what has none, such as a pull request, whose author waits for it.
PRIORITY: Final = 1


@dataclass(frozen=True, kw_only=True)
class CommitCheckSteps:
    """The one step, with everything it touches."""

    database: Database
    checks: CheckSink
    settings: Settings
    #: Held by whoever reads and then shows: else what is older may be shown over what is newer.
    alone: AbstractContextManager[object]

    def show_commit(self, fork: str, sha: str) -> None:
        """Have the check of a commit say what is so now.

        Raises:
            RateLimitedError: The forge wants to be left alone for a while.
            CodeHostError: It may be there or not; showing it again is safe.
            RefusedError: The forge does not allow it.
        """
        page = f"{self.settings.pages_url}/forks/{quote(fork, safe='')}/commits/{sha}"
        with self.alone:
            with self.database.reading() as session:
                check = commit_check(session, fork, sha, page=page)
            suite = self.settings.suite
            self.checks.publish(sha, check, suite=suite, key=f"commit:{fork}", page=page)


class CommitChecks:
    """The flow, registered with DBOS; make one before DBOS is launched."""

    def __init__(self, steps: CommitCheckSteps, *, step_pause_seconds: float = 1.0) -> None:
        """Register the workflow.

        Args:
            steps: What it does.
            step_pause_seconds: The first pause before a step is tried again.
        """
        self._steps = steps
        self._durable = DurableSteps(pause_seconds=step_pause_seconds)
        self._workflow = self._registered()

    def told(self, fork: str, sha: str, state: CommitState) -> None:
        """Have the check of a commit say what is so, once for each state that it comes to.

        It is called in the flow of that commit and is no step of it. Killed before it was called,
        the flow calls it in its next life.
        """
        try:
            # Begun in the other flow's context, it would take the place of that one's next step.
            Context().run(self._begin, fork, sha, state)
        except (dbos_error.DBOSException, OperationalError) as error:
            _log.warning("commit %s is not shown as %s: %s", sha, state.value, error)

    def _begin(self, fork: str, sha: str, state: CommitState) -> None:
        with (
            SetWorkflowID(f"commit-check:{fork}:{sha}:{state.value}"),
            SetEnqueueOptions(priority=PRIORITY),
        ):
            DBOS.enqueue_workflow(GITHUB_QUEUE, self._workflow, fork, sha)

    def _registered(self) -> Callable[[str, str], None]:
        @DBOS.workflow(name="show_commit_check", max_recovery_attempts=RECOVERIES_MAX)
        def show_commit_check(fork: str, sha: str) -> None:
            with about(commit=(fork, sha)):
                try:
                    self._durable.do(self._steps.show_commit, fork, sha)
                except Exception:  # noqa: BLE001  the commit stands, shown or not
                    _log.exception("commit %s could not be shown", sha)

        return show_commit_check
