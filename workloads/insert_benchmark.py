"""The Insert Benchmark: ten steps in a chain, from an empty table to queries under steady writes.

Every step begins from what the one before has left, so they run in order on one dataset. A client
has a table of its own and up to three connections; the client program runs `connections` threads
for each of the suite's. What the steps print is read in `insert_benchmark_output`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workloads.workload import DatasetKind, Group, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Makes the empty tables with the command `prepare`, counts rows with `count`.
LOADER: Final = "insert_benchmark_load.lua"
#: What the load depends on besides: part of a dataset's digest.
LOADER_FILES: Final = ("schema.lua", "insert_benchmark_schema.lua", LOADER)

CHAIN: Final = "insert-benchmark"
SCRIPT: Final = "insert_benchmark_step.lua"
#: Below this share of the rate it was to hold, a step did less work than asked, and its numbers
#: must not be compared with others (the field's rule).
SLA_SHARE: Final = 0.95
#: Rates of the query steps in rows per second for each client.
RATES: Final = (100, 500, 1000)
#: Rows of a statement, which is a transaction: l.i0, l.i1 and the query steps, l.i2.
LOAD_ROWS: Final = 100
BATCH_ROWS: Final = 50
SMALL_BATCH_ROWS: Final = 5
#: l.i1 replaces four fifths of the loaded rows and l.i2 the last fifth: every loaded row has been
#: deleted once when the queries begin.
CHURN_SHARES: Final = {"l.i1": 0.8, "l.i2": 0.2}
#: Fewer rows than so and an id that a query has drawn may be gone before it asks.
ROWS_MIN: Final = 2_000


def _step(
    name: str,
    *,
    operation: str,
    description: str,
    options: Mapping[str, str | int | float],
) -> Workload:
    return Workload(
        name=name,
        group=Group.INSERT_BENCHMARK,
        script=SCRIPT,
        operation=operation,
        writes=True,
        # PostgreSQL's queries are, as the field runs them.
        prepared=False,
        description=description,
        dataset=DatasetKind.INSERT_BENCHMARK,
        options=options,
        rows_min=ROWS_MIN,
        chain=CHAIN,
    )


def _churn(name: str, rows: int) -> Workload:
    share = CHURN_SHARES[name]
    return _step(
        name,
        operation="row inserted",
        description=(
            f"inserts {share:.0%} of the table's rows, {rows} a statement, while another "
            "connection deletes as many of the oldest; fixed work."
        ),
        options={"step": "churn", "connections": 2, "batch": rows, "share": share},
    )


def _query(kind: str, rate: int) -> Workload:
    asks = {
        "range": "10 entries of one of three covering indexes",
        "point": "10 rows by id",
    }[kind]
    return _step(
        f"q{kind[0]}{rate}",
        operation="query",
        description=(
            f"queries of {asks}, while {rate} rows a second are inserted and as many deleted."
        ),
        options={
            "step": "query",
            "connections": 3,
            "batch": min(BATCH_ROWS, rate),
            "rows-per-second": rate,
            "query": kind,
        },
    )


WORKLOADS: Final[tuple[Workload, ...]] = (
    _step(
        "l.i0",
        operation="row inserted",
        description=f"inserts all rows in order of id, {LOAD_ROWS} a statement, without indexes; "
        "fixed work.",
        options={"step": "load", "connections": 1, "batch": LOAD_ROWS},
    ),
    _step(
        "l.x",
        operation="row indexed",
        description="makes three secondary indexes; fixed work.",
        options={"step": "index", "connections": 1, "batch": LOAD_ROWS},
    ),
    _churn("l.i1", BATCH_ROWS),
    _churn("l.i2", SMALL_BATCH_ROWS),
    *(_query(kind, rate) for rate in RATES for kind in ("range", "point")),
)

SUITES: Final[dict[str, tuple[str, ...]]] = {
    "insert-benchmark-10": tuple(workload.name for workload in WORKLOADS),
}


def chain_fault(names: Sequence[str]) -> str:
    """Return why these workloads, in a suite's order, are no chain; an empty text where they are.

    Steps that load have to be there up to the last one that is wanted, and all of them before a
    query; queries may be left out.
    """
    every = [workload.name for workload in WORKLOADS]
    steps = [name for name in names if name in every]
    loading = [workload.name for workload in WORKLOADS if ends_by_itself(workload)]
    needed = [
        name for name in loading if any(every.index(name) <= every.index(step) for step in steps)
    ]
    right = [name for name in every if name in steps or name in needed]
    if steps == right:
        return ""
    missing = [name for name in right if name not in steps]
    why = f"without {', '.join(missing)}" if missing else "in another order"
    return (
        f"every step of the Insert Benchmark begins from what those before it leave, and here they "
        f"are {why}; write {', '.join(right)}"
    )


def threads_of(workload: Workload, clients: int) -> int:
    """Return the threads that `clients` clients need: one for each of their connections."""
    return clients * int(workload.options.get("connections", 1))


def ends_by_itself(workload: Workload) -> bool:
    """Whether the step is over when its work is done, however long its suite's slices are."""
    return workload.chain == CHAIN and workload.options.get("step") != "query"


def target_rows_s(workload: Workload, clients: int) -> int | None:
    """Return the rows a second that have to be inserted, or None where the step holds no rate."""
    rate = workload.options.get("rows-per-second")
    return None if rate is None else clients * int(rate)
