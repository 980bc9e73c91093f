"""Whether the tables of a plan fit together: names, workloads with their datasets, matrices.

A plan comes in, a line for each fault goes out; every line says what to change.
"""

from __future__ import annotations

import difflib
import itertools
from typing import TYPE_CHECKING, Final

from workloads import db_bench, exact, insert_benchmark
from workloads.catalog import SUITES, find_workload
from workloads.errors import CatalogError, UnknownWorkloadError
from workloads.plan_values import nearest
from workloads.workload import MYSQL_FAMILY, DatasetKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workloads.plan import Matrix, Plan
    from workloads.plan_datasets import DatasetPlan, Suite
    from workloads.workload import Workload

#: The base and 24 pairs with it: at half an hour of measuring each, the default budget of a pair,
#: that is one night of one machine. A matrix that outgrows a night is two questions.
MATRIX_CELLS_MAX: Final = 25


def faults_of(plan: Plan) -> list[str]:
    """Return a line for each fault of a plan whose tables are right by themselves."""
    faults = list(_dataset_faults(plan))
    for name, suite in plan.suites.items():
        faults += [f"suites.{name}.{fault}" for fault in _suite_faults(plan, suite)]
    for workload in plan.gates.workloads:
        faults += [f"gates.workloads: {fault}" for fault in _gate_faults(workload)]
    for name, matrix in plan.matrices.items():
        faults += [f"matrices.{name}.{fault}" for fault in _matrix_faults(plan, matrix)]
    return faults


def workload_faults(plan: Plan, suite: Suite, names: Iterable[str]) -> list[str]:
    """Return a line for each workload that is unknown, or that the suite's dataset cannot run."""
    dataset = plan.datasets.get(suite.dataset)
    faults: list[str] = []
    steps: list[str] = []
    for name in names:
        unknown = _unknown(name)
        if not unknown and dataset is not None:
            workload = find_workload(name)
            misfits = list(_misfits(workload, plan.fork.engine, suite.dataset, dataset))
            faults += misfits
            if not misfits and workload.chain in db_bench.CHAINS:
                steps.append(name)
        faults += unknown
    if steps and suite.warmup_seconds > 0:
        faults.append(
            f"{steps[0]} is a step of a chain, which runs once and on what the steps before have "
            "left, so nothing of it can be warmed up; write warmup_seconds = 0"
        )
    return faults


def _unknown(name: str) -> list[str]:
    """Return why there is no workload of this name, if there is none."""
    try:
        find_workload(name)
    except UnknownWorkloadError as error:
        lists = difflib.get_close_matches(name, SUITES, n=1)
        return [f"{error}" + (f" or the list {lists[0]!r}?" if lists else "")]
    except CatalogError as error:
        return [str(error)]
    return []


def _gate_faults(name: str) -> list[str]:
    """Return why a workload can have no gate."""
    unknown = _unknown(name)
    if not unknown and not find_workload(name).reported:
        return [f"{name} only prepares the steps after it and is not judged; leave it out"]
    return unknown


def _misfits(workload: Workload, engine: str, name: str, dataset: DatasetPlan) -> Iterator[str]:
    """Give why a workload cannot run on this engine and the dataset called `name`."""
    if engine not in workload.engines:
        able = ", ".join(sorted(workload.engines))
        yield f"{workload.name} runs on {able} and not on {engine}, the fork's engine; leave it out"
    elif workload.dataset is not dataset.kind:
        yield (
            f'{workload.name} needs a dataset of kind "{workload.dataset}", and datasets.{name} is '
            f'of kind "{dataset.kind}"; name another dataset'
        )
    elif dataset.rows < workload.rows_min:
        yield (
            f"{workload.name} needs {workload.rows_min:,} rows in a table, and datasets.{name}.rows"
            f" is {dataset.rows:,}: {workload.rows_min - dataset.rows:,} too few"
        )


