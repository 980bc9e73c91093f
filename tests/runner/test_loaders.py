from __future__ import annotations

import pytest

from runner import loaders, sysbench
from runner.load_facts import LoadFacts
from workloads import tpcc
from workloads.plan import DatasetPlan
from workloads.workload import DatasetKind

FACTS = {
    "load_s": 4.0,
    "rows": 2000,
    "settle_s": 0.1,
    "startup_s": 0.2,
    "shutdown_s": 0.3,
    "disk_bytes": 1000,
}


def test_only_what_a_kind_understands_is_asked_of_its_loader():
    sysbench_rows = DatasetPlan(storage_engine="rocksdb", primary_key=False)
    warehouses = DatasetPlan(kind="tpcc", scale=3, storage_engine="innodb")

    assert loaders.words(DatasetPlan()) == []
    assert loaders.words(sysbench_rows) == ["--storage-engine=rocksdb", "--primary-key=off"]
    assert loaders.words(warehouses) == ["--storage-engine=innodb", "--scale=3"]


def test_every_kind_but_the_library_s_has_a_loader_and_another_identity():
    kinds = [kind for kind in DatasetKind if kind is not DatasetKind.LSM]

    assert set(loaders.LOADERS) == set(kinds)
    assert len({loaders.identity(kind) for kind in kinds}) == len(kinds)
    assert loaders.identity(DatasetKind.LSM) == ()


def right_rows(kind: str) -> dict[str, int]:
    if kind == "tpcc":
        return {f"sbtest.{name}": count for name, count in tpcc.expected_rows(2).items()}
    count = 0 if kind == "insert-benchmark" else 50
    return {"sbtest.t1": count, "sbtest.t2": count}


@pytest.mark.parametrize("kind", ["sysbench", "tpcc", "insert-benchmark"])
def test_a_row_more_or_a_table_less_is_not_what_was_loaded(kind):
    chosen = {"scale": 2} if kind == "tpcc" else {"tables": 2, "rows": 50}
    plan = DatasetPlan(kind=kind, **chosen)
    right = right_rows(kind)
    first, *others = right

    assert loaders.wrong_rows(right, plan) == ""
    assert "2" in loaders.wrong_rows({**right, first: right[first] + 1}, plan)
    assert loaders.wrong_rows({name: right[name] for name in others}, plan) != ""


def test_orders_have_as_many_lines_as_chance_gave_them():
    plan = DatasetPlan(kind="tpcc", scale=2)

    assert loaders.wrong_rows({**right_rows("tpcc"), "sbtest.order_line": 7}, plan) == ""


def test_what_a_loader_tells_of_its_tables_is_added_up():
    told = (
        "seconds of sbtest.sbtest1: 2.500 for rows, 0.125 for indexes\n"
        "seconds of sbtest.sbtest2: 1.500 for rows, 0.25 for indexes\n"
        "seconds of nothing: lost for rows, 1 for indexes\n"
    )

    assert sysbench.seconds_told(told) == {"rows_s": 4.0, "indexes_s": 0.375}
    assert sysbench.seconds_told("Threads started!\n") == {}


def test_rows_per_second_are_without_indexes_where_that_is_known():
    assert LoadFacts(**FACTS).rows_per_s == 500
    assert LoadFacts(**FACTS, rows_s=2.0).rows_per_s == 1000
    assert LoadFacts(**{**FACTS, "rows": 0}).rows_per_s is None
