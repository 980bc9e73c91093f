"""The field's microbenchmarks, as families of workloads on the tables of `sysbench/schema.lua`.

The statements are those of the Small Datum posts, the Lua scripts are ours. Nothing comes in;
families, the workloads that the field runs, and its suites go out. docs/workloads.md is the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workloads.families import PRE, ROWS_PER_PICKED, WARM, Family
from workloads.workload import Group

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.workload import Workload

#: Half of what LuaJIT hands to one call, and four times the field's longest list.
LIST_MAX: Final = 4_000
RANGE_MAX: Final = 1_000_000
#: Ids in the list of `update-inlist`; the field's number never reached that statement.
UPDATE_LIST: Final = 10
#: At ten thousand deletes a second, a third of so many rows is left after ten seconds: from then on
#: it is mostly rows that are no longer there which are being deleted.
DELETE_ROWS_MIN: Final = 100_000
#: So few rows lie on a dozen pages, where hot and cold ones are neighbours.
ZIPF_ROWS_MIN: Final = 1_000

_BY_ID: Final = "FROM t WHERE id BETWEEN ? AND ?"
_POINT: Final = "SELECT c FROM t WHERE id = ?"
_UPDATE_K: Final = "UPDATE t SET k = k + 1 WHERE id = ?"
_UPDATE_C: Final = "UPDATE t SET c = ? WHERE id = ?"
_DELETE: Final = "DELETE FROM t WHERE id = ?"
_INSERT: Final = "INSERT INTO t (id, k, c, pad) VALUES (?*4)"
#: Range selects by the name that transaction.lua knows them by.
_KINDS: Final = {
    "simple": f"SELECT c {_BY_ID}",
    "sum": f"SELECT SUM(k) {_BY_ID}",
    "order": f"SELECT c {_BY_ID} ORDER BY c",
    "distinct": f"SELECT DISTINCT c {_BY_ID} ORDER BY c",
    "count": f"SELECT COUNT(c) {_BY_ID}",
}
#: Those of a whole transaction, in its order.
_FOUR: Final = ("simple", "sum", "order", "distinct")


def _list(
    name: str,
    *,
    columns: str,
    key: str,
    group: Group = Group.POINT_1,
    numbers: tuple[int, ...] = (100,),
    hot: bool = False,
) -> Family:
    """Return a family that selects columns by a list of keys."""
    what = (
        "{n} ids in a row from the middle of the table, always the same."
        if hot
        else f"{{n}} random values of {key} in one list."
    )
    return Family(
        name=name,
        group=group,
        script="points.lua",
        operation="query",
        statements=lambda n: (f"SELECT {columns} FROM t WHERE {key} IN (?*{n})",),  # noqa: S608  shown, not sent
        description=what,
        options={"columns": columns, "key": key, **({"hot": "on"} if hot else {})},
        counts="values in its list",
        numbers=numbers,
        number_max=LIST_MAX,
    )


def _span(name: str, *, columns: str, key: str) -> Family:
    """Return a family that selects columns by a range of keys."""
    rows = "{n} and one rows" if key == "id" else "about {n} and one rows"
    return Family(
        name=name,
        group=Group.RANGE_1,
        script="ranges.lua",
        operation="query",
        statements=lambda _: (f"SELECT {columns} FROM t WHERE {key} BETWEEN ? AND ?",),  # noqa: S608  shown, not sent
        description=f"From a random {key} to that {key} + {{n}}: {rows}.",
        options={"columns": columns, "key": key},
        counts="steps from the first to the last value of its range",
        number_max=RANGE_MAX,
    )


def _transaction(
    name: str,
    group: Group,
    *,
    numbers: tuple[int, ...],
    points: int = 10,
    kinds: tuple[str, ...] = _FOUR,
    writes: bool = False,
) -> Family:
    """Return a family of transactions: points, ranges and, where asked for, the four writes."""
    parts = [f"{points} points"] if points else []
    parts += [f"{len(kinds)} range{'s' if kinds[1:] else ''} of {{n}} rows"] if kinds else []
    parts += ["new k, new c, delete and insert of a row"] if writes else []
    middle = (_POINT,) * points + tuple(_KINDS[kind] for kind in kinds)
    middle += (_UPDATE_K, _UPDATE_C, _DELETE, _INSERT) if writes else ()
    return Family(
        name=name,
        group=group,
        script="transaction.lua",
        operation="transaction",
        statements=lambda _: ("BEGIN", *middle, "COMMIT"),
        description=f"BEGIN; {'; '.join(parts)}; COMMIT.",
        writes=writes,
        options={
            "point-selects": points,
            "kinds": ",".join(kinds) or "none",
            "writes": "on" if writes else "off",
        },
        counts="rows in each of its ranges" if kinds else "",
        numbers=numbers,
        number_max=RANGE_MAX,
    )


def _write(
    name: str,
    script: str,
    statement: str,
    description: str,
    *,
    options: Mapping[str, str | int | float] | None = None,
    prepared: bool = True,
    rows_min: int = 1,
) -> Family:
    """Return a family that runs one writing statement."""
    return Family(
        name=name,
        group=Group.WRITE,
        script=script,
        statements=lambda _: (statement,),
        description=description,
        writes=True,
        prepared=prepared,
        options=options or {},
        rows_min=rows_min,
    )


_READING: Final = (
    Family(
        name="point-query",
        group=Group.POINT_1,
        script="point_query.lua",
        operation="query",
        statements=lambda _: (_POINT,),
        description="One row by a uniform id.",
    ),
    _list("random-points", columns="c", key="id", group=Group.POINT_2, numbers=(10, 100, 1000)),
    _list("hot-points", columns="c", key="id", hot=True),
    _list("points-covered-pk", columns="id", key="id"),
    _list("points-notcovered-pk", columns="id, c", key="id"),
    _list("points-covered-si", columns="k", key="k"),
    _list("points-notcovered-si", columns="k, c", key="k"),
    Family(
        name="scan",
        group=Group.RANGE_1,
        script="scan.lua",
        operation="full scan of one table",
        statements=lambda _: ("SELECT * FROM t WHERE LENGTH(c) < ?",),
        description="LENGTH(c) < 0: reads every row, returns none.",
        prepared=False,
        scans_table=True,
    ),
    _span("range-covered-pk", columns="id", key="id"),
    _span("range-notcovered-pk", columns="id, c", key="id"),
    _span("range-covered-si", columns="k", key="k"),
    _span("range-notcovered-si", columns="k, c", key="k"),
    _transaction("read-only", Group.RANGE_2, numbers=(10, 100, 10_000)),
    *(
        _transaction(f"read-only-{kind}", Group.RANGE_2, kinds=(kind,), numbers=(1000,))
        for kind in _FOUR
    ),
    Family(
        name="read-only-count",
        group=Group.RANGE_2,
        script="transaction.lua",
        operation="query",
        statements=lambda _: (_KINDS["count"],),
        description="Counts {n} rows in a row.",
        options={"point-selects": 0, "kinds": "count", "transaction": "off"},
        counts="rows that it counts",
        numbers=(1000,),
        number_max=RANGE_MAX,
    ),
)
_WRITING: Final = (
    _write(
        "update-inlist",
        "update_inlist.lua",
        f"UPDATE t SET c = ? WHERE id IN (?*{UPDATE_LIST})",  # noqa: S608  shown, not sent
        f"One new c for {UPDATE_LIST} random ids in one list.",
        options={"range": UPDATE_LIST},
        rows_min=ROWS_PER_PICKED * UPDATE_LIST,
    ),
    _write(
        "update-index",
        "update_index.lua",
        _UPDATE_K,
        "New k of a uniform id: the secondary index follows.",
    ),
    _write(
        "update-nonindex",
        "update_nonindex.lua",
        _UPDATE_C,
        "New c of a uniform id: no index changes.",
    ),
    _write(
        "update-one",
        "update_nonindex.lua",
        _UPDATE_C,
        "New c of the first row, always the same: clients wait for its lock.",
        options={"ids": "one"},
    ),
    _write(
        "update-zipf",
        "update_nonindex.lua",
        _UPDATE_C,
        "New c of an id by Zipf's law with exponent 0.8: low ids are hot.",
        options={"ids": "zipf"},
        rows_min=ZIPF_ROWS_MIN,
    ),
    _transaction("write-only", Group.WRITE, points=0, kinds=(), writes=True, numbers=(10_000,)),
    _transaction("read-write", Group.WRITE, writes=True, numbers=(10, 100)),
    _write(
        "delete",
        "delete.lua",
        _DELETE,
        "Deletes a uniform id: finds fewer and fewer rows.",
        rows_min=DELETE_ROWS_MIN,
    ),
    _write(
        "insert",
        "insert.lua",
        _INSERT,
        "One row at the end of the table; the server makes its id.",
        prepared=False,
    ),
)

#: Every family by name, in the order of the groups.
FAMILIES: Final[Mapping[str, Family]] = {family.name: family for family in (*_READING, *_WRITING)}


def _names(*families: str, stage: str = "") -> tuple[str, ...]:
    """Return the names of what the field runs of these families."""
    return tuple(workload.name for family in families for workload in FAMILIES[family].named(stage))


_POINTS: Final = ("points-covered-pk", "points-notcovered-pk")
_POINTS_SI: Final = ("points-covered-si", "points-notcovered-si")
_RANGES: Final = ("range-covered-pk", "range-notcovered-pk")
_RANGES_SI: Final = ("range-covered-si", "range-notcovered-si")
_ALL: Final = (*_POINTS, *_POINTS_SI, *_RANGES, *_RANGES_SI)
_CHANGES: Final = _names(
    *("update-inlist", "update-index", "update-nonindex", "update-one", "update-zipf"),
    *("write-only", "read-write"),
)

#: Named lists of workloads, in the field's order of running.
SUITES: Final[Mapping[str, tuple[str, ...]]] = {
    "full-42": (
        *_names("point-query", "random-points", "read-only", *_ALL, stage=PRE),
        *_CHANGES,
        *_names("read-only", "point-query", "random-points", "hot-points", *_ALL),
        *_names("scan", "delete", "insert"),
    ),
    "full-32": (
        *_CHANGES,
        *_names("scan", "read-only", *(f"read-only-{kind}" for kind in (*_FOUR, "count"))),
        *_names("point-query", "random-points", "hot-points", *_ALL),
        *_names("delete", "insert"),
    ),
    # The two warm runs are among the twelve.
    "some-12": (
        *_names("update-inlist", "update-index", "update-nonindex"),
        *_names("scan", stage=WARM),
        *_names("scan", "read-only-count"),
        "random-points(10)",
        *_names("points-covered-si", stage=WARM),
        *_names(*_POINTS_SI, *_RANGES_SI),
    ),
    # One for each way in which servers have become slower; docs/workloads.md.
    "core-8": (
        *_names("scan", "update-index", "insert", "point-query"),
        "random-points(1000)",
        *_names("range-notcovered-si"),
        "read-only(10)",
        *_names("update-inlist"),
    ),
    "commit": _names("scan", "point-query", "update-index"),
}

#: What the field runs, the runs after the load last; other numbers and stages make further ones.
WORKLOADS: Final[tuple[Workload, ...]] = (
    *(workload for family in FAMILIES.values() for workload in family.named()),
    *(
        workload
        for family in ("point-query", "random-points", "read-only", *_ALL)
        for workload in FAMILIES[family].named(PRE)
    ),
    *(
        workload
        for family in ("point-query", "scan", "points-covered-si")
        for workload in FAMILIES[family].named(WARM)
    ),
)
