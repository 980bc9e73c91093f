from __future__ import annotations

from dataclasses import replace

import pytest

from runner.limits import GIB, MIB, machine_memory
from runner.servers import bases, mysql_family, postgres
from runner.servers.engines import ENGINES, engine_of
from tests.runner.installed_trees import spec_of
from workloads.plan import DatasetPlan


@pytest.fixture
def mariadb(tmp_path):
    return spec_of("mariadb", tmp_path, "bin/mariadbd")


@pytest.fixture
def mysql(tmp_path):
    return spec_of("mysql", tmp_path, "bin/mysqld")


def words(spec) -> set[str]:
    return set(mysql_family.option_words(spec))


def test_the_cache_is_a_power_of_two_that_two_servers_can_have():
    size = bases.cache_bytes()

    assert size & (size - 1) == 0
    assert 128 * MIB <= size <= 4 * GIB
    assert size == 128 * MIB or 2 * size <= machine_memory() / 2


def test_a_plan_says_the_last_word_in_whatever_spelling(mariadb):
    base = words(mariadb)
    assert {"--innodb_flush_log_at_trx_commit=2", "--skip-log-bin"} <= base

    chosen = replace(
        mariadb, options={"loose-innodb-flush-log-at-trx-commit": 1, "innodb_io_capacity": 7}
    )

    flush = [word for word in words(chosen) if "flush_log" in word.replace("-", "_")]
    assert flush == ["--loose-innodb-flush-log-at-trx-commit=1"]
    assert "--innodb_io_capacity=7" in words(chosen)


def test_options_that_speak_of_one_thing_are_taken_together(mysql):
    # The capacity of the base would make MySQL 8.0.30 ignore the plan's file size.
    chosen = replace(mysql, options={"innodb_log_file_size": "1G"})

    assert not any("redo_log_capacity" in word for word in words(chosen))
    assert not any("in_group" in word for word in words(chosen))
    assert mysql_family.redo_bytes(chosen) == GIB
    assert mysql_family.redo_bytes(mysql) == 96 * MIB
    charset = words(replace(mysql, options={"character-set-server": "utf8mb4"}))
    assert not any("collation" in word for word in charset)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"log_bin": True}, "--log-bin=binlog"),
        ({"log_bin": "elsewhere"}, "--log_bin=elsewhere"),
        ({"skip-log-bin": True}, "--skip-log-bin"),
        ({"skip_name_resolve": True}, "--skip_name_resolve"),
        ({"skip_name_resolve": False}, "--skip_name_resolve=OFF"),
        ({"performance_schema": False}, "--performance_schema=OFF"),
    ],
)
def test_switches_become_words_that_no_server_misunderstands(mysql, options, word):
    found = words(replace(mysql, options=options))

    assert word in found
    assert len([one for one in found if "log_bin" in one.replace("-", "_")]) == 1


def test_tables_in_myrocks_get_the_plugin_and_the_cache(mariadb):
    found = words(replace(mariadb, storage_engine="rocksdb"))

    assert "--plugin_load_add=ha_rocksdb" in found
    assert "--default_storage_engine=rocksdb" in found
    assert f"--loose-rocksdb_block_cache_size={bases.cache_bytes() // MIB}M" in found
    assert "--innodb_buffer_pool_size=128M" in found


def test_options_that_decide_the_bytes_are_known_by_their_plain_names(mysql, mariadb):
    chosen = replace(mysql, options={"loose-innodb-page-size": "4k", "max_connections": 9})
    found = mysql_family.format_options(chosen)

    assert found["innodb_page_size"] == "4k"
    assert found["character_set_server"] == "latin1"
    assert "max_connections" not in found
    assert "default_storage_engine" not in mysql_family.format_options(mariadb)


@pytest.mark.parametrize(
    ("size", "expected"),
    [("1GB", GIB), ("512", 512 * MIB), (64, 64 * MIB), ("2048kB", 2 * MIB), ("odd", GIB)],
)
def test_the_log_of_postgres_is_in_its_own_units(tmp_path, size, expected):
    spec = spec_of("postgres", tmp_path, "bin/postgres", options={"max_wal_size": size})

    assert postgres.redo_bytes(spec) == expected


def test_more_rows_take_more_room_whatever_the_engine(tmp_path):
    for name in ("mariadb", "mysql", "postgres"):
        spec = spec_of(name, tmp_path, "bin/server")
        small, large = (
            engine_of(name).data_bytes(spec, DatasetPlan(rows=rows)) for rows in (10**6, 10**7)
        )
        assert large - small > 9_000_000 * 200, name
        scaled = DatasetPlan(kind="tpcc", scale=100)
        assert engine_of(name).data_bytes(spec, scaled) > 8 * 10**9, name


def test_an_empty_directory_of_mariadb_11_is_larger(tmp_path):
    old, new = (
        spec_of("mariadb", tmp_path, "bin/mariadbd", version=f"mariadbd  Ver {version}-MariaDB")
        for version in ("10.11.19", "11.8.6")
    )
    plan = DatasetPlan(rows=1000)

    # 49 MB and 18 MB were measured.
    assert mysql_family.data_bytes(new, plan) - mysql_family.data_bytes(old, plan) >= 31_000_000


def test_every_engine_of_a_plan_is_there():
    from workloads.plan_builds import SERVERS  # noqa: PLC0415  its names are what is compared

    assert set(ENGINES) == set(SERVERS)
