"""The system's MariaDB and PostgreSQL behind one face, for tests of scripts that run on both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.fakes.postgres_server import INSTALLED, PostgresServer
from tests.runner.sql_servers import Mariadb, postgres_client, sysbench

if TYPE_CHECKING:
    import contextlib


class Postgres(PostgresServer):
    """PostgreSQL that is asked as `Mariadb` is."""

    def client(self) -> list[str]:
        """Return what sysbench has to be told to connect."""
        return postgres_client(self, "postgres")

    def rows(self, statement: str) -> list[list[str]]:
        """Return the rows that the server answers with, as text."""
        url = self.url("postgres").replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            asked = connection.execute(statement.encode())
            if asked.description is None:
                return []
            return [["NULL" if cell is None else str(cell) for cell in row] for row in asked]


def server_of(engine: str) -> contextlib.AbstractContextManager[Mariadb | Postgres]:
    """Return a server that is started with `with`; skips where it is not installed."""
    if engine == "mariadb":
        return Mariadb()
    if not list(Path(INSTALLED).glob("*/bin/initdb")):
        pytest.skip("apt-get install postgresql")
    return Postgres()


def forget(server: Mariadb | Postgres) -> None:
    """Drop everything that scripts of ours have made."""
    if isinstance(server, Mariadb):
        server.rows("DROP DATABASE IF EXISTS sbtest")
    else:
        server.rows("DROP SCHEMA IF EXISTS sbtest CASCADE")


def play(server: Mariadb | Postgres, script: str, *words: str) -> str:
    """Run a script to its good end and return what it printed."""
    done = sysbench(server.client(), script, *words)
    assert done.ok, done.stdout + done.stderr
    return done.stdout


def options_of(workload) -> list[str]:
    """Return a workload's own options as sysbench takes them."""
    return [f"--{name}={value}" for name, value in workload.options.items()]
