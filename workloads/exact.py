"""Exact counters: queries whose work a server counts to the row, and how two servers differ.

A case is a fixed query on fixed rows. The server says how often it read, stepped and wrote, and how
it meant to do it (EXPLAIN); two servers that work alike say the same, so that one run finds a plan
or a pushed-down condition that got lost, without any noise. Nothing here talks to a server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workloads.workload import DatasetKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Where the cases' own tables are made; a case is asked with it in use.
DATABASE: Final = "forkwatch_exact"
USE: Final = f"USE {DATABASE}"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A query and what it is there to show."""

    name: str
    statement: str
    #: What a difference would mean, in words.
    shows: str
    #: Kind of dataset whose tables it reads; None where it reads the cases' own.
    needs: DatasetKind | None = None
    rows_min: int = 1


@dataclass(frozen=True, kw_only=True)
class PlanLine:
    """One line of EXPLAIN, as far as it is a decision and not an estimate."""

    select: str
    table: str
    access: str
    key: str
    key_length: str
    reference: str
    extra: str


@dataclass(frozen=True, kw_only=True)
class ExactCase:
    """What one server did for one case."""

    name: str
    statement: str
    #: Status counters of that query alone, by lower-case name.
    counters: Mapping[str, int]
    plan: tuple[PlanLine, ...]
    #: EXPLAIN as the server printed it, estimates included; for people.
    explained: str
    #: The query's own answer; a server that answers something else is broken and not slow.
    answer: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing in which candidate and baseline differ for a case."""

    case: str
    #: A counter's name, `plan` or `answer`.
    what: str
    baseline: str
    candidate: str

    def sentence(self) -> str:
        """Return the difference in words."""
        return f"{self.case}: {self.what} was {self.baseline} and is {self.candidate}"


#: Rows of the small copy of TPC-H: parts, and lines of orders for each.
PARTS: Final = 1_000
LINES_OF_A_PART: Final = 30

_PART: Final = (
    "CREATE TABLE part (p_partkey INT NOT NULL PRIMARY KEY, p_brand CHAR(10) NOT NULL, "
    "p_size INT NOT NULL, p_container CHAR(10) NOT NULL)"
)
_LINEITEM: Final = (
    "CREATE TABLE lineitem (l_id INT NOT NULL PRIMARY KEY, l_partkey INT NOT NULL, "
    "l_quantity INT NOT NULL, l_extendedprice INT NOT NULL, l_discount INT NOT NULL, "
    "l_shipmode CHAR(10) NOT NULL, l_shipinstruct CHAR(25) NOT NULL, "
    "KEY i_l_partkey (l_partkey, l_quantity, l_shipmode, l_shipinstruct))"
)
_DIGITS: Final = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))


def _numbers(count: int) -> str:
    """Return a query of the numbers 0 to count - 1, as old servers understand it."""
    number = "a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d"
    digits = ", ".join(f"({_DIGITS}) AS {name}" for name in "abcef")
    return f"SELECT {number} AS n FROM {digits} WHERE {number} < {count}"  # noqa: S608  our own words


def _one_of(drawn: str, values: Sequence[str]) -> str:
    """Return an expression that picks one of the values by a number."""
    listed = ", ".join(f"'{value}'" for value in values)
    return f"ELT(1 + {drawn} % {len(values)}, {listed})"


def _drawn(salt: str, number: str = "n") -> str:
    """Return an expression that is the same even-handed number on every server."""
    return f"CRC32(CONCAT('{salt}', {number}))"


_MODES: Final = ("AIR", "AIR REG", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK")
_INSTRUCTIONS: Final = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
_BRANDS: Final = ("Brand#12", "Brand#23", "Brand#34", "Brand#41", "Brand#55")
_CONTAINERS: Final = ("SM CASE", "SM BOX", "MED BAG", "MED BOX", "LG CASE", "LG BOX", "JUMBO JAR")


def making(*, storage_engine: str | None = None) -> tuple[str, ...]:
    """Return the statements that make the cases' own tables; equal rows on every server."""
    ending = f" ENGINE = {storage_engine}" if storage_engine else ""
    part = (
        "n + 1",
        _one_of(_drawn("brand"), _BRANDS),
        f"1 + {_drawn('size')} % 50",
        _one_of(_drawn("container"), _CONTAINERS),
    )
    line = (
        "n + 1",
        f"1 + n % {PARTS}",
        f"1 + {_drawn('quantity')} % 50",
        f"1000 + {_drawn('price')} % 90000",
        f"{_drawn('discount')} % 11",
        _one_of(_drawn("mode"), _MODES),
        _one_of(_drawn("instruct"), _INSTRUCTIONS),
    )
    return (
        f"DROP DATABASE IF EXISTS {DATABASE}",
        # The character set decides how wide a key is and so what EXPLAIN says.
        f"CREATE DATABASE {DATABASE} DEFAULT CHARACTER SET latin1",
        USE,
        _PART + ending,
        _LINEITEM + ending,
        _filling("part", part, PARTS),
        _filling("lineitem", line, PARTS * LINES_OF_A_PART),
        "ANALYZE TABLE part, lineitem",
    )


def _filling(table: str, columns: Sequence[str], rows: int) -> str:
    """Return the statement that fills a table with so many rows."""
    listed = ", ".join(columns)
    return f"INSERT INTO {table} SELECT {listed} FROM ({_numbers(rows)}) AS numbers"  # noqa: S608  our own words


def _branch(brand: str, containers: str, quantity: int, size: int) -> str:
    return (
        f"(p_brand = '{brand}' AND p_container IN ({containers}) "
        f"AND l_quantity BETWEEN {quantity} AND {quantity + 10} "
        f"AND p_size BETWEEN 1 AND {size} "
        "AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')"
    )


