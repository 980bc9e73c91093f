"""Databases for the tests of the service: SQLite, and a real PostgreSQL of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url

from service.store import migrate
from service.store.database import Database
from tests.fakes.postgres_server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres: PostgresServer) -> str:
    """Name of a migrated database that others are copied from."""
    url = postgres.new_database()
    migrate.upgrade(url)
    name = make_url(url).database
    assert name is not None
    return name


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a database without tables, on each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.sqlite'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated database of our own, on each kind."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'test.sqlite'}"
        migrate.upgrade(url)
    else:
        template: str = request.getfixturevalue("postgres_template")
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.new_database(like=template)
    database = Database(url)
    yield database
    database.close()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def kept_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """A migrated database for a whole file, on each kind; a test clears what it looks at."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('kept') / 'test.sqlite'}"
        migrate.upgrade(url)
    else:
        template: str = request.getfixturevalue("postgres_template")
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.new_database(like=template)
    database = Database(url)
    yield database
    database.close()
