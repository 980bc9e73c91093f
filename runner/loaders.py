"""Loaders: which Lua script makes which kind of dataset for sysbench, and what its rows should be.

Text of scripts goes out for a dataset's digest, expected rows for the check after a load. Nothing
is started here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workloads import insert_benchmark, tpcc
from workloads.catalog import SCRIPTS
from workloads.workload import DatasetKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.plan import DatasetPlan

#: Equal seeds load equal rows; part of a dataset's digest.
LOAD_SEED: Final = 20_260_101


@dataclass(frozen=True, kw_only=True)
class Loader:
    """The scripts of one kind of dataset."""

    #: Loads with the command `prepare`.
    script: str
    #: Counts with the command `count`: a line `rows of TABLE: NUMBER` for each.
    counter: str
    #: All that the load depends on.
    files: tuple[str, ...]


LOADERS: Final[Mapping[DatasetKind, Loader]] = {
    DatasetKind.SYSBENCH: Loader(
        script="load.lua", counter="count.lua", files=("schema.lua", "load.lua")
    ),
    DatasetKind.TPCC: Loader(script=tpcc.LOADER, counter=tpcc.LOADER, files=tpcc.LOADER_FILES),
    DatasetKind.INSERT_BENCHMARK: Loader(
        script=insert_benchmark.LOADER,
        counter=insert_benchmark.LOADER,
        files=insert_benchmark.LOADER_FILES,
    ),
}


def identity(kind: DatasetKind) -> tuple[str, ...]:
    """Return what decides the rows that are loaded, besides the plan: the seed and the scripts."""
    if kind not in LOADERS:
        return ()
    return (str(LOAD_SEED), *((SCRIPTS / name).read_text() for name in LOADERS[kind].files))


def words(plan: DatasetPlan) -> list[str]:
    """Return the options of the loader that this dataset needs besides tables and rows."""
    found = []
    if plan.storage_engine is not None:
        found.append(f"--storage-engine={plan.storage_engine}")
    if plan.kind is DatasetKind.TPCC:
        found.append(f"--scale={plan.scale}")
    if not plan.primary_key:
        found.append("--primary-key=off")
    return found


def wrong_rows(rows: Mapping[str, int], plan: DatasetPlan) -> str:
    """Return what the counted rows should be, where they are not that; else an empty text."""
    if plan.kind is DatasetKind.SYSBENCH:
        right = list(rows.values()) == [plan.rows] * plan.tables
        return "" if right else f"{plan.tables} x {plan.rows} rows were loaded"
    if plan.kind is DatasetKind.INSERT_BENCHMARK:
        right = list(rows.values()) == [0] * plan.tables
        return "" if right else f"{plan.tables} empty tables were made"
    if plan.kind is DatasetKind.TPCC:
        expected = tpcc.expected_rows(plan.scale)
        # Orders have 5 to 15 lines.
        loose = {"order_line"}
        found = {name.rpartition(".")[2]: count for name, count in rows.items()}
        right = found.keys() == expected.keys() and all(
            found[name] == count for name, count in expected.items() if name not in loose
        )
        return "" if right else f"{plan.scale} warehouses were loaded"
    return ""
