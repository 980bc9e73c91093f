from __future__ import annotations

import pytest

from bisects.prior import BESIDE, ELSEWHERE, RUNS, weights
from tests.bisects.ranges import Bench, a_range, a_search, searched


def weight(*files: str, engine: str = "mariadb", storage_engine: str = "innodb") -> float:
    commits = a_range(2, lambda _: files)
    (only,) = weights(commits, engine=engine, storage_engine=storage_engine)
    return only


@pytest.mark.parametrize(
    "path",
    [
        "sql/sql_select.cc",
        "storage/innobase/row/row0sel.cc",
        "storage/maria/ma_open.c",
        "CMakeLists.txt",
        "sql/CMakeLists.txt",
        "cmake/install_layout.cmake",
        "sql/share/errmsg-utf8.txt",
        ".gitmodules",
        "libmariadb",
        "include/my_config.h",
        "sql/history.cc",
    ],
)
def test_sources_and_build_files_of_what_runs_count_in_full(path: str) -> None:
    assert weight(path) == RUNS


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "COPYING",
        "INSTALL.txt",
        "Docs/sp-imp-spec.txt",
        "man/mariadbd.8",
        "mysql-test/main/select.test",
        "storage/innobase/mysql-test/r/x.result",
        "unittest/sql/filesort-t.cc",
        "debian/rules",
        ".github/workflows/ci.yml",
        ".clang-format",
        "forkwatch.toml",
        '"mysql-test/main/\\303\\244.test"',
    ],
)
def test_documentation_tests_and_packaging_hardly_count(path: str) -> None:
    assert weight(path) == ELSEWHERE > 0


@pytest.mark.parametrize(
    ("path", "engine", "expected"),
    [
        ("storage/spider/ha_spider.cc", "mariadb", BESIDE),
        ("storage/rocksdb/ha_rocksdb.cc", "mysql", BESIDE),
        ("client/mysqldump.cc", "mariadb", BESIDE),
        ("contrib/pg_trgm/trgm_op.c", "postgres", BESIDE),
        ("src/backend/executor/execMain.c", "postgres", RUNS),
        ("src/test/regress/sql/join.sql", "postgres", ELSEWHERE),
        ("db/db_impl/db_impl.cc", "rocksdb", RUNS),
        ("db/db_test.cc", "rocksdb", ELSEWHERE),
        ("java/src/main/java/org/rocksdb/RocksDB.java", "rocksdb", ELSEWHERE),
        ("storage/spider/ha_spider.cc", "rocksdb", RUNS),
    ],
)
def test_what_an_engine_does_not_run_counts_little(path: str, engine: str, expected: float) -> None:
    assert weight(path, engine=engine) == expected


def test_myrocks_counts_where_the_tables_are_in_it_or_nobody_knows() -> None:
    path = "storage/rocksdb/ha_rocksdb.cc"

    assert weight(path, engine="mysql", storage_engine="rocksdb") == RUNS
    assert weight(path, engine="mysql", storage_engine="") == RUNS


def test_a_commit_counts_as_its_most_important_path_does() -> None:
    assert weight("README.md", "mysql-test/a.test", "sql/handler.cc") == RUNS
    assert weight() == ELSEWHERE, "it touches nothing"


def test_the_good_end_has_no_weight_of_its_own() -> None:
    assert len(weights(a_range(5), engine="mariadb")) == 4


def test_a_culprit_that_looks_like_documentation_is_found_all_the_same() -> None:
    commits = a_range(16, lambda place: ("README.md",) if place == 7 else ("sql/handler.cc",))

    search = a_search(16, commits=commits)

    assert 0 < search.document().commits[7].prior < 0.001
    assert searched(search, Bench(7)).culprits == (7,)


def test_sources_that_the_server_is_not_made_of_hardly_count() -> None:
    touched = [(), ("a.cc",), ("b.cc",), ("a.cc", "b.cc"), ("new.cc",)]
    commits = a_range(5, lambda place: touched[place])

    told = weights(commits, engine="rocksdb", outside={"a.cc", "util/c.cc"})

    assert told == (ELSEWHERE, RUNS, RUNS, RUNS)


def test_a_culprit_that_the_builds_seemed_to_rule_out_is_found_all_the_same() -> None:
    commits = a_range(16, lambda place: (f"sql/{place}.cc",))
    outside = {f"sql/{place}.cc" for place in range(16) if place % 2}

    search = a_search(16, commits=commits, outside=outside)

    assert search.document().commits[7].prior < 0.001
    assert searched(search, Bench(7)).culprits == (7,)
