"""The series in a CSV file: which columns were measured, and what each row is called.

A file comes in as bytes, columns of positive numbers with labels go out. An empty cell is a commit
that was not measured. Anything that cannot be a measurement is refused with its line and what to
do; nothing is guessed away. It knows nothing of statistics.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from forkwatch.csv_sheet import SeriesFileError, listed, number_in, read_sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkwatch.csv_sheet import Sheet

#: Nobody reads a report on more columns; `--column` chooses.
COLUMNS_MAX: Final = 50
#: Rows that tell whether a column holds numbers or text.
ROWS_TO_TELL: Final = 1000

_LABEL_NAME: Final = re.compile(
    r"(?i)(?:.*[\W_])?(?:commit|sha|hash|rev|revision|date|day|datetime|timestamp|time|version|tag|"
    r"build|run|id|index|label|name)(?:[\W_].*)?"
)
#: The best of several label columns is the one that names a commit, then a time.
_LABEL_ORDER: Final = ("commit", "sha", "hash", "rev", "tag", "version", "date", "day", "time")


@dataclass(frozen=True, kw_only=True)
class Series:
    """One column of numbers in time order; NaN is a commit that was not measured."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class SeriesFile:
    """What a file holds, as far as it was asked for."""

    series: tuple[Series, ...]
    #: Line of the file where each row begins, counted from 1.
    lines: tuple[int, ...]
    #: One label per row, and what they are called; empty when no column is one.
    labels: tuple[str, ...]
    label_name: str
    #: What was left out and why.
    warnings: tuple[str, ...]


def read_series(data: bytes, *, column: str | None = None) -> SeriesFile:
    """Read the numeric columns of a CSV file, or the one asked for.

    Args:
        data: The whole file.
        column: Name of a column, or its number counted from 1; every numeric column if absent.

    Raises:
        SeriesFileError: Nothing to read, or something that is no measurement.
    """
    sheet = read_sheet(data)
    numeric = [index for index in range(len(sheet.names)) if _is_numeric(sheet, index)]
    labels = _label_columns(sheet, numeric)
    warnings: list[str] = []
    if column is not None:
        chosen = [_find_column(sheet, column)]
        labels = [index for index in labels if index not in chosen]
        series = [_read_column(sheet, index) for index in chosen]
    else:
        chosen = [index for index in numeric if index not in labels]
        if not chosen:
            raise SeriesFileError(
                f"no column of numbers to look at; the columns are {listed(sheet.names)}. "
                "Choose one with --column"
            )
        if len(chosen) > COLUMNS_MAX:
            raise SeriesFileError(
                f"{len(chosen)} columns of numbers, and at most {COLUMNS_MAX} are looked at at "
                "once: choose one with --column"
            )
        series, warnings = _read_columns(sheet, chosen)
    label = _best_label(sheet, labels)
    return SeriesFile(
        series=tuple(series),
        lines=tuple(row.line for row in sheet.rows),
        labels=tuple(cell.strip() for cell in sheet.cells(label)) if label is not None else (),
        label_name=sheet.names[label] if label is not None else "",
        warnings=tuple(warnings),
    )


def _is_numeric(sheet: Sheet, column: int) -> bool:
    """Whether at least half of what is there are numbers: the rest is then an error, not text."""
    some = sheet.rows[:ROWS_TO_TELL]
    found = [number_in(row.cells[column], sheet.delimiter) for row in some]
    there = [number for number in found if number is None or not math.isnan(number)]
    if not there and len(sheet.rows) > len(some):
        # Measured only later on; the whole column decides.
        return any(number_in(cell, sheet.delimiter) for cell in sheet.cells(column) if cell.strip())
    return bool(there) and 2 * sum(number is not None for number in there) >= len(there)


def _label_columns(sheet: Sheet, numeric: Sequence[int]) -> list[int]:
    """Return the columns that say which commit a row is, rather than what was measured."""
    found = []
    for column, name in enumerate(sheet.names):
        called = _LABEL_NAME.fullmatch(name) is not None or not sheet.named
        if column not in numeric:
            if any(map(str.strip, sheet.cells(column))):
                found.append(column)
        elif called and len(sheet.names) > 1:
            # "time" may be a run time: numbers are a label only if they count upwards.
            numbers = [number_in(cell, sheet.delimiter) for cell in sheet.cells(column)]
            if _counts_up(numbers, by=None if sheet.named else 1.0):
                found.append(column)
    return found


def _counts_up(numbers: Sequence[float | None], *, by: float | None) -> bool:
    """Whether every number is above the one before, by exactly `by` if that is given."""
    known = [number for number in numbers if number is not None]
    if len(known) != len(numbers) or len(known) < 2:  # noqa: PLR2004  one number has no direction
        return False
    steps = [after - before for before, after in itertools.pairwise(known)]
    return all(step > 0 if by is None else step == by for step in steps)


def _best_label(sheet: Sheet, columns: Sequence[int]) -> int | None:
    def rank(column: int) -> int:
        name = sheet.names[column].lower()
        return next(
            (place for place, word in enumerate(_LABEL_ORDER) if word in name), len(_LABEL_ORDER)
        )

    return min(columns, key=rank, default=None)


def _find_column(sheet: Sheet, wanted: str) -> int:
    """Return the place of a column by its name, its name in other case, or its number."""
    name = wanted.strip()
    if name in sheet.names:
        return sheet.names.index(name)
    alike = [place for place, one in enumerate(sheet.names) if one.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    if name.isdecimal() and 1 <= int(name) <= len(sheet.names):
        return int(name) - 1
    near = difflib.get_close_matches(name, sheet.names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise SeriesFileError(f"no column {name!r}; there are {listed(sheet.names)}{hint}")


def _read_columns(sheet: Sheet, columns: Sequence[int]) -> tuple[list[Series], list[str]]:
    """Read several columns; one that cannot be a measurement is left out if others can."""
    series: list[Series] = []
    refused: list[SeriesFileError] = []
    for column in columns:
        try:
            series.append(_read_column(sheet, column))
        except SeriesFileError as error:
            refused.append(error)
    if not series:
        raise refused[0]
    return series, [f"left out: {error}" for error in refused]


def _read_column(sheet: Sheet, column: int) -> Series:
    name = sheet.names[column]
    values = []
    for row in sheet.rows:
        number = number_in(row.cells[column], sheet.delimiter)
        if number is not None and (0 < number < math.inf or math.isnan(number)):
            values.append(number)
            continue
        where = f"line {row.line}, column {name!r}"
        if number is None:
            raise SeriesFileError(
                f"{where}: {row.cells[column].strip()[:40]!r} is not a number; write plain digits, "
                "and leave the cell empty where a commit was not measured"
            )
        if math.isinf(number):
            raise SeriesFileError(
                f"{where}: infinite; leave the cell empty where a commit was not measured"
            )
        raise SeriesFileError(
            f"{where}: {number:g} is not above zero, and a change is a ratio of two levels; "
            "leave the cell empty where a run failed"
        )
    if all(math.isnan(value) for value in values):
        raise SeriesFileError(f"column {name!r} holds no number at all")
    return Series(name=name, values=tuple(values))
