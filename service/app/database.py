"""The database as the command line knows it: upgrade it, check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.store import migrate

if TYPE_CHECKING:
    from service.core.settings import Settings


def upgrade(settings: Settings) -> None:
    """Bring the service's tables to the form that this version needs."""
    settings.home_folder.mkdir(parents=True, exist_ok=True)
    migrate.upgrade(settings.data_url)


def check(settings: Settings) -> None:
    """Return quietly if the tables are exactly as this version needs them.

    Raises:
        ServiceError: They are not; the message says what to do.
    """
    migrate.check(settings.data_url)
