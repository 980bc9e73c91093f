"""Runners of the story: done before anybody looks, unless they are held.

Orders come in as from the service's flows; documents go back through the door that the order names
a credential for, or lie there to be collected. Each job moves the story's clock by the time that it
would have taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.client import submit
from service.core.errors import DispatchError
from service.core.model import JobStatus

if TYPE_CHECKING:
    from results.document import RunDocument
    from results.job import JobOrder
    from tests.fakes.memory_fork import StillClock
    from tests.fakes.story.bench import Bench


class StoryRunners:
    """A dispatcher."""

    def __init__(self, bench: Bench, clock: StillClock) -> None:
        self._bench, self._clock = bench, clock
        #: Where the service listens; known once it does.
        self.door = ""
        #: Whether runners that are started from now on wait.
        self.hold = False
        #: What was measured so far, in order.
        self.measured: list[RunDocument] = []
        self._held: dict[str, JobOrder] = {}
        self._left: dict[str, bytes] = {}

    @property
    def held(self) -> int:
        """How many wait."""
        return len(self._held)

    def release(self) -> None:
        """Let those that wait come to their end, and hold no more."""
        self.hold = False
        for job, order in list(self._held.items()):
            self._run(order)
            del self._held[job]

    def start(self, order: JobOrder) -> None:
        if self.hold:
            self._held[order.job] = order
        else:
            self._run(order)

    def status(self, job: str) -> JobStatus:
        if job in self._held:
            return JobStatus.ALIVE
        return JobStatus.FINISHED if job in self._left else JobStatus.LOST

    def stop(self, job: str) -> None:
        self._held.pop(job, None)

    def collect(self, job: str) -> bytes:
        if job not in self._left:
            raise DispatchError
        return self._left[job]

    def _run(self, order: JobOrder) -> None:
        document = self._bench.document(order, at=self._clock.now())
        self._clock.advance(document.finished_at - document.created_at)
        self.measured.append(document)
        if order.submit_to is None or order.credential is None:
            self._left[order.job] = document.model_dump_json().encode()
        else:
            # The address in the order is that of a service with a port of its own.
            credential = order.credential.get_secret_value()
            submit(document, url=self.door, credential=credential, waits_s=())
