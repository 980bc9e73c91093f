"""A real PostgreSQL of our own: a private data folder, a socket in it, and no network."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess  # noqa: TID251  tests start programs
import tempfile
from pathlib import Path
from typing import Self

from sqlalchemy import create_engine

INSTALLED = Path("/usr/lib/postgresql")
USER = "postgres"


class PostgresServer:
    """Started with `with`; makes databases on demand."""

    def __init__(self) -> None:
        # A socket's path may have 107 bytes, so pytest's long folder names will not do.
        self._folder = Path(tempfile.mkdtemp(prefix="fw-pg-"))
        self._databases = 0

    def __enter__(self) -> Self:
        versions = sorted(INSTALLED.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
        assert versions, f"nothing in {INSTALLED}: apt-get install postgresql"
        self._programs = versions[-1].parent
        if os.geteuid() == 0:
            os.chown(self._folder, pwd.getpwnam(USER).pw_uid, -1)
        data = self._folder / "data"
        self._run("initdb", "-D", str(data), "-A", "trust", "-U", USER, "--no-sync")
        options = f"-k {self._folder} -c listen_addresses= -c fsync=off -c shared_buffers=32MB"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", str(data), "-l", log, "-o", options, "-w", "-t", "150", "start")
        return self

    def __exit__(self, *_: object) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "-w", "stop")
        shutil.rmtree(self._folder)

    def url(self, database: str) -> str:
        """Return the address of a database."""
        return f"postgresql+psycopg://{USER}@/{database}?host={self._folder}"

    def new_database(self, *, like: str = "template1") -> str:
        """Make a database and return its address."""
        self._databases += 1
        name = f"test_{self._databases}"
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {like}")
        engine.dispose()
        return self.url(name)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", USER, "--", *command]
        # Not a pipe: the server would keep it open for its whole life.
        said = self._folder.with_suffix(".said")
        with said.open("wb") as output:
            done = subprocess.run(
                command, check=False, cwd="/", stdout=output, stderr=output, timeout=180
            )
        assert done.returncode == 0, f"{' '.join(command)}:\n{said.read_text()}"
        said.unlink()
