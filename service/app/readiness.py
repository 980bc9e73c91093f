"""What a service cannot work without, each part with the words for what is wrong with it.

The parts of a service come in, things to look at go out. Anybody may read the words, so they name
settings and verbs, and neither folders nor addresses.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from service.store.revisions import newest_revision, present_revision
from service.web.health import Part

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from service.core.clock import Clock
    from service.core.settings import Settings
    from service.store.database import Database
    from service.store.flow_tables import FlowTables

#: A queue may stand for a moment between two flows; one that stands at every look for so long has
#: nobody who takes from it.
STANDING_MAX: Final = timedelta(seconds=30)


def service_parts(
    settings: Settings,
    *,
    database: Database,
    clock: Clock,
    flows: FlowTables,
    following: Callable[[], bool],
) -> list[Part]:
    """Return what has to be right.

    Args:
        settings: Of the service.
        database: Its data.
        clock: Tells how long something stands.
        flows: Its flows.
        following: Whether the branch is followed.
    """
    return [
        Part(name="database", fault=lambda: database_fault(database)),
        Part(name="flows", fault=FlowWatch(flows, clock).fault),
        Part(name="branch", fault=lambda: branch_fault(followed=following())),
        Part(
            name="disk",
            fault=lambda: disk_fault(settings.home_folder, free_min=settings.disk_free_min),
        ),
    ]


def database_fault(database: Database) -> str | None:
    """Say if the tables are not those of this version; a database that is away is an error."""
    with database.reading() as session:
        session.execute(text("SELECT 1"))
        present = present_revision(session.connection())
    newest = newest_revision()
    if present == newest:
        return None
    return (
        f"at revision {present or 'none'}, and this version needs {newest}; "
        "run `forkwatch db upgrade` of the newest version"
    )


def branch_fault(*, followed: bool) -> str | None:
    """Say if the branch is not followed."""
    return None if followed else "not followed any more; the log says why, restart the service"


def disk_fault(home: Path, *, free_min: int) -> str | None:
    """Say if the disk of the home folder is nearly full."""
    free = shutil.disk_usage(home).free
    if free >= free_min:
        return None
    return (
        f"{free:,} bytes are left in the home folder, and {free_min:,} have to be "
        "(FORKWATCH_DISK_FREE_MIN); `forkwatch db prune` and old jobs make room"
    )


class FlowWatch:
    """Sees whether flows move: it remembers since when each queue stands."""

    def __init__(self, flows: FlowTables, clock: Clock) -> None:
        self._flows = flows
        self._clock = clock
        self._standing: dict[str, datetime] = {}

    def fault(self) -> str | None:
        """Say which queues nobody takes from; flows that are away are an error."""
        now = self._clock.now()
        self._standing = {
            queue: self._standing.get(queue, now) for queue in self._flows.standing_queues()
        }
        stuck = [queue for queue, at in self._standing.items() if now - at >= STANDING_MAX]
        if not stuck:
            return None
        names = ", ".join(sorted(stuck))
        return f"nobody takes from {names}; the log says why, restart the service"
