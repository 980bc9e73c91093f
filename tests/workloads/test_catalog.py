from __future__ import annotations

import re
from pathlib import Path

import pytest

from workloads import catalog, microbenchmarks
from workloads.catalog import SCRIPTS, SUITES, WORKLOADS, find_workload
from workloads.errors import UnknownWorkloadError
from workloads.workload import Group, Tool

PAGE = Path(__file__).parents[2] / "docs" / "workloads.md"


def fault(name: str) -> str:
    with pytest.raises(UnknownWorkloadError) as caught:
        find_workload(name)
    return str(caught.value)


def test_every_named_workload_is_found_by_its_name():
    for name, workload in WORKLOADS.items():
        assert workload.name == name
        assert find_workload(name) is workload


def test_no_name_is_given_twice():
    assert sum(len(room.WORKLOADS) for room in catalog._ROOMS) == len(WORKLOADS)
    assert sum(len(room.SUITES) for room in catalog._ROOMS) == len(SUITES)
    assert not WORKLOADS.keys() & SUITES.keys()


def test_every_script_is_there():
    scripts = {one.script for one in WORKLOADS.values() if one.tool is Tool.SYSBENCH}

    assert {script for script in scripts if not (SCRIPTS / script).is_file()} == set()


def test_every_script_takes_the_options_it_gets():
    for workload in microbenchmarks.WORKLOADS:
        text = (SCRIPTS / workload.script).read_text()
        for option in workload.options:
            name = option.replace("-", "_")
            assert f"sysbench.cmdline.options.{name} = " in text, (workload.name, option)


def test_suites_name_workloads_by_their_own_names():
    for suite, names in SUITES.items():
        assert names, suite
        assert [find_workload(name).name for name in names] == list(names), suite
        assert len(set(names)) == len(names), suite


def test_a_suite_has_as_many_as_its_name_says():
    for suite, names in microbenchmarks.SUITES.items():
        count = re.search(r"-(\d+)$", suite)
        assert count is None or int(count[1]) == len(names), suite


def test_what_runs_first_is_there():
    assert SUITES["commit"] == ("scan", "point-query", "update-index")
    assert {"full-42", "full-32", "some-12", "core-8", "commit"} <= SUITES.keys()


def test_a_number_of_ones_own_makes_a_workload():
    found = find_workload("random-points(77)")

    assert found.name == "random-points(77)"
    assert found.options["range"] == 77
    assert found.rows_min == 770
    assert "77 random values of id" in found.description
    assert found.group is Group.POINT_2
    assert found == find_workload("random-points(77)")
    assert find_workload("read-only.pre(50)").name == "read-only.pre(50)"


@pytest.mark.parametrize(
    ("spelt", "name"),
    [
        ("point-query(100)", "point-query"),
        ("point-query.pre(100)", "point-query.pre"),
        ("point-query.warm(100)", "point-query.warm"),
        ("scan(100)", "scan"),
        ("update-inlist(100)", "update-inlist"),
        ("write-only(10000)", "write-only"),
        ("points-covered-pk", "points-covered-pk(100)"),
        ("range-notcovered-si.pre", "range-notcovered-si.pre(100)"),
        ("hot-points", "hot-points(100)"),
        ("read-only-count", "read-only-count(1000)"),
    ],
)
def test_the_spelling_of_the_field_is_understood(spelt, name):
    assert find_workload(spelt).name == name
    assert find_workload(spelt) is find_workload(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("point-qurey", "did you mean 'point-query'"),
        ("random-point(1000)", "did you mean 'random-points(1000)'"),
        ("random-pionts.pre(55)", "did you mean 'random-points.pre(55)'"),
        ("range-coverd-si", "did you mean 'range-covered-si(100)'"),
        ("random-points", "values in its list, has to be 1 to 4000; did you mean"),
        ("random-points(0)", "has to be 1 to 4000; did you mean 'random-points(10)'"),
        ("random-points(4001)", "has to be 1 to 4000"),
        ("read-only(1000001)", "rows in each of its ranges, has to be 1 to 1000000"),
        ("update-index(7)", "its statement has no number; did you mean 'update-index'"),
        ("update-index.pre", "only what reads has .pre and .warm; did you mean 'update-index'"),
        ("read-write.warm(10)", "did you mean 'read-write(10)'"),
        ("random-points(1e3)", "did you mean 'random-points"),
        ("random-points(-1)", "did you mean 'random-points"),
        ("random-points(10", "did you mean 'random-points(10)'"),
        ("zzz", "known: scan, "),
        ("", "known: scan, "),
        ("(100)", "unknown workload '(100)'"),
        ("point-query.post", "did you mean 'point-query"),
        ("random-points(" + "9" * 400 + ")", "unknown workload"),
        ("random-points(²)", "did you mean 'random-points"),
    ],
)
def test_a_name_that_nothing_has_says_what_it_should_have_been(name, said):
    assert said in fault(name)


def test_the_page_has_every_workload_and_suite():
    page = PAGE.read_text()

    for family in microbenchmarks.FAMILIES:
        assert f"| `{family}" in page, family
    for suite in microbenchmarks.SUITES:
        assert f"`{suite}`" in page
