"""The lock that a service holds on its home folder; what replaces databases holds it, too.

On SQLite one process holds it alone. The replicas of a service on PostgreSQL hold it together.
"""

from __future__ import annotations

import fcntl
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlalchemy import make_url

from service.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.core.settings import Settings

#: Held while a service works in a home folder, so that a second one cannot resume the same flows.
LOCK_FILE: Final = "service.lock"
#: Tells a home folder from others, however it is mounted.
ID_FILE: Final = "home-id"


@contextmanager
def only_one(home: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a home folder, which is made where it is not there.

    Args:
        home: The folder.
        shared: With others that share it.

    Raises:
        SettingsError: A service works in it, or it cannot be written.
    """
    _make(home)
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with (home / LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                f"another service works in {home}; stop it or give --home"
            ) from None
        yield


def shares_database(settings: Settings) -> bool:
    """Whether several processes may work on the data and the flows of a service."""
    urls = (settings.data_url, settings.flows_url)
    return all(make_url(url).get_backend_name() != "sqlite" for url in urls)


def home_id(home: Path) -> str:
    """Return the id of a home folder, which is given to it when somebody first asks."""
    with (home / ID_FILE).open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        found = file.read().strip()
        if not found:
            found = uuid.uuid4().hex
            file.write(f"{found}\n")
    return found


def _make(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        (home / LOCK_FILE).touch()
    except OSError as error:
        raise SettingsError(
            f"{home} cannot be written ({error.strerror}); give --home or set FORKWATCH_HOME"
        ) from error
