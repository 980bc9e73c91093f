"""Tokens as the command line knows them: the store of the settings, opened for one verb."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.app.database import check
from service.core.clock import SystemClock
from service.flows.tokens import Tokens
from service.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.core.settings import Settings


@contextmanager
def opened_tokens(settings: Settings) -> Iterator[Tokens]:
    """Give the tokens of a service, running or not.

    Raises:
        ServiceError: Its database is not as this version needs it; the message says what to do.
    """
    settings.home_folder.mkdir(parents=True, exist_ok=True)
    check(settings)
    database = Database(settings.data_url)
    try:
        yield Tokens(database=database, clock=SystemClock())
    finally:
        database.close()
