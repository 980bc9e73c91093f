"""The end of a replica as the living ones see it: its flows are taken over, and nothing waits.

Who is there, the locks say; which flows a replica had, the table of flows says. DBOS gives each
flow that is taken over a new owner, so that a replica which was only cut off for a while cannot go
on with it. What was written down and not begun yet is begun by whoever composed this.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from dbos import DBOS
from dbos import error as dbos_error
from sqlalchemy.exc import SQLAlchemyError

from service.flows.commit_flow import FLOW_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.store.flow_tables import FlowTables
    from service.store.replica_locks import ReplicaLocks

_log = logging.getLogger("forkwatch.replicas")

#: Between looks at who is there. A look is two small queries; a flow waits so long for its heir.
LOOK_SECONDS: Final = 2.0


class Takeover:
    """Looks after the other replicas of a service; only for flows and data on PostgreSQL."""

    def __init__(
        self,
        locks: ReplicaLocks,
        flows: FlowTables,
        *,
        name: str,
        resume: Callable[[], None],
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Remember whom to ask; nothing is looked at yet.

        Args:
            locks: Those of this replica, which has its seat.
            flows: All flows.
            name: Of this replica.
            resume: Begins what is written down and has no flow; called when a replica went.
            look_seconds: Between two looks.
        """
        self._locks, self._flows, self._name = locks, flows, name
        self._resume = resume
        self._look_seconds = look_seconds
        self._seen: frozenset[int] = frozenset()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replicas", daemon=True)

    def start(self) -> None:
        """Begin to look; DBOS has to be launched."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; returns when the present look is over."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def look(self) -> list[str]:
        """Take over what replicas left that are gone; return the names of those that had flows.

        Raises:
            SQLAlchemyError, DBOSException: The database does not answer now.
        """
        if not self._locks.keep_seat():
            _log.warning(
                "the seat of replica %s is taken; its flows may be with another", self._name
            )
            return []
        # Before the flows are read: who comes in between has its own to look after.
        there = self._locks.seats()
        others = sorted(self._flows.replicas_at_work(FLOW_VERSION) - {self._name})
        gone = [name for name in others if self._take_over(name)]
        # One may have gone between writing something down and beginning its flow.
        if gone or self._seen - there:
            self._resume()
        self._seen = there
        return gone

    def _take_over(self, name: str) -> bool:
        """Take over the flows of a replica, unless it is there; return whether."""
        with self._locks.vacant(name) as vacant:
            if vacant:
                # DBOS has no public name for it: its own service for several machines calls it so.
                found = DBOS._recover_pending_workflows([name])  # noqa: SLF001  see above
                _log.warning("replica %s is gone: %d flows taken over", name, len(found))
        return vacant

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.look()
            except (SQLAlchemyError, dbos_error.DBOSException) as error:
                _log.warning("the other replicas cannot be looked after now: %s", error)
            except Exception:  # noqa: BLE001  who looks no more leaves the flows of the dead waiting
                _log.exception("the other replicas could not be looked after")
            self._stopped.wait(self._look_seconds)
