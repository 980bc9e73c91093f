"""The verb `forkwatch export`: samples of a fork from the service's store into a file.

The file is the product; what was written is said on stderr. Exit status: 0 fine, 2 misuse.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from forkwatch.arguments import HomeFolder
from forkwatch.errors import DoorError
from forkwatch.streams import err

if TYPE_CHECKING:
    from collections.abc import Iterator

#: More runs than any store has; an export from the shell is not bounded otherwise.
RUNS_MAX: Final = 10_000_000
_STANDARD_OUTPUT: Final = "-"

OutFile = Annotated[
    Path, typer.Option("--out", help="Where to; what is there is replaced. - is standard output.")
]


def export(
    *,
    fork: Annotated[str, typer.Option("--fork", help="Name of the fork.")],
    out: OutFile,
    form: Annotated[str, typer.Option("--format", help="csv or parquet.")] = "csv",
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="Only these; may be given several times."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="Only this, such as throughput_ops_s.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Only of runs stored since, such as 2026-11-01."),
    ] = None,
    home: HomeFolder = None,
) -> None:
    """Write a fork's samples, raw and one in each row, into a CSV or Parquet file."""
    from forkwatch.open_store import opened_store
    from service.core.settings import load_settings
    from service.flows.exports import ExportFormat, export_of
    from service.store.exports import SampleChoice

    formats = {one.value: one for one in ExportFormat}
    if form not in formats:
        raise typer.BadParameter(f"no format {form!r}; there are {', '.join(formats)}")
    choice = SampleChoice(
        fork=fork, workloads=tuple(workload or ()), metric=metric, since=_moment(since)
    )
    with opened_store(load_settings(home=home)) as database:
        found = export_of(database, choice, runs_max=RUNS_MAX)
        _write(found.pieces(formats[form]), out)
    err.print(
        f"wrote the samples of {len(found.runs)} runs of {fork} to {out}",
        markup=False,
        highlight=False,
    )


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"--since {text!r} is no time; write it as 2026-11-01 or 2026-11-01T06:30:00+00:00"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _write(pieces: Iterator[bytes], out: Path) -> None:
    """Write a file so that whoever reads it meets the old one or the new one, whole."""
    if str(out) == _STANDARD_OUTPUT:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    if not out.parent.is_dir():
        raise DoorError(f"there is no folder {out.parent} to write into")
    handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
            os.fchmod(file.fileno(), 0o644)
        Path(name).replace(out)
    except BaseException:
        Path(name).unlink()
        raise
