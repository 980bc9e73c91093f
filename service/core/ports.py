"""The ports: what the service asks of the outside, as small protocols.

`channels` has the real adapters, `tests/` the fakes; only `app/compose.py` knows which is in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from results.job import JobOrder
    from service.core.model import Alert, GitCommit, JobStatus
    from workloads.plan import Notify


class CodeHost(Protocol):
    """Where the fork's commits and its plan come from."""

    @property
    def repository(self) -> Path:
        """A local git repository that runners on this machine can fetch from."""
        ...

    def plan_text(self) -> str:
        """Return the plan as the default branch's head has it.

        Raises:
            CodeHostError: The repository or the plan cannot be read.
        """
        ...

    def branch_commits(self, branch: str, *, limit: int) -> list[GitCommit]:
        """Return the newest `limit` first-parent commits of a branch, oldest first.

        Raises:
            CodeHostError: The repository or the branch cannot be read.
        """
        ...

    def commit(self, sha: str) -> GitCommit:
        """Return one commit.

        Raises:
            CodeHostError: It cannot be read.
        """
        ...


class Dispatcher(Protocol):
    """Starts jobs on runners and looks after them."""

    def start(self, order: JobOrder) -> None:
        """Start a runner on a job that has no runner now; a runner resumes where one left off.

        Raises:
            DispatchError: No runner could be started.
        """
        ...

    def status(self, job: str) -> JobStatus:
        """Return what became of a job; a job never started is lost."""
        ...

    def stop(self, job: str) -> None:
        """Stop the runner of a job, if it has one."""
        ...

    def collect(self, job: str) -> bytes:
        """Return the run document of a finished job as JSON.

        Raises:
            DispatchError: There is none.
        """
        ...


class AlertSink(Protocol):
    """Tells people about alerts."""

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        """Tell about an alert, once however often called; return where it can be seen.

        Args:
            alert: What it is about; its id tells one from another.
            text: The alert in Markdown.
            notify: Where the fork wants to be told.
        """
        ...
