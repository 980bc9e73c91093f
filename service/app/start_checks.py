"""What has to be right before a service starts, said in words that help.

Settings come in; a database of this version goes out, or one error that names the variable and what
to do. What may come right by itself, such as a remote that does not answer, is no error here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pygit2
from alembic.util.exc import CommandError
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError

from service.app.database import upgrade
from service.core.errors import SettingsError
from service.core.weeks import zone_of

if TYPE_CHECKING:
    from service.core.settings import Settings


def check_start(settings: Settings) -> None:
    """Return quietly if a service can work with these settings.

    Raises:
        SettingsError: It cannot; one line for each fault.
    """
    faults = [
        *_database_faults("FORKWATCH_DATABASE_URL", settings.data_url),
        *_database_faults("FORKWATCH_DBOS_URL", settings.flows_url),
        *_repository_faults(settings.repository),
        *_zone_faults(settings.digest_time_zone),
    ]
    if faults:
        raise SettingsError("\n".join(dict.fromkeys(faults)))


def prepare_database(settings: Settings) -> None:
    """Bring the database to the form of this version.

    Raises:
        SettingsError: It does not answer, or belongs to a newer version.
    """
    try:
        upgrade(settings)
    except OperationalError as error:
        why = " ".join(str(error.orig).split())
        raise SettingsError(
            f"FORKWATCH_DATABASE_URL: the database does not answer ({why}); "
            "start it, or set another address"
        ) from error
    except CommandError as error:
        raise SettingsError(
            f"the database is of another version of forkwatch ({error}); install the newest one, "
            "or restore a backup made with this one"
        ) from error


def _database_faults(name: str, url: str) -> list[str]:
    """Return what is wrong with the file of a database, before SQLite says so in its own words."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return []
    if parsed.database in {None, "", ":memory:"}:
        return [f"{name}={url}: a database in memory is forgotten at the end; name a file"]
    folder = Path(str(parsed.database)).resolve().parent
    return [] if folder.is_dir() else [f"{name}={url}: there is no folder {folder}; make it"]


def _repository_faults(repository: Path | None) -> list[str]:
    # Without any, the composition says so; a test brings a code host of its own.
    if repository is None:
        return []
    path = repository.expanduser().resolve()
    if not path.is_dir():
        return [f"FORKWATCH_REPOSITORY={path}: there is no such folder; clone the fork there"]
    try:
        pygit2.Repository(str(path))
    except pygit2.GitError:
        return [f"FORKWATCH_REPOSITORY={path}: this is no git repository; name the fork's clone"]
    return []


def _zone_faults(name: str) -> list[str]:
    try:
        zone_of(name)
    except SettingsError as error:
        return [f"FORKWATCH_DIGEST_TIME_ZONE: {error}"]
    return []
