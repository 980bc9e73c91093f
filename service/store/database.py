"""The database: one engine, and transactions that commit at the edge only.

A URL comes in; sessions go out, one per request or step of a flow. SQLite runs in WAL mode with
foreign keys on and waits for a writer instead of failing; PostgreSQL is used through psycopg 3.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import create_engine, event, make_url
from sqlalchemy.orm import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import URL, Connection, Engine
    from sqlalchemy.engine.interfaces import DBAPIConnection

#: How long a writer waits for another writer on SQLite. Transactions here take milliseconds; a
#: longer wait means that somebody holds the file open from outside.
BUSY_TIMEOUT_MS: Final = 20_000
#: Of our own sessions. A page wants a thousand rows that an index names one by one; PostgreSQL
#: reads a whole table instead where it takes each for a seek of a disk, as it does by itself. And
#: to compile a question takes longer than any of ours (docs/operating.md, "How fast it is").
_POSTGRESQL_SETTINGS: Final = ("random_page_cost = 1.1", "jit = off")


class Database:
    """An engine and its transactions."""

    def __init__(self, url: str) -> None:
        self._engine = make_engine(url)

    @property
    def engine(self) -> Engine:
        """The engine, for migrations and checks."""
        return self._engine

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Give a session whose work is committed at the end, or undone on any error."""
        with Session(self._engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a session that sees one consistent state and changes nothing."""
        with self._engine.connect() as connection:
            reader = connection.execution_options(forkwatch_reads=True)
            with Session(reader, autoflush=False) as session:
                yield session
            connection.rollback()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def make_engine(url: str) -> Engine:
    """Return an engine for a SQLite or PostgreSQL URL."""
    parsed = driver_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite_engine(parsed)
    return _postgresql_engine(parsed)


def driver_url(url: str) -> URL:
    """Return the URL with the driver the service uses: plain `postgresql://` means psycopg 3."""
    parsed = make_url(url)
    if parsed.drivername in {"postgresql", "postgres"}:
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})

    @event.listens_for(engine, "connect")
    def _configure(connection: DBAPIConnection, _record: Any) -> None:
        # The driver must not begin transactions behind SQLAlchemy's back: see _begin.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A writer takes the lock at once: a reader that turns into a writer half-way would be
        # refused by SQLite without any waiting.
        reads = connection.get_execution_options().get("forkwatch_reads", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _postgresql_engine(url: URL) -> Engine:
    engine = create_engine(url, pool_pre_ping=True)

    @event.listens_for(engine, "connect")
    def _configure(connection: DBAPIConnection, _record: Any) -> None:
        cursor = connection.cursor()
        for setting in _POSTGRESQL_SETTINGS:
            cursor.execute(f"SET {setting}")
        cursor.close()
        connection.commit()

    return engine
