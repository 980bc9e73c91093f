"""`forkwatch init`: what it sees in look-alikes of real source trees, and what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2
import pytest

from forkwatch.demo.fork import make_demo_fork
from forkwatch.errors import InitError
from forkwatch.init import look_at, plan_text, write_plan
from forkwatch.options import MARIADB_OPTIONS, MYSQL_OPTIONS, CMakeOption
from workloads.catalog import SUITES
from workloads.plan import Plan, parse_plan, read_plan

if TYPE_CHECKING:
    from pathlib import Path

MARIADB_VERSION = "MYSQL_VERSION_MAJOR=10\nMYSQL_VERSION_MINOR=11\nSERVER_MATURITY=stable\n"
MYSQL_VERSION = "MYSQL_VERSION_MAJOR=8\nMYSQL_VERSION_MINOR=4\nMYSQL_VERSION_MATURITY=LTS\n"


def a_tree(folder: Path, *, cmake: str = "PROJECT(MySQL)\n", **files: str) -> Path:
    """Make a look-alike: a CMakeLists.txt, and files by name with `__` for a slash."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "CMakeLists.txt").write_text(cmake)
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def with_signs(folder: Path, options: tuple[CMakeOption, ...]) -> Path:
    """Add every file or folder that makes an option meaningful."""
    for option in options:
        path = folder / option.sign
        if path.suffix:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            path.mkdir(parents=True, exist_ok=True)
    return folder


def written(folder: Path) -> Plan:
    return read_plan(write_plan(folder))


def test_a_whole_mariadb_gets_every_option(tmp_path: Path) -> None:
    tree = with_signs(a_tree(tmp_path / "server", VERSION=MARIADB_VERSION), MARIADB_OPTIONS)

    plan = written(tree)

    assert (plan.fork.name, plan.fork.engine) == ("server", "mariadb")
    assert plan.builds["rel"].server == "bin/mariadbd"
    assert plan.builds["rel"].cmake_options == {
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        **{option.name: option.value for option in MARIADB_OPTIONS},
    }


def test_a_whole_mysql_gets_every_option(tmp_path: Path) -> None:
    tree = with_signs(a_tree(tmp_path / "server", MYSQL_VERSION=MYSQL_VERSION), MYSQL_OPTIONS)

    plan = written(tree)

    assert plan.fork.engine == "mysql"
    assert plan.builds["rel"].server == "bin/mysqld"
    assert plan.builds["rel"].cmake_options == {
        "CMAKE_BUILD_TYPE": "Release",
        **{option.name: option.value for option in MYSQL_OPTIONS},
    }


def test_options_of_absent_parts_are_left_out(tmp_path: Path) -> None:
    tree = a_tree(tmp_path, VERSION=MARIADB_VERSION, storage__spider__ha_spider_cc="")

    options = written(tree).builds["rel"].cmake_options

    assert options == {"CMAKE_BUILD_TYPE": "RelWithDebInfo", "PLUGIN_SPIDER": "NO"}


def test_each_choice_says_where_it_comes_from(tmp_path: Path) -> None:
    text = plan_text(look_at(a_tree(tmp_path, VERSION=MARIADB_VERSION, cmake__pcre_cmake="")))

    assert 'engine = "mariadb"  # SERVER_MATURITY in VERSION' in text
    assert 'branch = "main"  # assumed: no git repository here' in text
    assert 'server = "bin/mariadbd"  # where MariaDB installs it' in text


@pytest.mark.parametrize(
    ("files", "engine", "seen", "server"),
    [
        ({"VERSION": MYSQL_VERSION}, "mysql", "MYSQL_VERSION_MAJOR in VERSION", "bin/mysqld"),
        (
            {"VERSION": "MYSQL_VERSION_MAJOR=10\n", "storage__maria__ha_maria.cc": ""},
            "mariadb",
            "VERSION and storage/maria",
            "bin/mariadbd",
        ),
        (
            {"VERSION": MARIADB_VERSION.replace("=11", "=4")},
            "mariadb",
            "SERVER_MATURITY in VERSION",
            "bin/mysqld",
        ),
    ],
)
def test_engine_and_server_of_releases(
    tmp_path: Path, files: dict[str, str], engine: str, seen: str, server: str
) -> None:
    found = look_at(a_tree(tmp_path, **files)).tree

    assert (found.engine, found.engine_seen, found.server) == (engine, seen, server)


def test_a_target_gives_the_engine_away_and_an_install_rule_the_server(tmp_path: Path) -> None:
    cmake = (
        "project(mine)\nadd_executable(mysqld a.c)\ninstall(TARGETS mysqld DESTINATION libexec)\n"
    )

    found = look_at(a_tree(tmp_path, cmake=cmake)).tree

    assert (found.engine, found.server) == ("mysql", "libexec/mysqld")


