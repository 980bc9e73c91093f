"""The gate that steps of flows go through, so that a service can end between two of them.

Steps come in one by one and are counted; once the gate is closed, no further one begins. A flow
that waits at it goes on after the next start of the service, as it would after a crash, but no step
was cut in the middle. Whoever wants to know how far steps have come may listen here.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Moment(StrEnum):
    """How far a step has come."""

    #: Nothing of it is done.
    BEGUN = "begun"
    #: All of it is done, and its flow does not know yet.
    DONE = "done"
    #: Its flow knows: it is never done again.
    KEPT = "kept"


class StepGate:
    """Lets steps in until it is closed; it never opens again."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self._inside = 0
        self._listener: Callable[[str, Moment], None] | None = None

    @contextmanager
    def one(self) -> Iterator[None]:
        """Do a step inside; whoever comes after the closing waits for the end of the process."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Let no further step begin."""
        with self._changed:
            self._closed = True

    def wait_until_empty(self, timeout_s: float | None = None) -> bool:
        """Wait for the steps under way; return whether all of them have ended."""
        with self._changed:
            return self._changed.wait_for(lambda: self._inside == 0, timeout_s)

    def listen(self, listener: Callable[[str, Moment], None]) -> None:
        """Have a listener hear the name of each step and how far it has come, in its own thread."""
        self._listener = listener

    def tell(self, step: str, moment: Moment) -> None:
        """Tell whoever listens how far a step has come."""
        if self._listener is not None:
            self._listener(step, moment)


#: That of this process: DBOS, which the steps are written down with, is one for each process too.
STEPS: Final = StepGate()