def _suite_faults(plan: Plan, suite: Suite) -> list[str]:
    faults = [f"workloads: {fault}" for fault in workload_faults(plan, suite, suite.workloads)]
    for key, value, known in (
        ("build", suite.build, plan.builds),
        ("config", suite.config, plan.configs),
        ("dataset", suite.dataset, plan.datasets),
    ):
        if value not in known:
            faults.append(f"{key}: nothing is called {value!r}{nearest(value, known)}")
    broken = insert_benchmark.chain_fault(suite.workloads)
    if broken:
        faults.append(f"workloads: {broken}")
    dataset = plan.datasets.get(suite.dataset)
    if dataset is not None:
        faults += [f"threads: {fault}" for fault in _client_faults(suite, dataset)]
        faults += [f"exact: {fault}" for fault in _exact_faults(plan, suite, dataset)]
    return faults


def _client_faults(suite: Suite, dataset: DatasetPlan) -> Iterator[str]:
    if dataset.kind is DatasetKind.INSERT_BENCHMARK and suite.threads != dataset.tables:
        yield (
            f"every client of the Insert Benchmark has a table of its own, and there are "
            f"{suite.threads} clients and {dataset.tables} tables; make them equal"
        )


def _exact_faults(plan: Plan, suite: Suite, dataset: DatasetPlan) -> Iterator[str]:
    """Give why a case of exact counters cannot be asked of this engine and dataset."""
    if suite.exact and plan.fork.engine not in MYSQL_FAMILY:
        yield (
            "only MariaDB and MySQL count what a query does, and the fork's engine is "
            f"{plan.fork.engine}; leave it out"
        )
        return
    cases = {case.name: case for case in exact.CASES}
    able = {case.name for case in exact.cases_for(dataset.kind, dataset.rows)}
    for name in suite.exact:
        if name not in cases:
            yield f"no case {name!r}{nearest(name, cases)}"
        elif name not in able:
            yield (
                f'{name} needs a dataset of kind "{cases[name].needs}" with '
                f"{cases[name].rows_min:,} rows in a table, and datasets.{suite.dataset} is of "
                f'kind "{dataset.kind}" with {dataset.rows:,}; leave it out'
            )


def _dataset_faults(plan: Plan) -> Iterator[str]:
    engine = plan.fork.engine
    for name, dataset in plan.datasets.items():
        if dataset.storage_engine is not None and engine not in MYSQL_FAMILY:
            yield (
                f"datasets.{name}.storage_engine: only MariaDB and MySQL have one, and the fork's "
                f"engine is {engine}; leave it out"
            )
        if dataset.kind is DatasetKind.TPCC and dataset.tables != 1:
            yield (
                f'datasets.{name}.tables: a dataset of kind "tpcc" is one set of nine tables, and '
                f"{dataset.tables} are asked for; leave it out and choose the size with scale"
            )


def _matrix_faults(plan: Plan, matrix: Matrix) -> list[str]:
    """Return a line for each name in a matrix that is unknown or there twice, and for its size."""
    faults = []
    for key, names, known in (
        ("builds", matrix.builds, plan.builds),
        ("configs", matrix.configs, plan.configs),
        ("suite", (matrix.suite,), plan.suites),
    ):
        faults += [
            f"{key}: nothing is called {name!r}{nearest(name, known)}"
            for name in names
            if name not in known
        ]
        faults += [
            f"{key}: {name!r} is there more than once"
            for name in dict.fromkeys(names)
            if names.count(name) > 1
        ]
    cells = len(list(itertools.product(matrix.builds, matrix.configs)))
    if cells > MATRIX_CELLS_MAX:
        faults.append(f"builds: {cells} cells with its configs; {too_many_cells()}")
    return faults


def too_many_cells() -> str:
    """Return why a matrix may not be larger, and what to do."""
    return (
        f"at most {MATRIX_CELLS_MAX} fit into a night of one machine at half an hour each; "
        "make two matrices"
    )
