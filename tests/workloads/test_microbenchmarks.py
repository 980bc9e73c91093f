from __future__ import annotations

from collections import Counter

import pytest

from workloads.catalog import SUITES, WORKLOADS, find_workload
from workloads.microbenchmarks import FAMILIES
from workloads.workload import SQL_ENGINES, Group

#: The field's table, by number: the version of 2024-04-23 in its order of running.
FULL_42 = [
    "point-query.pre",
    "random-points.pre(10)",
    "random-points.pre(100)",
    "random-points.pre(1000)",
    "read-only.pre(10)",
    "read-only.pre(100)",
    "read-only.pre(10000)",
    "points-covered-pk.pre(100)",
    "points-notcovered-pk.pre(100)",
    "points-covered-si.pre(100)",
    "points-notcovered-si.pre(100)",
    "range-covered-pk.pre(100)",
    "range-notcovered-pk.pre(100)",
    "range-covered-si.pre(100)",
    "range-notcovered-si.pre(100)",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write(10)",
    "read-write(100)",
    "read-only(10)",
    "read-only(100)",
    "read-only(10000)",
    "point-query",
    "random-points(10)",
    "random-points(100)",
    "random-points(1000)",
    "hot-points(100)",
    "points-covered-pk(100)",
    "points-notcovered-pk(100)",
    "points-covered-si(100)",
    "points-notcovered-si(100)",
    "range-covered-pk(100)",
    "range-notcovered-pk(100)",
    "range-covered-si(100)",
    "range-notcovered-si(100)",
    "scan",
    "delete",
    "insert",
]


def groups(names) -> Counter[Group]:
    return Counter(find_workload(name).group for name in names)


def test_the_42_run_in_the_order_of_the_field():
    assert list(SUITES["full-42"]) == FULL_42


def test_groups_have_the_sizes_of_the_field():
    # 17 points, 9 ranges, 6 aggregating ranges and 10 writes; today 9, 5, 8 and 10.
    before, today = groups(SUITES["full-42"]), groups(SUITES["full-32"])

    assert before[Group.POINT_1] + before[Group.POINT_2] == 17
    assert [before[group] for group in (Group.RANGE_1, Group.RANGE_2, Group.WRITE)] == [9, 6, 10]
    assert today[Group.POINT_1] + today[Group.POINT_2] == 9
    assert [today[group] for group in (Group.RANGE_1, Group.RANGE_2, Group.WRITE)] == [5, 8, 10]
    assert before[Group.POINT_2] == 6


def test_the_32_are_the_42_without_the_first_round_and_with_five_more():
    aged = [name for name in SUITES["full-42"] if ".pre" not in name]
    more = {f"read-only-{kind}(1000)" for kind in ("simple", "sum", "order", "distinct", "count")}

    assert set(SUITES["full-32"]) == {*aged, *more}


def test_a_transaction_has_as_many_statements_as_the_field_counts():
    sizes = {
        name: len(find_workload(name).statements)
        for name in ("point-query", "read-only(10)", "write-only", "read-write(10)")
    }
    more = {len(find_workload(f"read-only-{kind}(1000)").statements) for kind in ("sum", "order")}

    assert sizes == {"point-query": 1, "read-only(10)": 16, "write-only": 6, "read-write(10)": 20}
    # BEGIN, ten points, one range, COMMIT.
    assert more == {13}
    assert len(find_workload("read-only-count(1000)").statements) == 1


def test_all_but_scan_and_insert_are_prepared():
    text = {name for name, family in FAMILIES.items() if not family.prepared}

    assert text == {"scan", "insert"}


def test_a_stage_changes_nothing_but_the_name():
    for name, workload in WORKLOADS.items():
        for stage in (".pre", ".warm"):
            if stage in name:
                plain = find_workload(name.replace(stage, ""))
                assert plain.options == workload.options
                assert plain.statements == workload.statements
                assert not workload.writes


def test_they_run_on_every_engine_that_speaks_sql():
    assert {workload.engines for family in FAMILIES.values() for workload in family.named()} == {
        SQL_ENGINES
    }


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("point-query", 1),
        ("scan", 1),
        ("update-one", 1),
        ("hot-points(100)", 1000),
        ("random-points(1000)", 10_000),
        ("read-only(10000)", 100_000),
        ("update-inlist", 100),
        ("delete", 100_000),
    ],
)
def test_a_table_has_enough_rows_for_what_the_name_says(name, rows):
    assert find_workload(name).rows_min == rows


def test_whatever_writes_comes_after_what_reads_fresh():
    order = SUITES["full-42"]
    fresh = [name for name in order if ".pre" in name]
    first_write = next(name for name in order if find_workload(name).writes)

    assert order[: len(fresh)] == tuple(fresh)
    assert order.index(first_write) == len(fresh)


def test_a_transaction_is_the_one_that_everybody_knows():
    ids = "FROM t WHERE id BETWEEN ? AND ?"

    assert find_workload("read-write(10)").statements == (
        "BEGIN",
        *["SELECT c FROM t WHERE id = ?"] * 10,
        f"SELECT c {ids}",
        f"SELECT SUM(k) {ids}",
        f"SELECT c {ids} ORDER BY c",
        f"SELECT DISTINCT c {ids} ORDER BY c",
        "UPDATE t SET k = k + 1 WHERE id = ?",
        "UPDATE t SET c = ? WHERE id = ?",
        "DELETE FROM t WHERE id = ?",
        "INSERT INTO t (id, k, c, pad) VALUES (?*4)",
        "COMMIT",
    )
