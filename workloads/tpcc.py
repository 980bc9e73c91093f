"""The TPC-C like mix: one workload, and the conditions that its data must always meet.

Ten new orders and ten payments to one order status, one delivery and one stock level, without think
time: the mix of the field's kit, not an audited TPC-C. A server that loses or doubles writes can be
fast, so the data is checked after the load and after a run. Rows of statements come in from whoever
can ask a server; nothing here does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workloads.workload import DatasetKind, Group, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Loads with the command `prepare`, counts with `count`; reads `--scale`.
LOADER: Final = "tpcc_load.lua"
#: What the load depends on besides: part of a dataset's digest.
LOADER_FILES: Final = ("schema.lua", "clock.lua", "tpcc_schema.lua", LOADER)

DISTRICTS: Final = 10
#: Rows of a warehouse by table, the specification's; order lines are 5 to 15 an order, so about.
ROWS_OF_A_WAREHOUSE: Final[Mapping[str, int]] = {
    "warehouse": 1,
    "stock": 100_000,
    "district": 10,
    "customer": 30_000,
    "history": 30_000,
    "orders": 30_000,
    "new_orders": 9_000,
    "order_line": 300_000,
}
ITEMS: Final = 100_000

#: Bytes of the loaded tables in InnoDB: items and what nine tables take at least, and each
#: warehouse. Measured with MariaDB 10.11.19: 143 MB for one, 231 MB for two (docs/oltp.md).
_SHARED_BYTES: Final = 55_000_000
_WAREHOUSE_BYTES: Final = 90_000_000

WORKLOADS: Final[tuple[Workload, ...]] = (
    Workload(
        name="tpcc",
        group=Group.TPCC,
        script="tpcc_mix.lua",
        operation="transaction",
        writes=True,
        prepared=False,
        description=(
            "of 23 transactions 10 new orders (1 % rolled back), 10 payments, 1 order status, "
            "1 delivery of 10 orders, 1 stock level; a random home warehouse, no think time."
        ),
        dataset=DatasetKind.TPCC,
    ),
)

SUITES: Final[dict[str, tuple[str, ...]]] = {"tpcc-1": ("tpcc",)}


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Something that must hold whenever no transaction is open."""

    name: str
    #: One row with one number: how many warehouses or districts break it.
    statement: str


#: Clause 3.3.2.1 to 3.3.2.4 of the specification, after the one without which they say nothing.
CONDITIONS: Final = (
    Condition(
        name="there are warehouses",
        statement="SELECT CASE WHEN COUNT(*) > 0 THEN 0 ELSE 1 END FROM sbtest.warehouse",
    ),
    Condition(
        name="1: a warehouse has taken what its districts have",
        statement=(
            "SELECT COUNT(*) FROM sbtest.warehouse WHERE w_ytd <> "
            "(SELECT COALESCE(SUM(d_ytd), 0) FROM sbtest.district WHERE d_w_id = w_id)"
        ),
    ),
    Condition(
        name="2: the next order follows the last one",
        statement=(
            "SELECT COUNT(*) FROM sbtest.district WHERE d_next_o_id - 1 <> "
            "(SELECT COALESCE(MAX(o_id), 0) FROM sbtest.orders "
            "WHERE o_w_id = d_w_id AND o_d_id = d_id) OR d_next_o_id - 1 <> "
            # Where everything is delivered there is no last new order.
            "(SELECT COALESCE(MAX(no_o_id), d_next_o_id - 1) FROM sbtest.new_orders "
            "WHERE no_w_id = d_w_id AND no_d_id = d_id)"
        ),
    ),
    Condition(
        name="3: new orders are numbered without gaps",
        statement=(
            "SELECT COUNT(*) FROM (SELECT no_w_id, no_d_id FROM sbtest.new_orders "
            "GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)) AS gaps"
        ),
    ),
    Condition(
        name="4: orders have the lines that they count",
        statement=(
            "SELECT COUNT(*) FROM sbtest.district WHERE "
            "(SELECT COALESCE(SUM(o_ol_cnt), 0) FROM sbtest.orders "
            "WHERE o_w_id = d_w_id AND o_d_id = d_id) <> "
            "(SELECT COUNT(*) FROM sbtest.order_line WHERE ol_w_id = d_w_id AND ol_d_id = d_id)"
        ),
    ),
)


def faults(rows: Callable[[str], Sequence[Sequence[str]]]) -> tuple[str, ...]:
    """Return a line for each condition that does not hold, with how often it is broken.

    Args:
        rows: Asks a server one statement and returns its rows as text. No transaction may be open
            on that server.
    """
    found = []
    for condition in CONDITIONS:
        answer = rows(condition.statement)
        if [len(row) for row in answer] != [1] or not answer[0][0].isdecimal():
            found.append(f"condition {condition.name}: the server answered {answer!r}")
        elif int(answer[0][0]) > 0:
            found.append(f"condition {condition.name}: broken {answer[0][0]} times")
    return tuple(found)


def expected_rows(scale: int) -> dict[str, int]:
    """Return the rows of each table after the load, of order lines about how many."""
    return {
        "item": ITEMS,
        **{table: scale * rows for table, rows in ROWS_OF_A_WAREHOUSE.items()},
    }


def data_bytes(scale: int) -> int:
    """Return about how many bytes the loaded tables take in InnoDB."""
    return _SHARED_BYTES + scale * _WAREHOUSE_BYTES


def arithmetic(scale: int) -> str:
    """Return that sum in words, for whoever has to choose fewer warehouses."""
    return f"{_SHARED_BYTES // 10**6} MB + {scale} x {_WAREHOUSE_BYTES // 10**6} MB"
