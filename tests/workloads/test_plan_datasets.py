"""Datasets and suites of a plan: what fits, and the arithmetic where something does not."""

from __future__ import annotations

import pytest

from workloads.catalog import SUITES, WORKLOADS
from workloads.errors import PlanError
from workloads.plan import Plan, parse_plan
from workloads.workload import DatasetKind

PLAN = """\
[fork]
name = "my-fork"
engine = "{engine}"

[builds.rel]

[suites.commit]
workloads = {workloads}

[datasets.small]
{dataset}
"""


def parsed(workloads: str = '["scan"]', dataset: str = "", engine: str = "mariadb") -> Plan:
    return parse_plan(PLAN.format(engine=engine, workloads=workloads, dataset=dataset))


def fault(workloads: str = '["scan"]', dataset: str = "", engine: str = "mariadb") -> str:
    with pytest.raises(PlanError) as caught:
        parsed(workloads, dataset, engine)
    (line,) = str(caught.value).splitlines()
    return line.removeprefix("forkwatch.toml: ")


def some_workload(kind: DatasetKind) -> str:
    return next(name for name, one in WORKLOADS.items() if one.dataset is kind)


def test_a_list_of_the_catalog_becomes_its_workloads():
    plan = parsed('["core-8"]')

    assert plan.suite("commit").workloads == SUITES["core-8"]
    assert plan.workloads("commit") == SUITES["core-8"]
    assert plan.workloads("commit", ["commit", "scan"]) == SUITES["commit"]


def test_a_workload_of_two_lists_is_measured_once():
    names = parsed('["point-query", "commit", "core-8"]').suite("commit").workloads

    assert names[0] == "point-query"
    assert len(names) == len(set(names))
    assert set(names) == {"point-query", *SUITES["commit"], *SUITES["core-8"]}


def test_a_workload_is_known_by_the_name_of_its_series():
    text = PLAN.format(engine="mariadb", workloads='["point-query(100)"]', dataset="")

    plan = parse_plan(f'{text}\n[gates.workloads]\n"point-query(100)" = 0.2\n')

    assert plan.suite("commit").workloads == ("point-query",)
    assert plan.gates.gate("point-query") == 0.2


def test_a_misspelt_list_names_the_nearest():
    assert "the list 'full-42'?" in fault('["full42"]')


def test_too_few_rows_are_refused_with_the_arithmetic():
    said = fault('["random-points(1000)"]', "rows = 2500")

    needed = 10_000
    assert said == (
        f"suites.commit.workloads: random-points(1000) needs {needed:,} rows in a table, and "
        f"datasets.small.rows is 2,500: {needed - 2500:,} too few"
    )
    assert parsed('["random-points(1000)"]', f"rows = {needed}")


def test_a_workload_of_another_engine_is_refused():
    workload = some_workload(DatasetKind.LSM)

    said = fault(f'["{workload}"]', 'kind = "lsm"', engine="mysql")

    assert "on mysql, the fork's engine; leave it out" in said
    assert f"suites.commit.workloads: {workload} runs on " in said


def test_a_workload_of_another_kind_of_dataset_is_refused():
    said = fault('["scan"]', 'kind = "tpcc"')

    assert said == (
        'suites.commit.workloads: scan needs a dataset of kind "sysbench", and datasets.small is '
        'of kind "tpcc"; name another dataset'
    )


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ('kind = "tpc"', "datasets.small.kind: Input should be 'sysbench', 'tpcc', 'insert-bench"),
        ("scale = 10", 'datasets.small: scale needs kind = "tpcc", and this one is "sysbench"'),
        ("value_bytes = 10", 'value_bytes needs kind = "lsm", and this one is "sysbench"'),
        (
            'kind = "lsm"\nprimary_key = false\nstorage_engine = "rocksdb"',
            'primary_key needs kind = "sysbench", and this one is "lsm"; storage_engine needs',
        ),
    ],
)
def test_a_key_of_another_kind_is_refused(dataset, said):
    assert said in fault(dataset=dataset)


def test_a_storage_engine_is_of_the_mysql_family():
    assert (
        parsed(dataset='storage_engine = "rocksdb"').datasets["small"].storage_engine == "rocksdb"
    )

    said = fault(dataset='storage_engine = "rocksdb"', engine="postgres")

    assert said.startswith("datasets.small.storage_engine: only MariaDB and MySQL have one")


def test_workloads_asked_for_by_hand_are_checked_like_those_of_the_suite():
    plan = parsed(dataset="rows = 2500")

    with pytest.raises(PlanError, match="did you mean 'scan'"):
        plan.workloads("commit", ["scam"])
    with pytest.raises(PlanError, match="7,500 too few"):
        plan.workloads("commit", ["random-points(1000)"])
