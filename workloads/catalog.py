"""The catalog of workloads: what each one runs, on which engines, and what its sample means.

Families of workloads come in from their modules; a name goes in, a workload goes out. Names may
carry a stage and a number, such as `random-points.pre(1000)`; docs/workloads.md lists them.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Final

from workloads import db_bench, insert_benchmark, microbenchmarks, oltp, tpcc
from workloads.errors import UnknownWorkloadError
from workloads.families import find, spellings
from workloads.workload import Group, Workload

__all__ = ["SCRIPTS", "SUITES", "WORKLOADS", "Group", "Workload", "find_workload"]

#: Where the Lua scripts are; the runner binds this folder read-only into the client's sandbox.
SCRIPTS: Final = Path(__file__).parent / "sysbench"

_ROOMS: Final = (microbenchmarks, oltp, tpcc, insert_benchmark, db_bench)

#: Workloads by name, in the order of the tables: the ones that somebody has given a name. A
#: family's other numbers are found by `find_workload`.
WORKLOADS: Final[dict[str, Workload]] = {
    workload.name: workload for room in _ROOMS for workload in room.WORKLOADS
}

#: Lists of workloads by name, in their order of running; a plan may name them.
SUITES: Final[dict[str, tuple[str, ...]]] = {
    name: names for room in _ROOMS for name, names in room.SUITES.items()
}


def find_workload(name: str) -> Workload:
    """Return the workload called `name`; its own name is the one that series are kept under.

    The field writes a number behind every name, `point-query.pre(100)`, also where nothing is
    counted; such a number is read over. Where it runs one number only, that may be left out.

    Raises:
        UnknownWorkloadError: There is none; the message offers the nearest name.
    """
    found = WORKLOADS.get(name) or find(name, microbenchmarks.FAMILIES)
    if found is not None:
        return WORKLOADS.get(found.name, found)
    known = dict.fromkeys((*WORKLOADS, *spellings(name, microbenchmarks.FAMILIES)))
    near = difflib.get_close_matches(name, known, n=1)
    some = ", ".join(SUITES["core-8"])
    hint = f"; did you mean {near[0]!r}?" if near else f"; known: {some}, ... (docs/workloads.md)"
    raise UnknownWorkloadError(f"unknown workload {name!r}{hint}")
