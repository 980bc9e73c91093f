"""Locks that the replicas of a service share, held in PostgreSQL by the process that took them.

Names come in. A lock is gone as soon as its connection is, and with it the process or the machine,
so nobody has to guess from a clock who is still there. What a lock is good for, its takers know.
"""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Self

from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from service.store.database import driver_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

#: Spaces of keys. PostgreSQL has locks of two numbers, and others may use the database, too: these
#: are letters of ours, not 1, 2, 3.
_SEATS: Final = int.from_bytes(b"fwse", "big")
_HOMES: Final = int.from_bytes(b"fwho", "big")
_DEEDS: Final = int.from_bytes(b"fwde", "big")
#: Names of locks are numbers of PostgreSQL's `integer`, without a sign.
_NAMES: Final = 2**31
#: Between tries to get a lock that somebody holds for a moment.
_PAUSE_SECONDS: Final = 0.1
#: A machine that lost its power says nothing any more. PostgreSQL then asks it after 10 s, three
#: times, 5 s apart; its own defaults wait for two hours.
_WATCHED: Final = text(
    "SELECT set_config('tcp_keepalives_idle', '10', false), "
    "set_config('tcp_keepalives_interval', '5', false), "
    "set_config('tcp_keepalives_count', '3', false)"
)
_TAKE: Final = text("SELECT pg_advisory_lock(:space, :name)")
_TRY: Final = text("SELECT pg_try_advisory_lock(:space, :name)")
_SHARE: Final = text("SELECT pg_advisory_lock_shared(:space, :name)")
_GIVE_BACK: Final = text("SELECT pg_advisory_unlock_all()")
_HELD: Final = text(
    "SELECT DISTINCT CAST(objid AS bigint) FROM pg_locks "
    "WHERE locktype = 'advisory' AND granted AND objsubid = 2 "
    "AND CAST(classid AS bigint) = :space "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class SharedLock:
    """Taken by one thread of one replica at a time; that thread may take it again inside."""

    def __init__(self, engine: Engine, what: str) -> None:
        self._engine = engine
        self._name = number_of(what)
        self._threads = threading.RLock()
        self._depth = 0
        self._held: Connection | None = None

    def __enter__(self) -> Self:
        self._threads.acquire()
        try:
            if not self._depth:
                self._held = _taken(self._engine, self._name)
        except BaseException:
            self._threads.release()
            raise
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        try:
            if not self._depth and self._held is not None:
                held, self._held = self._held, None
                _end(held)
        finally:
            self._threads.release()


class ReplicaLocks:
    """The locks of one replica; the database is asked for the first of them, and not before."""

    def __init__(self, url: str, *, name: str) -> None:
        """Remember where and who.

        Args:
            url: Of a PostgreSQL database that all replicas use.
            name: Of this replica.
        """
        self._engine = _engine(url)
        self._name = name
        self._seat: Connection | None = None
        self._home = ""

    def alone(self, what: str) -> SharedLock:
        """Return the lock of a deed that one replica does at a time."""
        return SharedLock(self._engine, what)

    def take_seat(self, home: str, *, patience_seconds: float) -> bool:
        """Take the seat of this replica's name, and say that it works in a home; return whether.

        Args:
            home: Id of the home folder.
            patience_seconds: A seat may be held for a moment by whoever takes over from a replica
                of this name, or by a process that was just killed.
        """
        until = time.monotonic() + patience_seconds
        while True:
            seat = self._engine.connect()
            seat.execute(_WATCHED)
            if seat.scalar(_TRY, {"space": _SEATS, "name": number_of(self._name)}):
                seat.execute(_SHARE, {"space": _HOMES, "name": number_of(home)})
                self._seat, self._home = seat, home
                return True
            seat.close()
            if time.monotonic() >= until:
                return False
            time.sleep(_PAUSE_SECONDS)

    def keep_seat(self) -> bool:
        """Return whether this replica has its seat; one that was lost is taken again."""
        if self._seat is not None:
            try:
                self._seat.execute(text("SELECT 1"))
            except DBAPIError:
                self.leave()
            else:
                return True
        return self.take_seat(self._home, patience_seconds=0)

    def leave(self) -> None:
        """Give the seat back."""
        if self._seat is not None:
            seat, self._seat = self._seat, None
            _end(seat)

    def seats(self) -> frozenset[int]:
        """Return the numbers of the names whose replicas are there."""
        return self._numbers(_SEATS)

    def other_homes(self) -> bool:
        """Return whether a replica works in another home folder than this one."""
        return bool(self._numbers(_HOMES) - {number_of(self._home)})

    @contextmanager
    def vacant(self, name: str) -> Iterator[bool]:
        """Hold the seat of another replica; give whether it was vacant."""
        connection = self._engine.connect()
        try:
            yield bool(connection.scalar(_TRY, {"space": _SEATS, "name": number_of(name)}))
        finally:
            _end(connection)

    def _numbers(self, space: int) -> frozenset[int]:
        assert self._seat is not None, "whoever asks has a seat"
        return frozenset(self._seat.scalars(_HELD, {"space": space}))


@contextmanager
def alone(url: str, what: str) -> Iterator[None]:
    """Do something in a PostgreSQL database that one process does at a time."""
    with SharedLock(_engine(url), what):
        yield


def number_of(name: str) -> int:
    """Return the number that stands for a name among locks."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % _NAMES


def _engine(url: str) -> Engine:
    # Each lock has a connection of its own, which closes with it; none may go back to a pool.
    return create_engine(driver_url(url), poolclass=NullPool, isolation_level="AUTOCOMMIT")


def _taken(engine: Engine, name: int) -> Connection:
    connection = engine.connect()
    try:
        connection.execute(_WATCHED)
        connection.execute(_TAKE, {"space": _DEEDS, "name": name})
    except BaseException:
        connection.close()
        raise
    return connection


def _end(connection: Connection) -> None:
    """End a connection, and its locks with it; it may be broken, and they are gone then."""
    # PostgreSQL ends a session some time after its client left. Who gives its locks back first
    # leaves nobody to find them held by somebody who is gone.
    if not connection.invalidated:
        with suppress(DBAPIError):
            connection.execute(_GIVE_BACK)
    connection.invalidate()
    connection.close()
