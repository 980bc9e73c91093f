"""SQL servers of the system outside of any sandbox, and sysbench with our scripts against them.

For tests of the scripts: what a workload sends, and what the server makes of it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from runner import shell
from tests.fakes.postgres_server import USER, PostgresServer
from workloads.catalog import SCRIPTS

PLUGINS = Path("/usr/lib/mysql/plugin")
ROCKSDB = PLUGINS / "ha_rocksdb.so"
_COUNTS = {
    "events": re.compile(r"total number of events: +(\d+)"),
    "queries": re.compile(r"queries: +(\d+)"),
    "ignored": re.compile(r"ignored errors: +(\d+)"),
}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What the client said of a run."""

    events: int
    queries: int
    ignored: int


def sysbench(connection: list[str], script: str | Path, *words: str) -> shell.Completed:
    """Run a script of ours, or one of the test's own, to its end."""
    path = f"LUA_PATH={SCRIPTS}/?.lua"
    command = ["env", path, "sysbench", str(SCRIPTS / script), *connection, *words]
    return shell.run(command, timeout_s=300)


def load(connection: list[str], *, rows: int, more: tuple[str, ...] = ()) -> None:
    """Fill the tables."""
    done = sysbench(connection, "load.lua", f"--table-size={rows}", *more, "prepare")
    assert done.ok, done.stdout + done.stderr


def run(connection: list[str], workload, *, rows: int, words: tuple[str, ...]) -> Ran:
    """Run a workload with its options."""
    done = attempt(connection, workload, rows=rows, words=words)
    assert done.ok, done.stdout + done.stderr
    found = {name: pattern.search(done.stdout) for name, pattern in _COUNTS.items()}
    return Ran(**{name: int(match.group(1)) for name, match in found.items()})


def attempt(connection: list[str], workload, *, rows: int, words: tuple[str, ...]):
    """Run a workload with its options, come what may."""
    options = [f"--{name}={value}" for name, value in workload.options.items()]
    return sysbench(
        connection,
        workload.script,
        f"--table-size={rows}",
        "--rand-seed=7",
        *options,
        *words,
        "run",
    )


class Mariadb:
    """The system's MariaDB on a data directory of its own, with MyRocks where that is installed."""

    def __init__(self) -> None:
        # A socket's path may have 107 bytes, so pytest's long folder names will not do.
        self._folder = Path(tempfile.mkdtemp(prefix="fw-sql-"))
        self._socket = self._folder / "socket"
        self._as_root = ["--user=root"] if os.geteuid() == 0 else []

    def __enter__(self) -> Self:
        data = f"--datadir={self._folder / 'data'}"
        words = ["mariadb-install-db", "--no-defaults", data, *self._as_root]
        words += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        done = shell.run(words, timeout_s=60)
        assert done.ok, done.stdout + done.stderr
        words = ["mariadbd", "--no-defaults", data, *self._as_root, "--skip-networking"]
        words += [f"--socket={self._socket}", "--innodb-buffer-pool-size=256M"]
        words += ["--innodb-flush-log-at-trx-commit=0", "--log-output=TABLE"]
        if ROCKSDB.exists():
            words += ["--plugin-load-add=ha_rocksdb", "--rocksdb-flush-log-at-trx-commit=0"]
        with (self._folder / "log").open("wb") as log:
            self._server = shell.start(words, output=log)
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        if self._server.wait(60) is None:
            self._server.kill()
        shutil.rmtree(self._folder)

    def client(self) -> list[str]:
        """Return what sysbench has to be told to connect."""
        words = ["--db-driver=mysql", f"--mysql-socket={self._socket}", "--mysql-user=root"]
        return [*words, "--mysql-db=mysql"]

    def rows(self, statement: str) -> list[list[str]]:
        """Return the rows that the server answers with."""
        done = self._ask(statement)
        assert done.ok, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def status(self, *names: str) -> dict[str, int]:
        """Return status counters of the whole server."""
        wanted = ", ".join(f"'{name}'" for name in names)
        rows = self.rows(f"SHOW GLOBAL STATUS WHERE variable_name IN ({wanted})")
        return {name.lower(): int(value) for name, value in rows}

    def _ask(self, statement: str) -> shell.Completed:
        words = ["mariadb", "--no-defaults", f"--socket={self._socket}", "--user=root", "--batch"]
        return shell.run([*words, "--skip-column-names", "--execute", statement], timeout_s=60)

    def _wait(self) -> None:
        for _ in range(300):
            if self._ask("SELECT 1").ok:
                return
            assert self._server.poll() is None, shell.tail(self._folder / "log")
            time.sleep(0.1)
        raise AssertionError(shell.tail(self._folder / "log"))


def postgres_client(server: PostgresServer, database: str) -> list[str]:
    """Return what sysbench has to be told to connect to PostgreSQL."""
    folder = server.url(database).partition("?host=")[2]
    words = ["--db-driver=pgsql", f"--pgsql-host={folder}", f"--pgsql-user={USER}"]
    return [*words, f"--pgsql-db={database}"]
