"""What is believed of each commit before anything is measured, by the paths it touches.

Commits come in, and with them what the builds of both ends tell of their sources; a weight for each
commit goes out. No weight is zero: a path may lie, and a search that has ruled a commit out
beforehand can never find it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from bisects.commits import RangeCommit

#: Sources and build files of what runs.
RUNS: Final = 1.0
#: Code that is built and that a measured server hardly ever runs: clients, unused storage engines.
#: A judgement: they share registries and headers with what runs, so one in twenty.
BESIDE: Final = 0.05
#: Documentation, tests, packaging. A judgement: a thousand such commits weigh as much as one.
ELSEWHERE: Final = 1e-3

_MYSQL_FAMILY: Final = frozenset({"mariadb", "mysql"})
#: Storage engines that a server of that family runs whatever the tables are in: system tables,
#: temporary tables, the performance schema.
_ALWAYS: Final = frozenset(
    {"innobase", "perfschema", "maria", "myisam", "myisammrg", "heap", "temptable", "csv"}
)
#: A folder of such a name, wherever it lies.
_FOLDERS_ELSEWHERE: Final = frozenset(
    {
        "doc",
        "docs",
        "man",
        "mysql-test",
        "test",
        "tests",
        "unittest",
        "unittests",
        "unittest_gunit",
        "examples",
        "fuzz",
    }
)
#: A folder of such a name at the top.
_TOPS_ELSEWHERE: Final = frozenset({"debian", "packaging", "rpm", "java"})
_SUFFIXES_ELSEWHERE: Final = (
    ".md",
    ".rst",
    ".adoc",
    ".html",
    ".pdf",
    ".test",
    ".result",
    ".rdiff",
    "_test.cc",
    "_test.cpp",
)
#: Texts at the top of most trees, with or without `.txt`.
_TEXTS: Final = frozenset(
    {
        "authors",
        "changelog",
        "contributing",
        "copying",
        "credits",
        "history",
        "install",
        "license",
        "news",
        "readme",
        "thirdparty",
    }
)
#: What we measure by is nothing that is measured.
_PLAN: Final = "forkwatch.toml"
#: Built beside the server, by engine.
_BESIDE: Final[dict[str, tuple[str, ...]]] = {
    "mariadb": ("client/", "extra/mariabackup/"),
    "mysql": ("client/", "router/"),
    "postgres": ("contrib/", "src/bin/", "src/interfaces/", "src/pl/"),
    "rocksdb": ("db_stress_tool/", "tools/ldb", "tools/sst_dump"),
    "leveldb": (),
}


def weights(
    commits: Sequence[RangeCommit],
    *,
    engine: str,
    storage_engine: str = "",
    outside: Collection[str] = frozenset(),
) -> tuple[float, ...]:
    """Return the weights of all commits but the first, the good end.

    Args:
        commits: The range, oldest first.
        engine: Server family or library of the plan: `mariadb`, `mysql`, `postgres`, `rocksdb`,
            `leveldb`.
        storage_engine: Of the tables, `innodb` or `rocksdb`; either may run where it is empty.
        outside: Source files that neither end's server is made of, where the builds told.
    """
    return tuple(
        max(
            (
                ELSEWHERE if path in outside else _path_weight(path, engine, storage_engine)
                for path in one.files
            ),
            # A commit that touches nothing changes nothing.
            default=ELSEWHERE,
        )
        for one in commits[1:]
    )


def _path_weight(path: str, engine: str, storage_engine: str) -> float:
    # Git puts what has odd characters in quotes.
    *folders, name = path.strip('"').casefold().split("/")
    if _is_elsewhere(folders, name):
        return ELSEWHERE
    if path.startswith(_BESIDE.get(engine, ())):
        return BESIDE
    if engine in _MYSQL_FAMILY and len(folders) > 1 and folders[0] == "storage":
        used = _ALWAYS if storage_engine == "innodb" else _ALWAYS | {"rocksdb"}
        return RUNS if folders[1] in used else BESIDE
    return RUNS


def _is_elsewhere(folders: Sequence[str], name: str) -> bool:
    """Whether nothing that is installed and run is made from a file."""
    # CI, editors, formatters. Not .gitmodules: what it names is built.
    hidden = (folders[0] if folders else name).startswith(".") and name != ".gitmodules"
    if hidden or any(folder in _FOLDERS_ELSEWHERE for folder in folders):
        return True
    if folders and folders[0] in _TOPS_ELSEWHERE:
        return True
    stem, _, suffix = name.partition(".")
    is_text = name == _PLAN or (stem in _TEXTS and suffix in {"", "txt"})
    return is_text or name.endswith(_SUFFIXES_ELSEWHERE)
