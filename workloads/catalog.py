"""The catalog of workloads: what each one runs, on which engines, and what its sample means.

A workload is a Lua script for sysbench plus fixed parameters. Statements are those of the Small
Datum microbenchmarks; docs/workloads.md lists them. Names may carry one parameter in brackets,
such as `random-points(1000)`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from workloads.errors import UnknownWorkloadError

#: Where the Lua scripts are; the runner binds this folder read-only into the client's sandbox.
SCRIPTS: Final = Path(__file__).parent / "sysbench"


class Group(StrEnum):
    """Groups of the field's summary tables."""

    POINT = "point"
    RANGE = "range"
    WRITE = "write"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One named microbenchmark."""

    name: str
    group: Group
    #: File under `SCRIPTS`.
    script: str
    #: What one operation is, in words for tables ("query", "scan of all tables").
    operation: str
    #: Writes change the dataset, so a slice of a writing workload runs after all reading ones.
    writes: bool
    #: Server-side prepared statements, as the field runs it.
    prepared: bool
    #: One sentence with the statement.
    description: str


_WORKLOADS: Final = (
    Workload(
        name="scan",
        group=Group.RANGE,
        script="scan.lua",
        operation="full scan of one table",
        writes=False,
        prepared=False,
        description="SELECT * FROM t WHERE LENGTH(c) < 0: reads every row, returns none.",
    ),
    Workload(
        name="point-query",
        group=Group.POINT,
        script="point_query.lua",
        operation="query",
        writes=False,
        prepared=True,
        description="SELECT c FROM t WHERE id = ? with a uniform id.",
    ),
    Workload(
        name="update-index",
        group=Group.WRITE,
        script="update_index.lua",
        operation="statement",
        writes=True,
        prepared=True,
        description="UPDATE t SET k = k + 1 WHERE id = ?: maintains the secondary index.",
    ),
)

#: Every workload by name, in the order of the tables.
WORKLOADS: Final[dict[str, Workload]] = {workload.name: workload for workload in _WORKLOADS}


def find_workload(name: str) -> Workload:
    """Return the workload called `name`.

    Raises:
        UnknownWorkloadError: There is none; the message offers the nearest name.
    """
    try:
        return WORKLOADS[name]
    except KeyError:
        near = difflib.get_close_matches(name, WORKLOADS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(WORKLOADS)}"
        raise UnknownWorkloadError(f"unknown workload {name!r}{hint}") from None
