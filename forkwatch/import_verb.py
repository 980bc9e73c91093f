"""The verbs `forkwatch import ...`: histories that were measured elsewhere, into the store.

Everything is read and checked before anything is stored, in one transaction. What was imported is
said on stdout, what was left out on stderr. Exit status: 0 fine, 2 misuse.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from forkwatch.arguments import HomeFolder
from forkwatch.errors import DoorError
from forkwatch.streams import err, out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.flows.imports import Destination, ImportedRun

imports = typer.Typer(
    help="Take in what was measured elsewhere: CSV histories, sysbench outputs.",
    no_args_is_help=True,
)

_STANDARD_INPUT: Final = "-"
#: Names of what is left out that are told; the first few say what is wrong with all.
_NAMES_SHOWN: Final = 5

ForkName = Annotated[
    str, typer.Option("--fork", help="Name to keep it under; not that of a watched fork.")
]
BranchName = Annotated[str, typer.Option("--branch", help="Branch that the commits are of.")]
BuildName = Annotated[str, typer.Option("--build", help="What the build is called.")]
HostClass = Annotated[
    str | None,
    typer.Option("--host-class", help="Machine it was measured on; kept as imported-NAME."),
]
Folder = Annotated[Path, typer.Argument(help="Folder with a file for each workload.")]


@imports.command(name="csv")
def import_csv(
    file: Annotated[str, typer.Argument(help="A CSV file; - is standard input.")],
    *,
    fork: ForkName,
    branch: BranchName = "main",
    workload: Annotated[
        str | None,
        typer.Option("--workload", help="Of all values, where the file has no such column."),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            help="What the values are: throughput_ops_s, s_per_op, ms_per_op or us_per_op.",
        ),
    ] = "throughput_ops_s",
    build: BuildName = "imported",
    config: Annotated[
        str, typer.Option("--config", help="What the server's config is called.")
    ] = "default",
    host_class: HostClass = None,
    home: HomeFolder = None,
) -> None:
    """Import a history with the columns commit, time, value and perhaps start and workload."""
    from forkwatch.import_csv import METRICS, left_out, read_history
    from service.flows.imports import Destination

    if metric not in METRICS:
        raise typer.BadParameter(f"no metric {metric!r}; there are {', '.join(METRICS)}")
    data = _read(file)
    try:
        found = read_history(data, workload=workload, metric=metric)
    except DoorError as error:
        raise DoorError(f"{file}: {error}") from error
    _say_left_out("columns", left_out(data))
    to = Destination(
        fork=fork,
        branch=branch,
        host_class=_host_class(host_class, "csv"),
        build=build,
        config=config,
        source="standard input" if file == _STANDARD_INPUT else Path(file).name,
    )
    _store(found, to, home)


@imports.command(name="sysbench")
def import_sysbench(
    folder: Folder,
    *,
    fork: ForkName,
    branch: BranchName = "main",
    commit: Annotated[
        str | None,
        typer.Option("--commit", help="Hash or name of the commit; the folder's name if absent."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="When it was committed; that of the newest file if absent."),
    ] = None,
    build: BuildName = "imported",
    config: Annotated[
        str | None,
        typer.Option("--config", help="Config of server and client; threads-N if absent."),
    ] = None,
    host_class: HostClass = None,
    home: HomeFolder = None,
) -> None:
    """Import a folder of sysbench outputs, each named by its workload, as one commit's run."""
    from forkwatch.import_folder import read_folder
    from service.flows.imports import Destination

    found = read_folder(folder, label=commit, at=_moment(time))
    if time is None:
        err.print(
            f"time of the commit: {found.run.at:%Y-%m-%d %H:%M} UTC, that of the newest file",
            markup=False,
            highlight=False,
        )
    _say_left_out("files", found.left_out)
    to = Destination(
        fork=fork,
        branch=branch,
        host_class=_host_class(host_class, "sysbench"),
        build=build,
        # Runs with other numbers of clients are no history of each other.
        config=config or f"threads-{found.run.threads}",
        source=folder.resolve().name,
    )
    _store([found.run], to, home)


def _store(found: Sequence[ImportedRun], to: Destination, home: Path | None) -> None:
    from forkwatch.open_store import opened_store
    from service.core.clock import SystemClock
    from service.core.settings import load_settings
    from service.flows.imports import import_runs

    with opened_store(load_settings(home=home)) as database, database.writing() as session:
        done = import_runs(session, found, to, at=SystemClock().now())
    there = f"; {done.known} were there already" if done.known else ""
    out.print(
        f"imported {len(done.added)} commits into fork {to.fork}, host class {to.host_class}"
        f"{there}",
        markup=False,
        highlight=False,
    )


def _host_class(name: str | None, kind: str) -> str:
    """Return the host class, marked so that it is never that of a measured series."""
    from service.flows.imports import HOST_CLASS_PREFIX

    chosen = name or kind
    return chosen if chosen.startswith(HOST_CLASS_PREFIX) else f"{HOST_CLASS_PREFIX}{chosen}"


def _read(file: str) -> bytes:
    from forkwatch.csv_sheet import TEXT_BYTES_MAX

    # One byte more than may be read says that there is too much.
    if file == _STANDARD_INPUT:
        return sys.stdin.buffer.read(TEXT_BYTES_MAX + 1)
    try:
        with Path(file).open("rb") as stream:
            return stream.read(TEXT_BYTES_MAX + 1)
    except OSError as error:
        raise DoorError(f"{file} cannot be read: {error.strerror}") from error


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"--time {text!r} is no time; write it as 2026-11-01 or 2026-11-01T06:30:00+00:00"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _say_left_out(what: str, names: Sequence[str]) -> None:
    if not names:
        return
    more = len(names) - _NAMES_SHOWN
    told = ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    err.print(f"{what} left out: {told}", markup=False, highlight=False)
