"""Source trees: which engine a folder holds, and how it is built.

A checkout comes in; out goes what it is, each finding with where it was seen. Nothing is built or
run, and nothing beyond the top of the tree is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from forkwatch.errors import InitError
from forkwatch.options import (
    LEVELDB_COMMANDS,
    MARIADB_OPTIONS,
    MYSQL_OPTIONS,
    POSTGRES_COMMANDS,
    ROCKSDB_COMMANDS,
    CMakeOption,
    CommandList,
)
from workloads.plan import PLAN_FILE

if TYPE_CHECKING:
    from pathlib import Path

#: Read from the top of each file; the tree belongs to somebody else.
_TEXT_CHARACTERS_MAX: Final = 1_000_000
#: MariaDB renamed its programs in this release.
_RENAMED: Final = (10, 5)
#: Engines that are recognised only to be refused by their name.
_OTHER_ENGINES: Final = {"mongo": "MongoDB"}
#: What PostgreSQL's own files say of it, newest way of building first.
_POSTGRES_SIGNS: Final = (
    ("configure.ac", r"AC_INIT\(\s*\[PostgreSQL\]"),
    ("configure.in", r"AC_INIT\(\s*\[PostgreSQL\]"),
    ("meson.build", r"project\(\s*'postgresql'"),
)
_LSM: Final = {"rocksdb": ROCKSDB_COMMANDS, "leveldb": LEVELDB_COMMANDS}


@dataclass(frozen=True, kw_only=True)
class SourceTree:
    """What a source tree told about itself; each finding with where it was seen."""

    engine: str
    engine_seen: str
    server: str
    server_seen: str
    build_type: str = ""
    options: tuple[CMakeOption, ...] = ()
    #: How it is built where CMake alone does not install what is measured.
    commands: CommandList | None = None
    c_flags: tuple[str, ...] = field(default=("-g1",))
    cxx_flags: tuple[str, ...] = field(default=("-g1",))


def recognise(folder: Path) -> SourceTree:
    """Return what the source tree at `folder` is.

    Raises:
        InitError: Nothing that can be measured.
    """
    seen = _postgres_sign(folder)
    if seen:
        return SourceTree(
            engine="postgres",
            engine_seen=f"PostgreSQL in {seen}",
            server="bin/postgres",
            server_seen="where PostgreSQL installs it",
            commands=POSTGRES_COMMANDS,
            # CFLAGS take the place of the project's own, which are -O2.
            c_flags=("-O2", "-g1"),
            cxx_flags=(),
        )
    lists = folder / "CMakeLists.txt"
    if not lists.is_file():
        raise InitError(
            f"{lists} does not exist; name the top folder of a fork of MariaDB, MySQL, PostgreSQL, "
            "RocksDB or LevelDB"
        )
    cmake = _read(lists)
    project = _project(cmake)
    for name, commands in _LSM.items():
        if project.lower() == name:
            return _library(name, commands)
    return _mysql_family(folder, cmake, project)


def _postgres_sign(folder: Path) -> str:
    """Return the file that says the tree is PostgreSQL's, if one does."""
    for name, sign in _POSTGRES_SIGNS:
        if re.search(sign, _read(folder / name)):
            return name
    return ""


def _library(name: str, commands: CommandList) -> SourceTree:
    return SourceTree(
        engine=name,
        engine_seen="project() in CMakeLists.txt",
        server="bin/db_bench",
        server_seen="where the last command puts it",
        commands=commands,
        # Older releases rely on headers that newer compilers do not include by themselves.
        c_flags=(),
        cxx_flags=("-g1", "-include", "cstdint"),
    )


def _mysql_family(folder: Path, cmake: str, project: str) -> SourceTree:
    engine, engine_seen = _engine(folder, cmake, project)
    server, server_seen = _server(folder, cmake, engine)
    known = MARIADB_OPTIONS if engine == "mariadb" else MYSQL_OPTIONS
    return SourceTree(
        engine=engine,
        engine_seen=engine_seen,
        server=server,
        server_seen=server_seen,
        # What distributions ship; MySQL's own RelWithDebInfo adds LTO, which hides lost inlining.
        build_type="RelWithDebInfo" if engine == "mariadb" else "Release",
        options=tuple(option for option in known if (folder / option.sign).exists()),
    )


def _engine(folder: Path, cmake: str, project: str) -> tuple[str, str]:
    """Return the server family and the file that gave it away."""
    version = _read(folder / "VERSION")
    if "SERVER_MATURITY" in version:
        return "mariadb", "SERVER_MATURITY in VERSION"
    if (folder / "MYSQL_VERSION").is_file():
        return "mysql", "the file MYSQL_VERSION"
    if "MYSQL_VERSION_MAJOR" in version:
        if (folder / "storage/maria").is_dir():
            return "mariadb", "VERSION and storage/maria"
        return "mysql", "MYSQL_VERSION_MAJOR in VERSION"
    for program, engine in (("mariadbd", "mariadb"), ("mysqld", "mysql")):
        if re.search(rf"(?i)\badd_executable\s*\(\s*{program}\b", cmake):
            return engine, f"the target {program} in CMakeLists.txt"
    name = project or "a project without a name"
    for word, product in _OTHER_ENGINES.items():
        if word in name.lower():
            raise InitError(
                f"{folder} is a fork of {product}; forkwatch measures MariaDB, MySQL, PostgreSQL, "
                "RocksDB and LevelDB"
            )
    raise InitError(
        f"{folder} is {name}, in which no engine was recognised (no VERSION or MYSQL_VERSION, no "
        "target mariadbd or mysqld, not PostgreSQL, RocksDB or LevelDB); write "
        f"{PLAN_FILE} by hand if it is one"
    )


def _project(cmake: str) -> str:
    found = re.search(r"(?i)\bproject\s*\(\s*\"?([\w.+-]+)", cmake)
    return found.group(1) if found else ""


def _server(folder: Path, cmake: str, engine: str) -> tuple[str, str]:
    """Return where the server program is installed, and how we know."""
    rule = re.search(
        r"(?i)\binstall\s*\(\s*TARGETS\s+(mariadbd|mysqld)\b[^)]*?\bDESTINATION\s+([\w/.+-]+)",
        cmake,
    )
    # A folder outside the prefix is nothing a plan could name.
    if rule and not rule.group(2).startswith("/") and ".." not in rule.group(2):
        return f"{rule.group(2)}/{rule.group(1)}", "install() in CMakeLists.txt"
    if engine == "mysql":
        return "bin/mysqld", "where MySQL installs it"
    version = _version(_read(folder / "VERSION"))
    if version is not None and version < _RENAMED:
        return "bin/mysqld", "where MariaDB before 10.5 installs it"
    return "bin/mariadbd", "where MariaDB installs it"


def _version(text: str) -> tuple[int, int] | None:
    parts = [re.search(rf"MYSQL_VERSION_{part}=(\d+)", text) for part in ("MAJOR", "MINOR")]
    major, minor = parts
    return (int(major.group(1)), int(minor.group(1))) if major and minor else None


def _read(path: Path) -> str:
    """Return the beginning of a file, or an empty text where there is none."""
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_TEXT_CHARACTERS_MAX)
