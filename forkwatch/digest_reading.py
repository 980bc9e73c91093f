"""Reading digests from a service's store, beside the service or without it.

Settings and the words of a command line come in, digests go out. They are made from the store each
time and never written: the service alone keeps and sends them.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from forkwatch.errors import DoorError
from service.app.database import check
from service.core.clock import SystemClock
from service.core.errors import ServiceError
from service.core.weeks import parse_week, week_of, zone_of
from service.flows.digest_contents import digest_of
from service.store import forks
from service.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from sqlalchemy.orm import Session

    from reports.digest import Digest
    from service.core.clock import Clock
    from service.core.model import Fork
    from service.core.settings import Settings
    from service.core.weeks import Week


def read_digests(
    settings: Settings,
    *,
    week_name: str | None,
    fork_name: str | None,
    against: str | None,
    zone_name: str,
    clock: Clock | None = None,
) -> list[Digest]:
    """Return the digest of a week for each fork, or for one.

    Raises:
        DoorError: There is no such week or fork, or nothing is stored.
        NotFoundError: There is no measured commit to compare with.
        SettingsError: There is no such time zone.
    """
    zone, now = zone_of(zone_name), (clock or SystemClock()).now()
    asked = _asked(week_name, now=now, zone=zone)
    with _opened(settings) as database, database.reading() as session:
        return [
            digest_of(
                session,
                fork,
                asked or _usual(fork, now=now, zone=zone),
                zone=zone,
                now=now,
                against=against,
            )
            for fork in _forks(session, fork_name)
        ]


def _asked(name: str | None, *, now: datetime, zone: ZoneInfo) -> Week | None:
    if name is None:
        return None
    try:
        week = parse_week(name)
    except ValueError as error:
        raise DoorError(str(error)) from error
    if week.begins(zone) > now:
        raise DoorError(f"the week {name} has not begun; it is {week_of(now, zone).name} now")
    return week


def _usual(fork: Fork, *, now: datetime, zone: ZoneInfo) -> Week:
    """Return the last whole week, or the running one of a fork that is younger than that."""
    running = week_of(now, zone)
    return max(running.after(-1), min(running, week_of(fork.first_seen_at, zone)))


def _forks(session: Session, name: str | None) -> list[Fork]:
    known = forks.everything(session)
    if not known:
        raise DoorError("no fork is stored yet; `forkwatch serve` writes them down")
    chosen = [fork for fork in known if name in {None, fork.name}]
    if not chosen:
        names = ", ".join(fork.name for fork in known)
        raise DoorError(f"there is no fork {name!r}; stored are: {names}")
    return chosen


@contextmanager
def _opened(settings: Settings) -> Iterator[Database]:
    """Give the service's database, after a look at whether it is one."""
    url = make_url(settings.data_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        # Opening it would make an empty file that looks like a service's.
        raise DoorError(f"there is no database at {url.database}; is --home the service's?")
    try:
        check(settings)
    except ServiceError as error:
        raise DoorError(str(error)) from error
    database = Database(settings.data_url)
    try:
        yield database
    finally:
        database.close()
