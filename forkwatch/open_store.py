"""Opening a service's store from the command line, beside the service or without it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from forkwatch.errors import DoorError
from service.app.database import check
from service.core.errors import ServiceError, SettingsError
from service.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.core.settings import Settings


@contextmanager
def opened_store(settings: Settings) -> Iterator[Database]:
    """Give the service's database, after a look at whether it is one.

    Errors of the service, inside the context too, become lines for the user.

    Raises:
        DoorError: There is no database, or the service says no.
        SettingsError: A setting is wrong.
    """
    url = make_url(settings.data_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        # Opening it would make an empty file that looks like a service's.
        raise DoorError(
            f"there is no database at {url.database}; is --home the service's? "
            "`forkwatch db upgrade` makes one"
        )
    database = Database(settings.data_url)
    try:
        check(settings)
        yield database
    except SettingsError:
        raise
    except ServiceError as error:
        raise DoorError(str(error)) from error
    finally:
        database.close()