#: TPC-H's question 19 with the index of the field's test of index condition pushdown: the index
#: holds all that is asked of a line but its price.
_Q19: Final = (
    "SELECT COUNT(*), SUM(l_extendedprice * (100 - l_discount)) "
    "FROM part STRAIGHT_JOIN lineitem FORCE INDEX (i_l_partkey) "
    "ON l_partkey = p_partkey WHERE "
    + " OR ".join(
        (
            _branch("Brand#12", "'SM CASE', 'SM BOX'", 1, 15),
            _branch("Brand#23", "'MED BAG', 'MED BOX'", 10, 25),
            _branch("Brand#34", "'LG CASE', 'LG BOX'", 20, 40),
        )
    )
)

CASES: Final = (
    Case(
        name="q19-index-condition",
        statement=_Q19,
        shows="conditions on index columns are checked before the row is read",
    ),
    Case(
        name="range-of-an-index",
        statement="SELECT COUNT(*), SUM(l_discount) FROM lineitem "
        "FORCE INDEX (i_l_partkey) WHERE l_partkey BETWEEN 100 AND 120 AND l_shipmode = 'AIR'",
        shows="a range reads its own entries and not more",
    ),
    Case(
        name="minimum-by-index",
        statement="SELECT MIN(l_partkey), MAX(l_partkey) FROM lineitem",
        shows="the ends of an index are looked up and not searched",
    ),
    Case(
        name="order-by-index",
        statement="SELECT l_partkey, l_quantity FROM lineitem "
        "FORCE INDEX (i_l_partkey) ORDER BY l_partkey, l_quantity LIMIT 10",
        shows="an index that has the order is read in that order, as far as the limit goes",
    ),
    Case(
        name="group-by-index",
        statement="SELECT COUNT(*) FROM (SELECT l_partkey, COUNT(*) FROM lineitem "
        "GROUP BY l_partkey) AS counted",
        shows="groups come out of the index and are not gathered in a temporary table",
    ),
    Case(
        name="point-query",
        statement="SELECT COUNT(c) FROM sbtest.sbtest1 WHERE id = 77",
        shows="one row costs one look-up",
        needs=DatasetKind.SYSBENCH,
        rows_min=100,
    ),
    Case(
        name="random-points",
        statement="SELECT COUNT(c) FROM sbtest.sbtest1 WHERE id IN (3, 14, 15, 92, 65, 35)",
        shows="a list of ids costs one look-up each",
        needs=DatasetKind.SYSBENCH,
        rows_min=100,
    ),
    Case(
        name="range-covered-pk",
        statement="SELECT COUNT(id) FROM sbtest.sbtest1 WHERE id BETWEEN 11 AND 60",
        shows="a range of ids reads its rows once",
        needs=DatasetKind.SYSBENCH,
        rows_min=100,
    ),
    Case(
        name="scan",
        statement="SELECT COUNT(*) FROM sbtest.sbtest1 WHERE LENGTH(c) < 0",
        shows="a scan reads every row once",
        needs=DatasetKind.SYSBENCH,
    ),
)


def cases_for(kind: DatasetKind | None, rows: int) -> tuple[Case, ...]:
    """Return the cases that can be asked of a server with this dataset."""
    return tuple(
        case
        for case in CASES
        if case.needs is None or (case.needs is kind and rows >= case.rows_min)
    )


#: Columns of a traditional EXPLAIN by how many there are: MariaDB and MySQL 5.6, MySQL since 5.7.
_SELECT_TYPE, _TABLE = 1, 2
_COLUMNS: Final = {
    10: {"access": 3, "key": 5, "key_length": 6, "reference": 7, "extra": 9},
    12: {"access": 4, "key": 6, "key_length": 7, "reference": 8, "extra": 11},
}


def plan_lines(rows: Sequence[Sequence[str]]) -> tuple[PlanLine, ...]:
    """Return the decisions of a traditional EXPLAIN; what has other columns is left out."""
    found = []
    for row in rows:
        columns = _COLUMNS.get(len(row))
        if columns is not None:
            chosen = {name: row[at] for name, at in columns.items()}
            found.append(PlanLine(select=row[_SELECT_TYPE], table=row[_TABLE], **chosen))
    return tuple(found)


def differences(
    baseline: Sequence[ExactCase], candidate: Sequence[ExactCase]
) -> tuple[Difference, ...]:
    """Return everything in which two servers differ, by case; nothing where they work alike.

    Compared are cases and counters that both have: a counter that one version does not know says
    nothing about work. Estimates in a plan are not compared, they are drawn from samples.
    """
    theirs = {case.name: case for case in candidate}
    found: list[Difference] = []
    for case in baseline:
        other = theirs.get(case.name)
        if other is None:
            continue
        if case.answer != other.answer:
            found.append(
                _difference(case.name, "answer", _shown(case.answer), _shown(other.answer))
            )
        if case.plan != other.plan:
            found.append(_difference(case.name, "plan", case.explained, other.explained))
        found += [
            _difference(case.name, name, str(count), str(other.counters[name]))
            for name, count in sorted(case.counters.items())
            if other.counters.get(name, count) != count
        ]
    return tuple(found)


def _difference(case: str, what: str, baseline: str, candidate: str) -> Difference:
    return Difference(case=case, what=what, baseline=baseline, candidate=candidate)


def _shown(answer: Sequence[Sequence[str]]) -> str:
    return "; ".join(", ".join(row) for row in answer)
