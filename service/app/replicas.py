"""Several processes of one service: who may join, what one does at a time, and who takes over.

Settings come in. With flows and data on PostgreSQL a service may be several processes that share
a home folder; with SQLite it is one, and everything here then does nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from service.app.sole_service import home_id, shares_database
from service.core.errors import SettingsError
from service.flows.takeover import Takeover
from service.store.flow_tables import FlowTables
from service.store.replica_locks import ReplicaLocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from service.core.settings import Settings

#: A process that was killed has its connections closed by the kernel, and PostgreSQL sees that at
#: once; a replica that takes over holds a seat for as long as some updates take.
JOIN_SECONDS_MAX: Final = 10.0


class Replicas:
    """What this process is to the others of its service."""

    def __init__(self, settings: Settings) -> None:
        """Remember the settings; nothing is asked of the database yet."""
        self._settings = settings
        self._locks: ReplicaLocks | None = None
        self._takeover: Takeover | None = None
        if shares_database(settings):
            self._locks = ReplicaLocks(settings.flows_url, name=settings.replica)

    def alone(self, what: str) -> AbstractContextManager[object]:
        """Return the lock of what one thread of one process does at a time."""
        return threading.RLock() if self._locks is None else self._locks.alone(what)

    def join(self) -> None:
        """Take the place of this process' name, before any flow goes on.

        Raises:
            SettingsError: There is a process of this name, or one with another home folder.
        """
        if self._locks is None:
            return
        name, home = self._settings.replica, self._settings.home_folder
        if not self._locks.take_seat(home_id(home), patience_seconds=JOIN_SECONDS_MAX):
            raise SettingsError(
                f"a service of the name {name!r} works on this database; stop it, or give this "
                "one a name of its own with FORKWATCH_REPLICA"
            )
        if self._locks.other_homes():
            self._locks.leave()
            raise SettingsError(
                f"a service on this database works in another home folder than {home}; "
                "replicas share one, because the runners' folders are in it: give its --home"
            )

    def start(self, resume: Callable[[], None]) -> None:
        """Begin to look after the others; DBOS has to be launched.

        Args:
            resume: Begins what is written down and has no flow.
        """
        if self._locks is not None:
            flows = FlowTables(self._settings.flows_url)
            name = self._settings.replica
            self._takeover = Takeover(self._locks, flows, name=name, resume=resume)
            self._takeover.start()

    def stop(self) -> None:
        """Look after the others no more; the place is kept."""
        if self._takeover is not None:
            self._takeover.stop()

    def leave(self) -> None:
        """Give the place back, as the end of the process does."""
        if self._locks is not None:
            self._locks.leave()
