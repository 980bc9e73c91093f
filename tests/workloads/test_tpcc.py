from __future__ import annotations

import re

import pytest

from workloads import tpcc
from workloads.catalog import SCRIPTS
from workloads.tpcc import CONDITIONS, SUITES, WORKLOADS, faults
from workloads.workload import DatasetKind

LUA = "\n".join(path.read_text() for path in sorted(SCRIPTS.glob("tpcc_*.lua")))


def test_there_is_one_workload_on_a_dataset_of_its_own():
    (workload,) = WORKLOADS

    assert workload.dataset is DatasetKind.TPCC
    assert (workload.writes, workload.chain) == (True, "")
    assert SUITES["tpcc-1"] == (workload.name,)
    assert (SCRIPTS / workload.script).exists()
    assert all((SCRIPTS / name).exists() for name in tpcc.LOADER_FILES)


def test_the_nine_tables_are_those_that_are_counted():
    assert set(re.findall(r'^  \{"(\w+)", \[\[$', LUA, re.MULTILINE)) == set(tpcc.expected_rows(1))
    assert len(tpcc.expected_rows(1)) == 9
    # Items do not grow with warehouses.
    assert tpcc.expected_rows(3)["item"] == tpcc.expected_rows(1)["item"] == 100_000
    assert tpcc.expected_rows(3)["stock"] == 300_000


def test_a_consistent_server_has_no_faults():
    assert faults(lambda _: [("0",)]) == ()


def test_every_condition_is_asked_and_named():
    asked = []

    def rows(statement):
        asked.append(statement)
        return [("3",)]

    found = faults(rows)

    assert asked == [condition.statement for condition in CONDITIONS]
    assert found[2] == "condition 2: the next order follows the last one: broken 3 times"
    assert len(found) == len(CONDITIONS) == 5


@pytest.mark.parametrize("answer", [[], [("NULL",)], [("0", "0")], [("0",), ("0",)], [("-1",)]])
def test_an_answer_that_is_no_number_is_a_fault(answer):
    found = faults(lambda _: answer)

    assert len(found) == len(CONDITIONS)
    assert f"the server answered {answer!r}" in found[0]
