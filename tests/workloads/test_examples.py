"""The examples are plans, one for each engine, and hold purge back where it would be measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from workloads.catalog import SUITES
from workloads.plan import read_plan

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.toml"))
PURGE = "innodb_purge_batch_size"
#: Suites whose purge is part of the question.
WITH_PURGE = {("mysql", "tpcc")}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_plan_with_a_suite_for_every_commit(path):
    plan = read_plan(path)

    assert plan.suite("commit").workloads
    assert plan.fork.name == path.stem
    for suite in plan.suites.values():
        assert plan.build(suite.build)
        assert plan.config(suite.config)


def test_there_is_one_for_every_engine_that_the_field_measures():
    engines = {path.stem: read_plan(path).fork.engine for path in EXAMPLES}

    assert engines == {
        "mariadb": "mariadb",
        "mysql": "mysql",
        "myrocks": "mariadb",
        "postgres": "postgres",
        "rocksdb": "rocksdb",
    }
    myrocks = read_plan(FOLDER / "myrocks.toml")
    assert {one.storage_engine for one in myrocks.datasets.values()} == {"rocksdb"}


@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_short_slices_of_update_index_leave_the_purge_to_the_settling(name):
    plan = read_plan(FOLDER / f"{name}.toml")

    held = {
        suite
        for suite, table in plan.suites.items()
        if plan.config(table.config).options.get(PURGE) == 1
    }

    assert {suite for suite, table in plan.suites.items() if "update-index" in table.workloads} <= (
        held
    )
    assert set(plan.suites) - held == {suite for one, suite in WITH_PURGE if one == name}
    reasons = [
        line
        for line in (FOLDER / f"{name}.toml").read_text().splitlines()
        if line.startswith("#") and "Purge in bursts" in line
    ]
    assert reasons


@pytest.mark.parametrize("name", ["mariadb", "mysql", "myrocks"])
def test_pairs_of_the_mysql_family_compare_exact_counters(name):
    assert "q19-index-condition" in read_plan(FOLDER / f"{name}.toml").suite("commit").exact


def test_the_nights_run_the_fields_tests():
    for name in ("mariadb", "mysql", "myrocks", "postgres"):
        plan = read_plan(FOLDER / f"{name}.toml")
        assert plan.suite("night").workloads == SUITES["full-32"], name
