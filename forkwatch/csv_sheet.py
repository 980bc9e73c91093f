"""CSV text as a sheet: rows of equal length with the names of their columns.

Comma, semicolon, tab or bar between cells, header or none, whatever line ends and byte-order mark.
What cannot be read is refused with its line and what to do. Which column means what is not known.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from forkwatch.errors import DoorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Text and cells are held in memory, the cells at about ten times the size of the text.
TEXT_BYTES_MAX: Final = 64 * 1024 * 1024

#: In this order: a comma is also what stands in decimals and in prose.
_DELIMITERS: Final = "\t;|,"
#: Lines looked at to find the delimiter.
_SNIFFED_LINES: Final = 20
_MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?"})
#: Excel writes decimal commas where the list separator is a semicolon.
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class SeriesFileError(DoorError):
    """A file of series cannot be read; the message names the line and says what to do."""


class Row(NamedTuple):
    """One row of cells."""

    #: Line of the file where it begins, counted from 1.
    line: int
    cells: list[str]


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """Rows of equal length with the names of their columns."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    delimiter: str
    #: Whether the first line held the names; else they are `column 1` and so on.
    named: bool

    def cells(self, column: int) -> list[str]:
        """Return one column."""
        return [row.cells[column] for row in self.rows]


def _decoded(data: bytes) -> str:
    if not data.strip():
        raise SeriesFileError(
            "the file is empty: give one value per line, or columns with a header"
        )
    if len(data) > TEXT_BYTES_MAX:
        raise SeriesFileError(
            f"{len(data) / 2**20:.0f} MiB of text; at most {TEXT_BYTES_MAX // 2**20} are read, "
            "since all of it is held in memory. Cut the file into shorter stretches of history"
        )
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SeriesFileError(
            f"line {line} is not UTF-8 text: save the file as CSV in UTF-8"
        ) from error


def read_sheet(data: bytes) -> Sheet:
    """Read a whole file.

    Raises:
        SeriesFileError: There is nothing in it, or it is no CSV.
    """
    text = _decoded(data)
    delimiter = _delimiter(text)
    rows = list(_rows(text, delimiter))
    while rows and not any(cell.strip() for cell in rows[-1].cells):
        rows.pop()
    if not rows:
        raise SeriesFileError("the file holds no cell: give one value per line, or columns")
    width = max(len(rows[0].cells), 1)
    named = _is_header(rows[0].cells, delimiter)
    names = _names(rows[0].cells) if named else tuple(f"column {n + 1}" for n in range(width))
    body = rows[1:] if named else rows
    if width > 1:
        # A line without any cell is layout; in a single column it is a commit without a value.
        body = [row for row in body if any(map(str.strip, row.cells))]
    if not body:
        raise SeriesFileError(
            f"there is only a header ({listed(names)}): the lines below it hold the values"
        )
    return Sheet(
        names=names,
        rows=tuple(_squared(row, width) for row in body),
        delimiter=delimiter,
        named=named,
    )


def _rows(text: str, delimiter: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise SeriesFileError(f"line {line} cannot be read as CSV: {error}") from error
        yield Row(line, cells or [""])
        line = reader.line_num + 1


def _squared(row: Row, width: int) -> Row:
    """Give a row the width of the header; what is missing at its end is empty."""
    cells = row.cells
    if len(cells) == width:
        return row
    while len(cells) > width and not cells[-1].strip():
        cells = cells[:-1]
    if len(cells) > width:
        raise SeriesFileError(
            f"line {row.line} has {len(cells)} cells where the first line has {width}: "
            "put quotes around cells that hold the delimiter"
        )
    return Row(row.line, cells + [""] * (width - len(cells)))


def _delimiter(text: str) -> str:
    """Return the first that stands in each of the first lines, else in the header."""
    lines = [line for line in text[:1_000_000].splitlines()[:_SNIFFED_LINES] if line.strip()]
    widths = {
        delimiter: [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        for delimiter in _DELIMITERS
    }
    everywhere = [delimiter for delimiter, found in widths.items() if min(found, default=1) > 1]
    at_first = [delimiter for delimiter, found in widths.items() if found and found[0] > 1]
    return (everywhere + at_first + [","])[0]


def _is_header(cells: Sequence[str], delimiter: str) -> bool:
    """Whether the first line holds names: some text, and nothing else."""
    words = [cell for cell in cells if cell.strip()]
    return bool(words) and all(number_in(word, delimiter) is None for word in words)


def _names(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns, each of them once."""
    plain = [cell.strip() or f"column {number}" for number, cell in enumerate(cells, start=1)]
    return tuple(
        name if plain.count(name) == 1 else f"{name} (column {number})"
        for number, name in enumerate(plain, start=1)
    )


def number_in(cell: str, delimiter: str) -> float | None:
    """Return the number in a cell, NaN where it is missing, None where it is text."""
    try:
        # First, because nearly every cell of a long file is a plain number.
        number = float(cell)
    except ValueError:
        word = cell.strip()
        if word.lower() in _MISSING:
            return math.nan
        if delimiter != "," and _DECIMAL_COMMA.fullmatch(word):
            return float(word.replace(",", "."))
        return None
    # Python reads 1_000; nobody who writes a CSV file means that.
    return None if "_" in cell else number


def listed(names: Sequence[str]) -> str:
    """Return the first names, quoted, for a message."""
    shown = [repr(name) for name in names[:12]]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more
