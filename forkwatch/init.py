"""A first plan for a fork: its source tree in, a commented forkwatch.toml out.

Every choice says where it comes from, so that the reader can tell what was seen in the tree from
what was assumed. Nothing is built or run here, and nothing beyond the top of the tree is read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pygit2

from forkwatch.errors import InitError
from forkwatch.options import MARIADB_OPTIONS, MYSQL_OPTIONS, CMakeOption
from workloads.catalog import WORKLOADS
from workloads.plan import PLAN_FILE, parse_plan

if TYPE_CHECKING:
    from pathlib import Path

_KEY_LENGTH_MAX: Final = 64
#: Read from the top of each file; the tree belongs to somebody else.
_TEXT_CHARACTERS_MAX: Final = 1_000_000
_BRANCH: Final = re.compile(r"[A-Za-z0-9_./+-]{1,200}")
#: MariaDB renamed its programs in this release.
_RENAMED: Final = (10, 5)
#: Engines that are recognised only to be refused by their name.
_OTHER_ENGINES: Final = {
    "rocksdb": "RocksDB",
    "leveldb": "LevelDB",
    "postgresql": "PostgreSQL",
    "mongo": "MongoDB",
}


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a source tree told about itself; each finding with where it was seen."""

    name: str
    branch: str
    branch_seen: str
    engine: str
    engine_seen: str
    server: str
    server_seen: str
    build_type: str
    options: tuple[CMakeOption, ...]


def write_plan(folder: Path, *, force: bool = False) -> Path:
    """Write a plan into the fork at `folder` and return its path.

    Raises:
        InitError: No fork that can be measured, or a plan is there and `force` is not set.
    """
    path = folder / PLAN_FILE
    if path.exists() and not force:
        raise InitError(f"{path} exists; --force replaces it")
    text = plan_text(look_at(folder))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InitError(f"{path} cannot be written: {error.strerror}") from error
    return path


def look_at(folder: Path) -> Findings:
    """Return what the source tree at `folder` says about itself.

    Raises:
        InitError: Not a CMake project, or of an engine that is not measured.
    """
    lists = folder / "CMakeLists.txt"
    if not lists.is_file():
        raise InitError(f"{lists} does not exist; name the top folder of a fork that CMake builds")
    cmake = _read(lists)
    engine, engine_seen = _engine(folder, cmake)
    server, server_seen = _server(folder, cmake, engine)
    branch, branch_seen = _branch(folder)
    known = MARIADB_OPTIONS if engine == "mariadb" else MYSQL_OPTIONS
    return Findings(
        name=_name(folder),
        branch=branch,
        branch_seen=branch_seen,
        engine=engine,
        engine_seen=engine_seen,
        server=server,
        server_seen=server_seen,
        # What distributions ship; MySQL's own RelWithDebInfo adds LTO, which hides lost inlining.
        build_type="RelWithDebInfo" if engine == "mariadb" else "Release",
        options=tuple(option for option in known if (folder / option.sign).exists()),
    )


def plan_text(found: Findings) -> str:
    """Return a plan for `found` that `parse_plan` accepts."""
    text = "\n".join([*_fork_lines(found), *_build_lines(found), *_MEASURING.splitlines(), ""])
    parse_plan(text)
    return text


def _engine(folder: Path, cmake: str) -> tuple[str, str]:
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
    project = re.search(r"(?i)\bproject\s*\(\s*\"?([\w.+-]+)", cmake)
    name = project.group(1) if project else "a project without a name"
    for word, product in _OTHER_ENGINES.items():
        if word in name.lower():
            raise InitError(
                f"{folder} is a fork of {product}; so far forkwatch measures MariaDB and MySQL"
            )
    raise InitError(
        f"{folder} is {name}, in which neither MariaDB nor MySQL was recognised (no VERSION or "
        f"MYSQL_VERSION, no target mariadbd or mysqld); write {PLAN_FILE} by hand if it is one"
    )


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


def _branch(folder: Path) -> tuple[str, str]:
    """Return the branch to watch, and how we know."""
    found = pygit2.discover_repository(str(folder))
    if found is None:
        return "main", "assumed: no git repository here"
    repository = pygit2.Repository(found)
    if repository.head_is_detached:
        return "main", "assumed: no branch is checked out here"
    name = str(repository.lookup_reference("HEAD").target).removeprefix("refs/heads/")
    if not _BRANCH.fullmatch(name):
        return "main", "assumed: the branch that is checked out has letters a plan cannot hold"
    return name, "the branch that is checked out"


def _name(folder: Path) -> str:
    """Return the folder's name in the letters that a name may have."""
    kept = re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.resolve().name).lstrip("_.-")
    return kept[:_KEY_LENGTH_MAX] or "fork"


def _read(path: Path) -> str:
    """Return the beginning of a file, or an empty text where there is none."""
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_TEXT_CHARACTERS_MAX)


def _toml(value: str | bool) -> str:  # noqa: FBT001  a value, not a flag
    # A JSON string or boolean is a TOML one too.
    return json.dumps(value)


def _fork_lines(found: Findings) -> list[str]:
    return [
        "# What forkwatch builds and measures for this fork. `forkwatch plan` checks it.",
        "",
        "[fork]",
        f"name = {_toml(found.name)}  # the folder's name",
        f"branch = {_toml(found.branch)}  # {found.branch_seen}",
        f"engine = {_toml(found.engine)}  # {found.engine_seen}",
        "",
    ]


def _build_lines(found: Findings) -> list[str]:
    lines = [
        "# A build variant. Cheap symbols (-g1) let profiles name functions and cost no speed.",
        "[builds.rel]",
        f"server = {_toml(found.server)}  # {found.server_seen}",
        'c_flags = ["-g1"]',
        'cxx_flags = ["-g1"]',
        '# linker = "mold"  # links in seconds, on hosts that have it',
        "",
        "[builds.rel.cmake_options]",
        f"CMAKE_BUILD_TYPE = {_toml(found.build_type)}",
    ]
    for option in found.options:
        lines.append(f"# {option.sign}: {option.reason}")
        lines.append(f"{option.name} = {_toml(option.value)}")
    return [*lines, ""]


_MEASURING: Final = f"""\
# Options of the server. Commits to disk are left out, because disks are noisier than code.
[configs.default.options]
innodb_buffer_pool_size = "512M"
innodb_flush_log_at_trx_commit = 2
performance_schema = false

# Has to fit into the buffer pool, or the disk is what gets measured.
[datasets.small]
tables = 1
rows = 200000

# Known workloads: {", ".join(WORKLOADS)}.
[suites.commit]
workloads = {json.dumps(list(WORKLOADS))}
build = "rel"
config = "default"
dataset = "small"
starts = 3          # server starts per commit; differences between starts are the largest noise
slices = 2          # slices of each workload in each start
seconds = 10        # length of a slice
warmup_seconds = 2  # repeated until two runs in a row agree
confirm_starts = 10 # at most, per side, of a pair; it ends when every workload is decided
budget_minutes = 30 # a pair begins no further start after so much measuring

# The smallest loss that matters: 0.05 is 5 %.
[gates]
default = 0.05

# [gates.workloads]
# scan = 0.08"""
