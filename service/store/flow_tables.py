"""What can be read of the durable flows beside DBOS: how many there are, and whether they move.

DBOS waits for its database for as long as it takes, which is right for flows and wrong for whoever
asks how it is. So its documented table of flows is read here directly, and never written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import column, create_engine, func, select, table

from service.store.database import driver_url

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds that a look waits for a lock or a connection.
PATIENCE_SECONDS: Final = 3
#: Schema of the tables on PostgreSQL; SQLite has none.
SCHEMA: Final = "dbos"
_WAITING: Final = "ENQUEUED"
_WORKING: Final = "PENDING"
_UNDER_WAY: Final = (_WAITING, _WORKING, "DELAYED")


class FlowTables:
    """Reads the table of flows."""

    def __init__(self, url: str) -> None:
        """Remember where the flows are; nothing is opened yet.

        Args:
            url: Of their database.
        """
        parsed = driver_url(url)
        sqlite = parsed.get_backend_name() == "sqlite"
        self._engine = create_engine(
            parsed,
            # As many as may look at once: a scrape and a supervisor.
            pool_size=2,
            pool_timeout=PATIENCE_SECONDS,
            pool_pre_ping=not sqlite,
            connect_args={"timeout" if sqlite else "connect_timeout": PATIENCE_SECONDS},
        )
        self._flows = table(
            "workflow_status",
            column("status"),
            column("name"),
            column("queue_name"),
            column("executor_id"),
            column("application_version"),
            schema=None if sqlite else SCHEMA,
        )

    def under_way(self) -> Mapping[tuple[str, ...], int]:
        """Return how many flows are not over, by name and status in small letters.

        Raises:
            SQLAlchemyError: The database does not answer, or has no flows yet.
        """
        flows = self._flows.c
        query = (
            select(flows.name, flows.status, func.count())
            .where(flows.status.in_(_UNDER_WAY))
            .group_by(flows.name, flows.status)
        )
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
        return {(str(name), str(status).lower()): count for name, status, count in rows}

    def standing_queues(self) -> set[str]:
        """Return the queues in which flows wait and none works.

        Raises:
            SQLAlchemyError: As above.
        """
        flows = self._flows.c
        working = select(flows.queue_name).where(
            flows.status == _WORKING, flows.queue_name.is_not(None)
        )
        query = (
            select(flows.queue_name)
            .where(flows.status == _WAITING, flows.queue_name.not_in(working))
            .distinct()
        )
        with self._engine.connect() as connection:
            return {str(name) for name in connection.scalars(query)}

    def replicas_at_work(self, version: str) -> frozenset[str]:
        """Return the names of the replicas that flows of a version are with.

        Raises:
            SQLAlchemyError: As above.
        """
        flows = self._flows.c
        query = (
            select(flows.executor_id)
            .where(
                flows.status == _WORKING,
                flows.application_version == version,
                flows.executor_id.is_not(None),
            )
            .distinct()
        )
        with self._engine.connect() as connection:
            return frozenset(str(name) for name in connection.scalars(query))

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
