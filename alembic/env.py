"""The environment of migrations: which tables, and on which connection.

The service hands its own connection over in `config.attributes`; somebody running Alembic by hand
gets the database of the settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from alembic import context

from service.core.settings import load_settings
from service.store.database import make_engine
from service.store.schema import METADATA

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

#: A migration that cannot get its locks gives up instead of queueing every reader behind it.
LOCK_TIMEOUT: Final = "10s"


def run(connection: Connection) -> None:
    """Run the asked-for migrations in one transaction."""
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        compare_type=True,
        # SQLite cannot alter a table; Alembic then copies it.
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    run(given)
    # Alembic joins a transaction that is open already and leaves its end to us.
    given.commit()
else:
    with make_engine(load_settings().data_url).connect() as own:
        run(own)
        own.commit()
