"""A history of measurements in a CSV file: bytes come in, imported runs go out.

Columns `commit`, `time` and `value`, and where they are there `start` and `workload`. Everything is
read before anything is stored; what cannot be a measurement is refused with its line.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from forkwatch.csv_sheet import SeriesFileError, listed, number_in, read_sheet
from results.metric import THROUGHPUT
from results.slice import SideName, Slice
from service.flows.imports import ImportedRun
from workloads.catalog import find_workload
from workloads.errors import UnknownWorkloadError

if TYPE_CHECKING:
    from forkwatch.csv_sheet import Row, Sheet

#: What a value can be beside operations per second: the time of one, with how many fit a second.
_PER_OPERATION: Final = {"s_per_op": 1.0, "ms_per_op": 1e3, "us_per_op": 1e6}
#: Whatever it was, it is kept as throughput.
METRICS: Final = (THROUGHPUT.name, *_PER_OPERATION)
#: Values of one file: they are held in memory, each as a slice.
VALUES_MAX: Final = 200_000
_NAME_LENGTH_MAX: Final = 200
#: Less than an operation in thirty years, or more than a million billion in a second, is no rate.
_OPS_S_MIN: Final = 1e-9
_OPS_S_MAX: Final = 1e15
#: Nobody measured databases before, and what is after is a slip of the hand.
_YEARS: Final = range(1970, 2200)
#: Eight digits are a day and nine or more are seconds since 1970.
_EPOCH_DIGITS_MIN: Final = 9
_NEEDED: Final = ("commit", "time", "value")
_OPTIONAL: Final = ("start", "workload")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One row of the file."""

    label: str
    at: datetime
    #: Name of a server start; empty where each row is its own.
    start: str
    workload: str
    ops_s: float


def read_history(data: bytes, *, workload: str | None, metric: str) -> list[ImportedRun]:
    """Return the runs in a CSV file, one for each commit, in the order they first come.

    Args:
        data: The whole file.
        workload: Of all rows; None where the file has a column of that name.
        metric: What the values are, one of `METRICS`.

    Raises:
        SeriesFileError: Something is no measurement; names the line.
    """
    sheet = read_sheet(data)
    columns = _columns(sheet, workload)
    if len(sheet.rows) > VALUES_MAX:
        raise SeriesFileError(
            f"{len(sheet.rows)} rows; at most {VALUES_MAX} are imported at once. Cut the file into "
            "stretches and import the oldest first"
        )
    commits: dict[str, list[Measured]] = defaultdict(list)
    for row in sheet.rows:
        one = _measured(row, columns, sheet, workload=workload, metric=metric)
        if one is not None:
            commits[one.label].append(one)
    return [_run(label, rows) for label, rows in commits.items()]


def left_out(data: bytes) -> list[str]:
    """Return the names of columns that an import does not look at."""
    names = read_sheet(data).names
    return [name for name in names if name.strip().lower() not in {*_NEEDED, *_OPTIONAL}]


def own_name(name: str) -> str:
    """Return the name that a workload's series are kept under; others keep theirs."""
    try:
        return find_workload(name).name
    except UnknownWorkloadError:
        return name


def _columns(sheet: Sheet, workload: str | None) -> dict[str, int]:
    """Return the place of each column that is there."""
    places = {name.strip().lower(): place for place, name in enumerate(sheet.names)}
    missing = [name for name in _NEEDED if name not in places]
    if not sheet.named or missing:
        raise SeriesFileError(
            f"no column {(missing or _NEEDED)[0]!r}; there are {listed(sheet.names)}. The first "
            "line has to name the columns: commit,time,value and, where wanted, start and workload"
        )
    if workload is None and "workload" not in places:
        raise SeriesFileError("say --workload, or give the file a column 'workload'")
    if workload is not None and "workload" in places:
        raise SeriesFileError("the file has a column 'workload': leave --workload out")
    return {name: places[name] for name in (*_NEEDED, *_OPTIONAL) if name in places}


def _measured(
    row: Row, columns: dict[str, int], sheet: Sheet, *, workload: str | None, metric: str
) -> Measured | None:
    """Return what a row measured; None where its commit was not."""

    def cell(name: str) -> str:
        return row.cells[columns[name]].strip() if name in columns else ""

    label, name = cell("commit"), workload or cell("workload")
    for text, what in ((label, "commit"), (name, "workload")):
        if not text or len(text) > _NAME_LENGTH_MAX or not text.isprintable():
            raise SeriesFileError(f"line {row.line}: {text[:40]!r} is no name of a {what}")
    value = number_in(cell("value"), sheet.delimiter)
    if value is not None and math.isnan(value):
        return None
    if value is None or not 0 < value < math.inf:
        raise SeriesFileError(
            f"line {row.line}: the value {cell('value')[:40]!r} is not a number above zero; leave "
            "the cell empty where a commit was not measured"
        )
    ops_s = _PER_OPERATION[metric] / value if metric in _PER_OPERATION else value
    if not _OPS_S_MIN < ops_s < _OPS_S_MAX:
        raise SeriesFileError(f"line {row.line}: {cell('value')[:40]!r} is no {metric}")
    return Measured(
        label=label,
        at=_moment(cell("time"), line=row.line),
        start=cell("start"),
        workload=own_name(name),
        ops_s=ops_s,
    )


def _moment(text: str, *, line: int) -> datetime:
    moment: datetime | None
    try:
        if text.isdecimal() and len(text) >= _EPOCH_DIGITS_MIN:
            moment = datetime.fromtimestamp(int(text), tz=UTC)
        else:
            moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        moment = None
    if moment is None or moment.year not in _YEARS:
        raise SeriesFileError(
            f"line {line}: {text[:40]!r} is no time; write it as 2026-11-03, "
            "2026-11-03T06:30:00+00:00, or seconds since 1970"
        )
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _run(label: str, rows: list[Measured]) -> ImportedRun:
    """Return the rows of a commit as starts: by their column, or each row its own."""
    starts: dict[str, list[Measured]] = defaultdict(list)
    rows_of: dict[str, int] = defaultdict(int)
    for row in rows:
        rows_of[row.workload] += 1
        # Without a column the n-th row of every workload stands for one start.
        starts[row.start or f"\x1f{rows_of[row.workload]}"].append(row)
    return ImportedRun(
        label=label,
        at=min(row.at for row in rows),
        starts=tuple(
            tuple(_slice(row, sequence) for sequence, row in enumerate(found))
            for found in starts.values()
        ),
    )


def _slice(row: Measured, sequence: int) -> Slice:
    """Return a rate as a slice: one second of it, or one operation where that takes longer.

    How long it was measured is not in the file, and nothing is weighted by it.
    """
    seconds = max(1.0, 1 / row.ops_s)
    return Slice(
        workload=row.workload,
        side=SideName.CANDIDATE,
        sequence=sequence,
        started_at=row.at,
        seconds=seconds,
        operations=max(1, round(row.ops_s * seconds)),
        throughput_ops_s=row.ops_s,
    )
