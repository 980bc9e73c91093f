"""Backup, restore and pruning as the command line knows them: the stores of the settings.

SQLite is copied here; PostgreSQL has programs of its own that do it better, and they are named.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import make_url

from service.app.database import check
from service.app.sole_service import only_one
from service.core.clock import SystemClock
from service.flows.retention import RetentionSteps
from service.store.backup import BackupError, put_aside, read_backup, write_backup
from service.store.database import Database
from service.store.revisions import known_revisions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import URL

    from service.core.clock import Clock
    from service.core.settings import Settings
    from service.store.backup import Manifest

#: Names in a backup. The flows are copied first: data that is newer than the flows makes steps be
#: done again, which changes nothing; flows that are newer than the data would leave steps out.
FLOWS: Final = "flows.sqlite"
DATA: Final = "service.sqlite"


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What a restore did."""

    manifest: Manifest
    #: Where the databases are that were there before; None where there were none.
    aside: Path | None


def backup(settings: Settings, file: Path, *, clock: Clock | None = None) -> Manifest:
    """Write data and flows into one file, while a service runs or not; return what is in it.

    Raises:
        BackupError: It cannot be made; the message says what to do.
    """
    at = (clock or SystemClock()).now()
    places = _places(settings, "pg_dump --format=custom --file={file} {url}", file)
    return write_backup(places, file.absolute(), at=at)


def restore(
    settings: Settings, file: Path, *, force: bool = False, clock: Clock | None = None
) -> Restored:
    """Put the databases of a backup in their places; those that were there are kept aside.

    Args:
        settings: Say where the places are.
        file: The backup.
        force: Also where there are databases already.
        clock: Names the folder of what is put aside.

    Raises:
        BackupError: It is not possible; the message says what to do.
        SettingsError: A service works in the home folder.
    """
    places = _places(settings, "pg_restore --clean --if-exists --dbname={url} {file}", file)
    with only_one(settings.home_folder):
        for place in places.values():
            if not place.parent.is_dir():
                raise BackupError(f"there is no folder {place.parent}; make it")
        there = [place for place in places.values() if place.exists()]
        if there and not force:
            raise BackupError(f"{there[0]} is there; give --force to put it aside first")
        with read_backup(file, places) as (manifest, copies):
            if manifest.revision not in known_revisions():
                raise BackupError(
                    f"{file} has revision {manifest.revision} of the tables, which this version "
                    "does not know; install the version that made it, or a newer one"
                )
            at = (clock or SystemClock()).now()
            aside = settings.home_folder / f"before-restore-{at:%Y%m%dT%H%M%SZ}"
            if there:
                put_aside(there, aside)
            for name, place in places.items():
                copies[name].replace(place)
    return Restored(manifest=manifest, aside=aside if there else None)


@contextmanager
def opened_retention(settings: Settings, *, clock: Clock | None = None) -> Iterator[RetentionSteps]:
    """Give the steps that prune a store, running or not.

    Raises:
        ServiceError: Its database is not as this version needs it; the message says what to do.
    """
    settings.home_folder.mkdir(parents=True, exist_ok=True)
    check(settings)
    database = Database(settings.data_url)
    try:
        yield RetentionSteps(
            database=database,
            clock=clock or SystemClock(),
            keep_seconds_days=settings.keep_seconds_days,
            keep_samples_days=settings.keep_samples_days,
        )
    finally:
        database.close()


def _places(settings: Settings, command: str, file: Path) -> dict[str, Path]:
    """Return where the databases lie, by their names in a backup, in the order of copying.

    Raises:
        BackupError: They are no files; the message has the command that does it instead.
    """
    urls = {FLOWS: make_url(settings.flows_url), DATA: make_url(settings.data_url)}
    servers = list(dict.fromkeys(_address(url) for url in urls.values() if not _is_file(url)))
    if servers:
        commands = "; ".join(
            command.format(file=file if place == 0 else f"{file}.{place + 1}", url=f"'{url}'")
            for place, url in enumerate(servers)
        )
        raise BackupError(f"PostgreSQL has its own programs for this: {commands}")
    return {name: Path(str(url.database)).absolute() for name, url in urls.items()}


def _is_file(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _address(url: URL) -> str:
    """Return an address as PostgreSQL's programs take it, its password left out."""
    plain = url._replace(drivername="postgresql", password=None)
    return plain.render_as_string(hide_password=False)