def test_an_install_rule_outside_the_prefix_is_not_believed(tmp_path: Path) -> None:
    cmake = "add_executable(mysqld a.c)\ninstall(TARGETS mysqld DESTINATION /opt/sbin)\n"

    assert look_at(a_tree(tmp_path, cmake=cmake)).tree.server == "bin/mysqld"


def test_the_demo_fork_is_understood(tmp_path: Path) -> None:
    fork = make_demo_fork(tmp_path / "demo")
    by_hand = read_plan(fork.repository / "forkwatch.toml")

    plan = parse_plan(plan_text(look_at(fork.repository)))

    assert plan.fork.engine == by_hand.fork.engine
    assert plan.fork.branch == by_hand.fork.branch
    assert plan.builds["rel"].server == by_hand.builds["rel"].server


def test_the_branch_is_the_one_checked_out(tmp_path: Path) -> None:
    tree = a_tree(tmp_path, VERSION=MARIADB_VERSION)
    pygit2.init_repository(tree, initial_head="10.11-fork")

    assert written(tree).fork.branch == "10.11-fork"


def test_odd_names_become_names_that_a_plan_can_hold(tmp_path: Path) -> None:
    tree = a_tree(tmp_path / "-my fork (2)", VERSION=MARIADB_VERSION)
    pygit2.init_repository(tree, initial_head="fix#12")

    plan = written(tree)

    assert (plan.fork.name, plan.fork.branch) == ("my-fork-2-", "main")


@pytest.mark.parametrize(
    ("cmake", "message"),
    [
        ("project(mongo)\n", "fork of MongoDB; forkwatch measures MariaDB, MySQL, PostgreSQL"),
        ("project(hello)\n", "is hello, in which no engine was recognised"),
        ("# nothing\n", "a project without a name"),
    ],
)
def test_other_projects_are_refused_in_one_line(tmp_path: Path, cmake: str, message: str) -> None:
    with pytest.raises(InitError, match=message) as refused:
        write_plan(a_tree(tmp_path, cmake=cmake))

    assert "\n" not in str(refused.value)
    assert not (tmp_path / "forkwatch.toml").exists()


def test_a_folder_without_cmake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InitError, match=r"CMakeLists.txt does not exist; name the top folder"):
        write_plan(tmp_path)


def test_an_existing_plan_is_kept_unless_forced(tmp_path: Path) -> None:
    path = a_tree(tmp_path, VERSION=MARIADB_VERSION) / "forkwatch.toml"
    path.write_text("mine")

    with pytest.raises(InitError, match="exists; --force replaces it"):
        write_plan(tmp_path)
    assert path.read_text() == "mine"

    assert write_plan(tmp_path, force=True) == path
    assert read_plan(path).fork.engine == "mariadb"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("configure.ac", "AC_INIT([PostgreSQL], [18.1], [pgsql-bugs@example.org])\n"),
        ("configure.in", "AC_INIT([PostgreSQL], [12.20])\n"),
        ("meson.build", "project('postgresql',\n  ['c'],\n  version: '18.1',\n)\n"),
    ],
)
def test_a_postgres_is_built_by_its_own_commands(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)

    plan = written(tmp_path)

    rel = plan.builds["rel"]
    assert (plan.fork.engine, rel.system, rel.server) == ("postgres", "command", "bin/postgres")
    assert rel.commands[0][:2] == ("./configure", "--prefix={prefix}")
    assert rel.commands[-1] == ("make", "--silent", "install")
    # CFLAGS take the place of the project's own.
    assert rel.c_flags == ("-O2", "-g1")
    assert plan.suite("commit").workloads == ("scan", "point-query", "update-index")
    assert f"PostgreSQL in {file}" in (tmp_path / "forkwatch.toml").read_text()


@pytest.mark.parametrize(
    ("cmake", "engine", "suite"),
    [
        ("project(rocksdb\n  VERSION 9.9)\n", "rocksdb", "lsm-4"),
        ("project(leveldb VERSION 1.23.0 LANGUAGES C CXX)\n", "leveldb", "leveldb-3"),
    ],
)
def test_a_library_is_measured_by_its_benchmark(
    tmp_path: Path, cmake: str, engine: str, suite: str
) -> None:
    plan = written(a_tree(tmp_path, cmake=cmake))

    rel = plan.builds["rel"]
    assert (plan.fork.engine, rel.system, rel.server) == (engine, "command", "bin/db_bench")
    assert rel.commands[-1] == ("install", "-D", "{build}/db_bench", "{prefix}/bin/db_bench")
    assert plan.suite("commit").workloads == SUITES[suite]
    assert plan.datasets["small"].kind == "lsm"


def test_a_tree_that_only_uses_an_engine_is_not_one(tmp_path: Path) -> None:
    cmake = "project(my-app)\nfind_package(rocksdb)\nfind_package(PostgreSQL)\n"

    with pytest.raises(InitError, match="is my-app, in which no engine was recognised"):
        write_plan(a_tree(tmp_path, cmake=cmake))
