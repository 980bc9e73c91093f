"""A dispatcher that hands each job to where its host class has its machines: a CI, or here.

Orders come in and go on to one of two dispatchers. A job is looked after where it is, even if the
settings have changed since it was started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.core.model import JobStatus
from service.core.ports import ElsewhereDispatcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from results.job import JobOrder
    from service.core.ports import Dispatcher, ExplainingDispatcher


class ByHostClass:
    """Chooses between this machine and a CI."""

    def __init__(
        self, *, here: Dispatcher, ci: ExplainingDispatcher, in_ci: Callable[[str], bool]
    ) -> None:
        """Remember both.

        Args:
            here: Starts runners on this machine.
            ci: Has a CI start them.
            in_ci: Whether the jobs of a host class are the CI's.
        """
        self._here, self._ci, self._in_ci = here, ci, in_ci

    def start(self, order: JobOrder) -> None:
        """Start a runner where the host class has its machines."""
        (self._ci if self._in_ci(order.host_class) else self._here).start(order)

    def status(self, job: str) -> JobStatus:
        """Return what became of a job, wherever it was started."""
        found = self._ci.status(job)
        return self._here.status(job) if found is JobStatus.LOST else found

    def stop(self, job: str) -> None:
        """Stop the runner of a job, wherever it is."""
        self._ci.stop(job)
        self._here.stop(job)

    def collect(self, job: str) -> bytes:
        """Return the run document of a finished job as JSON."""
        # A job that is over at the CI is not asked about there any more.
        brought = self._ci.status(job) is JobStatus.FINISHED
        return (self._ci if brought else self._here).collect(job)

    def why_lost(self, job: str) -> str:
        """Return why the CI lost a job; empty where it was not the CI's."""
        return self._ci.why_lost(job)

    def is_elsewhere(self, host_class: str) -> bool:
        """Whether the jobs of a host class are the CI's."""
        return self._in_ci(host_class)

    def begun(self, prefix: str) -> dict[str, JobStatus]:
        """Return the CI's jobs whose names begin so, and what became of each."""
        return self._ci.begun(prefix) if isinstance(self._ci, ElsewhereDispatcher) else {}
