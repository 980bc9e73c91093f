"""Bad input that is refused before anything is built or loaded, each with what to change."""

from __future__ import annotations

import hashlib
import json

import pytest

from workloads import exact, tpcc
from workloads.catalog import WORKLOADS, find_workload
from workloads.db_bench import STEPS, SUITES
from workloads.errors import PlanError
from workloads.plan import digest, parse_plan
from workloads.plan_datasets import Suite

SQL = """\
[fork]
name = "my-fork"
engine = "{engine}"
[builds.rel]
[datasets.small]
{dataset}
[suites.commit]
workloads = {workloads}
{more}
"""

LSM = """\
[fork]
name = "rocks"
engine = "rocksdb"
[builds.rel]
[datasets.small]
kind = "lsm"
[suites.commit]
workloads = {workloads}
warmup_seconds = {warmup}
"""


def parsed(workloads: str, dataset: str = "", engine: str = "mariadb", more: str = ""):
    return parse_plan(SQL.format(engine=engine, workloads=workloads, dataset=dataset, more=more))


def fault(workloads: str, dataset: str = "", engine: str = "mariadb", more: str = "") -> str:
    with pytest.raises(PlanError) as caught:
        parsed(workloads, dataset, engine, more)
    (line,) = str(caught.value).splitlines()
    return line.removeprefix("forkwatch.toml: ")


def lsm(workloads: str, warmup: int, more: str = ""):
    return parse_plan(LSM.format(workloads=workloads, warmup=warmup) + more)


def refused(workloads: str, warmup: int, more: str = "") -> str:
    with pytest.raises(PlanError) as caught:
        lsm(workloads, warmup, more)
    (line,) = str(caught.value).splitlines()
    return line.removeprefix("forkwatch.toml: ")


def test_steps_of_a_chain_cannot_be_warmed_up():
    said = refused('["leveled-6"]', 2)

    assert said == (
        "suites.commit.workloads: leveled.fillseq is a step of a chain, which runs once and on "
        "what the steps before have left, so nothing of it can be warmed up; write "
        "warmup_seconds = 0"
    )
    assert lsm('["leveled-6"]', 0).suite("commit").workloads == SUITES["leveled-6"]
    # Steps that begin from the snapshot can be repeated.
    assert lsm('["lsm-4"]', 2)


def test_a_chain_that_is_asked_for_by_hand_is_checked_as_well():
    plan = lsm('["lsm-4"]', 2)

    with pytest.raises(PlanError, match=r"universal\.fillseq is a step of a chain"):
        plan.workloads("commit", ["universal-6"])


def test_the_insert_benchmark_is_a_chain_that_ignores_the_warm_up():
    # Its clients are sysbench's, and a suite may mix it with what does warm up.
    assert parsed('["insert-benchmark-10"]', 'kind = "insert-benchmark"')


@pytest.mark.parametrize("name", ["leveled.overwritesome", "universal.overwritesome"])
def test_a_step_that_only_prepares_is_not_reported_and_has_no_gate(name):
    said = refused('["lsm-4"]', 0, f'[gates.workloads]\n"{name}" = 0.2\n')

    assert said == (
        f"gates.workloads: {name} only prepares the steps after it and is not judged; leave it out"
    )
    assert not find_workload(name).reported


def test_everything_else_is_reported():
    silent = {name for name, workload in WORKLOADS.items() if not workload.reported}

    assert silent == {"leveled.overwritesome", "universal.overwritesome"}
    assert [name for name, step in STEPS.items() if not step.reported] == ["overwritesome"]


def test_tpcc_is_one_set_of_tables():
    said = fault('["tpcc"]', 'kind = "tpcc"\ntables = 4')

    assert said == (
        'datasets.small.tables: a dataset of kind "tpcc" is one set of nine tables, and 4 are '
        "asked for; leave it out and choose the size with scale"
    )
    assert parsed('["tpcc"]', 'kind = "tpcc"\ntables = 1\nscale = 3')


def test_warehouses_have_their_measured_size_and_say_how():
    # 143 MB and 231 MB were measured (docs/oltp.md).
    assert tpcc.data_bytes(1) == pytest.approx(143e6, rel=0.02)
    assert tpcc.data_bytes(2) == pytest.approx(231e6, rel=0.02)
    assert tpcc.arithmetic(10) == "55 MB + 10 x 90 MB"
    assert tpcc.data_bytes(10) == 955_000_000


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tpc-c", "did you mean 'tpcc'"),
        ("leveled.overwritesom", "did you mean 'leveled.overwritesome'"),
        ("readwhilewritting", "did you mean 'readwhilewriting'"),
        ("oltp-read-wirte", "did you mean 'oltp-read-write'"),
        ("l.i3", "did you mean 'l.i"),
    ],
)
def test_an_unknown_workload_offers_the_nearest_of_every_family(name, said):
    assert said in fault(f'["{name}"]')


def with_exact(cases: str, *, engine: str = "mariadb", dataset: str = "", workloads: str = "scan"):
    return parsed(f'["{workloads}"]', dataset, engine, f"exact = {cases}")


def exact_fault(cases: str, *, engine: str = "mariadb", dataset: str = "", workloads: str = "scan"):
    said = fault(f'["{workloads}"]', dataset, engine, f"exact = {cases}")
    return said.removeprefix("suites.commit.exact: ")


def test_every_case_may_be_named():
    names = [case.name for case in exact.CASES]

    assert with_exact(str(names)).suite("commit").exact == tuple(names)


def test_a_misspelt_case_offers_the_nearest():
    assert exact_fault('["q19-index-conditon"]') == (
        "no case 'q19-index-conditon'; did you mean 'q19-index-condition'?"
    )
    assert "known here: group-by-index, " in exact_fault('["zzz"]')


def test_cases_are_of_the_mysql_family():
    said = exact_fault('["q19-index-condition"]', engine="postgres")

    assert said == (
        "only MariaDB and MySQL count what a query does, and the fork's engine is postgres; leave "
        "it out"
    )


def test_a_case_needs_the_tables_that_it_reads():
    said = exact_fault('["point-query"]', dataset='kind = "tpcc"', workloads="tpcc")

    assert said.startswith('point-query needs a dataset of kind "sysbench" with 100 rows in a')
    assert said.endswith('datasets.small is of kind "tpcc" with 200,000; leave it out')
    assert exact_fault('["point-query"]', dataset="rows = 50").endswith("with 50; leave it out")
    # The cases with tables of their own are asked anywhere.
    assert with_exact('["order-by-index"]', dataset='kind = "tpcc"', workloads="tpcc")


def test_a_suite_without_cases_keeps_the_identity_that_it_had():
    plain = Suite(workloads=("scan",))
    before = plain.model_dump(mode="json")
    del before["exact"]
    text = json.dumps(before, sort_keys=True)

    assert digest(plain) == hashlib.sha256(text.encode()).hexdigest()
    assert digest(Suite(workloads=("scan",), exact=("scan",))) != digest(plain)
