"""A workload: one named microbenchmark, as a value that says what to run and how to read it.

Families of workloads (`microbenchmarks`, ...) make such values; `catalog` finds them by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Group(StrEnum):
    """Groups of the summary tables: the field's five in its order, then one for each other tool."""

    #: Points by primary key or index, few or many at once.
    POINT_1 = "point-1"
    #: `random-points`: lists of random ids.
    POINT_2 = "point-2"
    #: Ranges and scans without aggregation.
    RANGE_1 = "range-1"
    #: Ranges with aggregation, sorting or counting.
    RANGE_2 = "range-2"
    WRITE = "write"
    OLTP = "oltp"
    TPCC = "tpcc"
    INSERT_BENCHMARK = "insert-benchmark"
    LSM = "lsm"


class Tool(StrEnum):
    """The client program that runs a workload."""

    SYSBENCH = "sysbench"
    DB_BENCH = "db_bench"


class DatasetKind(StrEnum):
    """What a dataset holds; decides the loader, and which workloads can use it."""

    SYSBENCH = "sysbench"
    TPCC = "tpcc"
    INSERT_BENCHMARK = "insert-benchmark"
    LSM = "lsm"


#: Engines that speak SQL, by the plan's name.
SQL_ENGINES: Final = frozenset({"mariadb", "mysql", "postgres"})
MYSQL_FAMILY: Final = frozenset({"mariadb", "mysql"})
#: Engines that are a library with a benchmark program and no server.
LSM_ENGINES: Final = frozenset({"rocksdb", "leveldb"})


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One named microbenchmark."""

    name: str
    group: Group
    #: File under `catalog.SCRIPTS` (sysbench), or the benchmarks to run (db_bench).
    script: str
    #: What one operation is, in words for tables ("query", "scan of all tables").
    operation: str
    #: Writes change the dataset, so a slice of a writing workload runs after all reading ones.
    writes: bool
    #: Server-side prepared statements, as the field runs it.
    prepared: bool
    #: One sentence with the statement.
    description: str
    tool: Tool = Tool.SYSBENCH
    dataset: DatasetKind = DatasetKind.SYSBENCH
    #: Engines it runs on, by the plan's name.
    engines: frozenset[str] = SQL_ENGINES
    #: Options of the script or program besides the ones every workload gets, without dashes.
    options: Mapping[str, str | int | float] = field(default_factory=dict)
    #: Rows a table needs, or the workload would not do what its name says.
    rows_min: int = 1
    #: Workloads of one chain run in the order of the suite on one dataset, each once in a start,
    #: because every step begins from what the one before has left. Empty: it stands alone.
    chain: str = ""
    #: What the server gets for one operation, in order: `t` is a table, `?` a value, `(?*10)` a
    #: list of ten. Empty where it is not as simple as that.
    statements: tuple[str, ...] = ()
    #: False for a step that only prepares the next ones: it is measured and kept, and neither shown
    #: nor judged.
    reported: bool = True
    #: One operation reads every row of one table, so that rows per second can be told as well.
    scans_table: bool = False
