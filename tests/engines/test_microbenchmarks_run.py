"""Every microbenchmark and OLTP mix for a second, on every engine that `make engines` fetched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runner import datasets
from runner.servers.engines import engine_of
from tests.engines.test_engines_run import MYROCKS, TREES, run
from tests.runner.installed_trees import described
from workloads.catalog import SUITES, find_workload
from workloads.plan import DatasetPlan

pytestmark = pytest.mark.engines

ROWS = 100_000
NAMES = sorted(
    {name for suite in ("full-42", "full-32", "oltp-3") for name in SUITES[suite]},
    key=lambda name: (find_workload(name).writes, name == "delete", name),
)


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.name)
def test_each_runs(tree, home, tmp_path):
    run_all(described(tree), DatasetPlan(rows=ROWS), home, tmp_path)


@pytest.mark.parametrize("tree", MYROCKS, ids=lambda tree: tree.name)
def test_each_runs_in_its_myrocks(tree, home, tmp_path):
    plan = DatasetPlan(rows=ROWS, storage_engine="rocksdb")
    run_all(replace(described(tree), storage_engine="rocksdb"), plan, home, tmp_path)


def run_all(spec, plan, home, tmp_path) -> None:
    dataset = datasets.describe("hundred", plan, spec)
    datasets.restore(datasets.ensure(dataset, plan, spec, home), tmp_path / "data")
    with engine_of(spec.engine).running(spec, tmp_path / "data", cpus=[]) as server:
        rates = {}
        for name in NAMES:
            done = run(server, name, plan)
            assert done.operations > 0, name
            rates[name] = done.operations / done.seconds
    print(f"{dataset.engine_format}: {len(rates)} workloads ran")
