from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest

from runner import datasets, exact
from runner.errors import ServerError
from runner.servers import mysql_family, session
from tests.runner.conftest import ROWS
from tests.runner.sql_servers import ROCKSDB
from workloads.plan import DatasetPlan


@contextmanager
def server_on(spec, snapshot, data, **options):
    datasets.restore(snapshot, data)
    chosen = mysql_family.with_options(spec, options)
    with mysql_family.running(chosen, data, cpus=()) as server:
        yield server


def test_one_server_twice_works_alike_and_a_lost_condition_is_seen(spec, snapshot, tmp_path):
    with server_on(spec, snapshot, tmp_path / "one") as server:
        first = exact.measure(server, ROWS)
        again = exact.measure(server, ROWS)
    with server_on(spec, snapshot, tmp_path / "two") as server:
        other = exact.measure(server, ROWS)
    switch = {"optimizer_switch": "index_condition_pushdown=off"}
    with server_on(spec, snapshot, tmp_path / "three", **switch) as server:
        without = exact.measure(server, ROWS)

    assert exact.differences(first, again) == ()
    assert exact.differences(first, other) == ()
    found = {(one.case, one.what): one for one in exact.differences(first, without)}
    moved = found["q19-index-condition", "handler_read_next"]
    # With the condition in the index few entries come back, without it every line of those parts.
    assert int(moved.candidate) > 10 * int(moved.baseline)
    assert "index condition" in found["q19-index-condition", "plan"].baseline
    assert "index condition" not in found["q19-index-condition", "plan"].candidate
    # Work differs and answers do not.
    assert not [what for _, what in found if what == "answer"]


def test_counters_are_those_of_the_query_alone(spec, snapshot, tmp_path):
    with server_on(spec, snapshot, tmp_path / "data") as server:
        by_name = {case.name: case for case in exact.measure(server, ROWS)}

    assert by_name["point-query"].counters["handler_read_key"] == 1
    assert by_name["point-query"].counters["handler_read_rnd_next"] == 0
    # Every row and the end.
    assert by_name["scan"].counters["handler_read_rnd_next"] == 2001
    assert by_name["random-points"].counters["handler_read_key"] == 6
    # The first is a look-up, and the last is not read over.
    assert by_name["range-covered-pk"].counters["handler_read_key"] == 1
    assert by_name["range-covered-pk"].answer == (("50",),)
    assert by_name["order-by-index"].counters["handler_read_next"] == 9
    assert by_name["q19-index-condition"].plan[1].key == "i_l_partkey"


def test_without_a_dataset_only_the_own_tables_are_asked(spec, snapshot, tmp_path):
    with server_on(spec, snapshot, tmp_path / "data") as server:
        session.rows(server, "DROP DATABASE sbtest")
        cases = exact.measure(server, None)
        with pytest.raises(ServerError, match="did not take"):
            exact.measure(server, DatasetPlan(rows=2000))

    assert {case.name for case in cases} == {
        case.name for case in exact.CASES if case.needs is None
    }


def test_an_engine_without_such_counters_has_no_cases(spec, snapshot, tmp_path):
    with server_on(spec, snapshot, tmp_path / "data") as server:
        elsewhere = replace(server, spec=replace(server.spec, engine="postgres"))

        assert exact.measure(elsewhere, None) == ()


@pytest.mark.skipif(not ROCKSDB.exists(), reason="apt-get install mariadb-plugin-rocksdb")
def test_myrocks_says_what_it_read_and_stepped_over(spec, snapshot, tmp_path):
    spec = replace(spec, storage_engine="rocksdb")
    plugin = {"plugin_load_add": "ha_rocksdb", "rocksdb_flush_log_at_trx_commit": 0}
    measured = []
    for folder in ("one", "two"):
        with server_on(spec, snapshot, tmp_path / folder, **plugin) as server:
            measured.append({case.name: case for case in exact.measure(server, None)})

    one, two = measured
    assert exact.differences(tuple(one.values()), tuple(two.values())) == ()
    counters = one["q19-index-condition"].counters
    assert counters["rocksdb_perf_iter_read_bytes"] > 0
    assert set(counters) > {"handler_read_next", "rocksdb_perf_internal_key_skipped_count"}
