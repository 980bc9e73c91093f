"""Exporting samples: a choice of samples comes in, pieces of a CSV or Parquet file go out.

A file is made a few runs at a time, each from a short transaction of its own. Nothing is judged,
rounded or left out: these are the raw numbers that verdicts are made from.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from service.core.errors import NotFoundError, ServiceError
from service.store import exports, forks
from service.store.exports import SampleLine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from service.store.database import Database
    from service.store.exports import SampleChoice

#: Runs of one piece: a run of 42 workloads has some thousand samples, so a piece has some ten
#: thousand, which is a row group that readers of Parquet like.
RUNS_OF_A_PIECE: Final = 5
#: What a spreadsheet may take for a formula at the beginning of a cell, as OWASP lists it.
_FORMULA_BEGINS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
#: Columns that are no text.
_TIMES: Final = frozenset({"committed_at", "measured_at", "stored_at"})
_COUNTS: Final = frozenset({"start", "sequence"})


class ExportTooLargeError(ServiceError):
    """More was asked for than is given at once."""

    status = 422


class ExportFormat(StrEnum):
    """What an export can be written as."""

    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True, kw_only=True)
class SampleExport:
    """An export that is about to be written: its runs are known, its samples not yet read."""

    database: Database
    choice: SampleChoice
    runs: tuple[str, ...]

    def pieces(self, form: ExportFormat) -> Iterator[bytes]:
        """Yield the file from its beginning to its end."""
        return _parquet(self._lines()) if form is ExportFormat.PARQUET else _csv(self._lines())

    def _lines(self) -> Iterator[list[SampleLine]]:
        for begin in range(0, len(self.runs), RUNS_OF_A_PIECE):
            with self.database.reading() as session:
                runs = self.runs[begin : begin + RUNS_OF_A_PIECE]
                found = exports.lines(session, self.choice, runs)
            yield found


def export_of(database: Database, choice: SampleChoice, *, runs_max: int) -> SampleExport:
    """Return the export of a choice of samples.

    Raises:
        NotFoundError: There is no such fork.
        ExportTooLargeError: It is of more than `runs_max` runs.
    """
    with database.reading() as session:
        if forks.find(session, choice.fork) is None:
            raise NotFoundError(f"there is no fork {choice.fork!r}")
        runs = exports.run_ids(session, choice, limit=runs_max + 1)
    if len(runs) > runs_max:
        raise ExportTooLargeError(
            f"this is about more than {runs_max} runs; ask for fewer with since or branch, or "
            "write all of them with `forkwatch export` on the service's machine"
        )
    return SampleExport(database=database, choice=choice, runs=tuple(runs))


def _csv(pieces: Iterator[list[SampleLine]]) -> Iterator[bytes]:
    yield _csv_text([SampleLine._fields])
    for piece in pieces:
        yield _csv_text([[_cell(value) for value in line] for line in piece])


def _csv_text(rows: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cell(value: object) -> object:
    """Return what stands in a cell; text that a spreadsheet would run begins with an apostrophe."""
    if isinstance(value, str) and value.startswith(_FORMULA_BEGINS):
        return f"'{value}"
    if isinstance(value, datetime):
        return value.isoformat()
    # Seventeen digits, so that reading it again gives the same number.
    return repr(value) if isinstance(value, float) else value


def _parquet(pieces: Iterator[list[SampleLine]]) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415  half a second that only this format should cost
    from pyarrow import parquet  # noqa: PLC0415  as above

    types: dict[str, Any] = {
        name: pa.timestamp("us", tz="UTC")
        if name in _TIMES
        else pa.int32()
        if name in _COUNTS
        else pa.float64()
        if name == "value"
        else pa.string()
        for name in SampleLine._fields
    }
    schema = pa.schema(list(types.items()))
    outbox = _Outbox()
    # A file without rows has its columns still.
    with parquet.ParquetWriter(outbox, schema, compression="zstd") as writer:
        for piece in pieces:
            columns: list[Any] = list(zip(*piece, strict=True)) or [[] for _ in types]
            arrays = [
                pa.array(column, type=kind)
                for column, kind in zip(columns, types.values(), strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            written = outbox.taken()
            if written:
                yield written
    # The footer, without which it is no file.
    yield outbox.taken()


class _Outbox(io.RawIOBase):
    """A file that is handed on piece by piece; nobody goes back in it."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        return len(piece)

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
