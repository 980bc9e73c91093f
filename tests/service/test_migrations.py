from __future__ import annotations

import pytest
from sqlalchemy import inspect

from service.core.errors import ServiceError
from service.store import migrate
from service.store.database import make_engine
from service.store.schema import METADATA


def tables(url: str) -> set[str]:
    engine = make_engine(url)
    found = set(inspect(engine).get_table_names())
    engine.dispose()
    return found - {"alembic_version"}


def test_up_from_empty_makes_every_table_and_down_takes_them_away(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    assert tables(empty_url) == set(METADATA.tables)

    migrate.downgrade(empty_url, "base")
    assert tables(empty_url) == set()

    migrate.upgrade(empty_url)
    migrate.upgrade(empty_url)
    assert tables(empty_url) == set(METADATA.tables)


def test_migrations_and_tables_say_the_same(empty_url: str) -> None:
    """`alembic check`: a column in tables.py without a migration is found."""
    migrate.upgrade(empty_url)
    migrate.check(empty_url)

    engine = make_engine(empty_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE forks ADD COLUMN surprise INTEGER")
    engine.dispose()
    with pytest.raises(ServiceError, match="surprise"):
        migrate.check(empty_url)


def test_an_old_database_is_told_what_to_run(empty_url: str) -> None:
    with pytest.raises(ServiceError, match="forkwatch db upgrade"):
        migrate.check(empty_url)
