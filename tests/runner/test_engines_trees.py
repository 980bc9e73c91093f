from __future__ import annotations

from dataclasses import replace

import pytest

from runner import sandbox
from runner.errors import DatasetError, OperatorError
from runner.servers import mysql_family, postgres, programs
from runner.servers.engines import engine_of
from tests.runner.installed_trees import script, spec_of

#: Stands in for the scripts of several releases: it notes how it was called.
NOTING = """\
case "$*" in *--datadir=*) ;; *) exit 9 ;; esac
{ printf '%s\\n' "$@"; echo "server $MYSQLD_BOOTSTRAP"; cat "$MYSQLD_BOOTSTRAP"; } \\
  > /forkwatch/data/called
"""
#: What a release says that knows the options; an older one hands what it does not know to mysqld.
NEW = "# --auth-root-authentication-method=normal --skip-test-db\n"


def called(spec, tmp_path) -> list[str]:
    data = tmp_path / "data"
    data.mkdir()
    sandbox.hand_over(data)
    mysql_family.initialise(spec, data)
    return (data / "called").read_text().splitlines()


def test_the_newest_script_of_the_tree_makes_the_data_directory(tmp_path):
    tree = tmp_path / "tree"
    script(tree / "bin/mysqld", "exit 1")
    script(tree / "scripts/mysql_install_db", "exit 1")
    script(tree / "bin/mariadb-install-db", NEW + NOTING)

    words = called(spec_of("mariadb", tree, "bin/mysqld"), tmp_path)

    assert "--basedir=/forkwatch/artifact" in words
    assert "--auth-root-authentication-method=normal" in words
    assert "--skip-test-db" in words
    assert "--force" in words
    assert "server /forkwatch/launch/server" in words
    assert 'exec /forkwatch/artifact/bin/mysqld "$@"' in words


def test_an_old_script_is_not_told_what_it_does_not_know(tmp_path):
    tree = tmp_path / "tree"
    script(tree / "bin/mysqld", "exit 1")
    script(tree / "scripts/mysql_install_db", NOTING)

    words = called(spec_of("mariadb", tree, "bin/mysqld"), tmp_path)

    assert "--force" in words
    assert not any(word.startswith(("--auth-root", "--skip-test")) for word in words)


def test_an_unpacked_package_has_its_prefix_inside_and_its_own_loader(tmp_path):
    tree = tmp_path / "tree"
    script(tree / "usr/sbin/mariadbd", "exit 1")
    script(tree / "usr/bin/mariadb-install-db", NOTING)
    spec = spec_of(
        "mariadb",
        tree,
        "usr/sbin/mariadbd",
        install_db="usr/bin/mariadb-install-db",
        loader="usr/lib64/ld.so.2",
        library_paths=("usr/lib/a", "usr/lib/b"),
        options={"innodb_page_size": "4k", "lower-case-table-names": 1},
    )

    words = called(spec, tmp_path)

    assert "--basedir=/forkwatch/artifact/usr" in words
    inside = "/forkwatch/artifact/usr"
    started = f"{inside}/lib64/ld.so.2 --library-path {inside}/lib/a:{inside}/lib/b"
    assert f'exec {started} {inside}/sbin/mariadbd "$@"' in words
    # What a data directory cannot change later has to be there from the beginning.
    assert "--innodb_page_size=4k" in words
    assert "--lower_case_table_names=1" in words
    assert not any("max_connections" in word for word in words)


def test_mysql_makes_its_own_data_directory_with_its_own_messages(tmp_path):
    tree = tmp_path / "tree"
    script(tree / "bin/mysqld", 'printf "%s\\n" "$@" > /forkwatch/data/called')
    (tree / "share/english").mkdir(parents=True)
    (tree / "share/charsets").mkdir()
    (tree / "lib/plugin").mkdir(parents=True)

    words = called(spec_of("mysql", tree, "bin/mysqld"), tmp_path)

    assert words[:3] == ["--no-defaults", "--initialize-insecure", "--datadir=/forkwatch/data"]
    assert {
        "--basedir=/forkwatch/artifact",
        "--lc-messages-dir=/forkwatch/artifact/share",
        "--character-sets-dir=/forkwatch/artifact/share/charsets",
        "--plugin-dir=/forkwatch/artifact/lib/plugin",
    } <= set(words)


def test_a_server_that_cannot_make_a_data_directory_says_why(tmp_path):
    tree = tmp_path / "tree"
    script(tree / "bin/mysqld", 'echo "no room for ibdata1" >&2; exit 3')

    with pytest.raises(DatasetError, match="could not be initialised") as caught:
        called(spec_of("mysql", tree, "bin/mysqld"), tmp_path)

    assert "no room for ibdata1" in caught.value.log_tail


@pytest.mark.parametrize(
    ("engine", "said", "expected"),
    [
        ("mariadb", "mariadbd  Ver 10.11.19-MariaDB for debian-linux-gnu", "mariadb-10.11"),
        ("mysql", "mysqld  Ver 5.7.22 for Linux on x86_64", "mysql-5.7"),
        # Since 8.0 a data directory is of one release: the dictionary is upgraded, never back.
        ("mysql", "/x/mysqld  Ver 8.0.31 for Linux on x86_64", "mysql-8.0.31"),
        ("mysql", "mysqld  Ver 9.7.4 for Linux on x86_64 ((Debian))", "mysql-9.7.4"),
        ("postgres", "postgres (PostgreSQL) 9.6.24", "postgres-9.6"),
        ("postgres", "postgres (PostgreSQL) 17.11", "postgres-17"),
        ("postgres", "postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)", "postgres-15"),
    ],
)
def test_data_formats(tmp_path, engine, said, expected):
    tree = tmp_path / "tree"
    script(tree / "bin/server", f'echo "{said}"')

    assert engine_of(engine).data_format(spec_of(engine, tree, "bin/server")) == expected


def test_a_branch_under_way_has_the_format_of_its_catalog(tmp_path):
    tree = tmp_path / "tree"
    script(tree / "bin/postgres", 'echo "postgres (PostgreSQL) 19devel"')
    spec = spec_of("postgres", tree, "bin/postgres")
    unknown = postgres.data_format(spec)
    facts = spec.installed.facts.model_copy(update={"content_hash": "another"})
    other = replace(spec, installed=replace(spec.installed, facts=facts))

    assert unknown.startswith("postgres-19.")
    assert postgres.data_format(other) != unknown

    header = tree / "include/postgresql/server/catalog/catversion.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define CATALOG_VERSION_NO\t202507231\n")

    assert postgres.data_format(spec) == postgres.data_format(other) == "postgres-19.202507231"


@pytest.mark.parametrize("engine", ["mariadb", "mysql", "postgres"])
def test_a_program_without_a_version_is_no_server(tmp_path, engine):
    tree = tmp_path / "tree"
    script(tree / "bin/server", "echo hello")

    with pytest.raises(DatasetError, match="does not tell its version") as caught:
        engine_of(engine).version(spec_of(engine, tree, "bin/server"))

    assert "hello" in caught.value.log_tail


def test_an_unknown_engine_is_told_with_the_known_ones():
    with pytest.raises(OperatorError, match=r"no engine 'oracle'; known: mariadb, mysql, postgres"):
        engine_of("oracle")


def test_a_server_that_is_started_through_something_beside_it_keeps_its_base(tmp_path):
    (tmp_path / "share/english").mkdir(parents=True)
    spec = spec_of("mariadb", tmp_path, "../data/under-callgrind")

    assert str(programs.base(spec)) == "."
    assert programs.first_of(spec, "share/english") is not None
