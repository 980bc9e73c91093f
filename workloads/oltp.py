"""sysbench's OLTP transactions: read-write, read-only and write-only, at several thread counts.

The transactions are those of the microbenchmarks with ranges of 100 rows, sysbench's own default;
here their seconds count as much as their average. `per_second.evenness` of a slice's per-second
series gives mean, deviation, the worst seconds and stalls. A plain name runs with the threads of
its suite; `oltp-read-write(t16)` brings its own, so that one suite can hold several thread counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from workloads.microbenchmarks import FAMILIES
from workloads.workload import Group, Workload

#: Rows of each of the four range queries; sysbench's own default.
RANGE_ROWS: Final = 100
#: One client shows processor costs, many what clients do to each other: the field measures both
#: and does not mix the verdicts.
THREADS: Final = (1, 4, 16, 64)

_PLAIN: Final = tuple(
    replace(
        FAMILIES[family].workload(number=RANGE_ROWS),
        name=f"oltp-{family}",
        group=Group.OLTP,
    )
    for family in ("read-write", "read-only", "write-only")
)


def _with_threads(workload: Workload, threads: int) -> Workload:
    """Return the workload with its own number of client threads, whatever its suite says."""
    return replace(
        workload,
        name=f"{workload.name}(t{threads})",
        # sysbench takes the last of two equal options.
        options={**workload.options, "threads": threads},
    )


WORKLOADS: Final[tuple[Workload, ...]] = (
    *_PLAIN,
    *(_with_threads(workload, threads) for workload in _PLAIN for threads in THREADS),
)

SUITES: Final[dict[str, tuple[str, ...]]] = {
    "oltp-3": tuple(workload.name for workload in _PLAIN),
    "oltp-threads-12": tuple(
        workload.name for workload in WORKLOADS if "threads" in workload.options
    ),
}
