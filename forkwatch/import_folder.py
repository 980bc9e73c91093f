"""A folder of sysbench outputs: files come in, one imported run goes out.

Each file is one workload of one server start, and is named by them: `scan.txt`, or `scan.2.txt` for
the second start. A file that sysbench did not print is left out and named; one that it did, and in
which a run failed, is refused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from forkwatch.errors import DoorError
from forkwatch.import_csv import own_name
from results.slice import PER_SECOND_MAX, Latency, SideName, Slice
from service.flows.imports import ImportedRun
from workloads.sysbench_output import SysbenchOutputError, is_sysbench, read_output

if TYPE_CHECKING:
    from pathlib import Path

    from workloads.sysbench_output import SysbenchOutput

#: A suite of 42 workloads and forty starts.
FILES_MAX: Final = 2_000
#: An hour of reports by second with a histogram has about half a megabyte.
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
_ENDING: Final = re.compile(r"\.(?:txt|log|out)$", re.IGNORECASE)
_START: Final = re.compile(r"(?P<workload>.+?)\.(?:start-?)?(?P<start>\d{1,4})")
_NAME_LENGTH_MAX: Final = 200


@dataclass(frozen=True, kw_only=True)
class Folder:
    """What a folder holds."""

    run: ImportedRun
    #: Names of files that sysbench did not print.
    left_out: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _File:
    path: Path
    workload: str
    start: int
    output: SysbenchOutput


def read_folder(folder: Path, *, label: str | None, at: datetime | None) -> Folder:
    """Return the run in a folder of sysbench outputs.

    Args:
        folder: The folder; only the files that lie in it directly are looked at.
        label: The commit; the folder's name if absent.
        at: When it was committed; the time of the newest file if absent.

    Raises:
        DoorError: There is nothing of sysbench's, or a file cannot be read; names it.
    """
    found, left_out = [], []
    for path in _paths(folder):
        text = _text(path)
        if is_sysbench(text):
            found.append(_file(path, text))
        else:
            left_out.append(path.name)
    if not found:
        raise DoorError(f"{folder} has no output of sysbench; files are named by their workload")
    threads = {one.output.threads or 1 for one in found}
    if len(threads) > 1:
        told = ", ".join(map(str, sorted(threads)))
        raise DoorError(
            f"the files of {folder} have {told} client threads: put each number of threads into a "
            "folder of its own"
        )
    if at is None:
        newest = max(one.path.stat().st_mtime for one in found)
        at = datetime.fromtimestamp(int(newest), tz=UTC)
    return Folder(
        run=ImportedRun(
            label=label or folder.resolve().name,
            at=at,
            threads=threads.pop(),
            starts=_starts(found, at=at),
        ),
        left_out=tuple(left_out),
    )


def _paths(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise DoorError(f"{folder} is no folder")
    paths = sorted(
        path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")
    )
    if len(paths) > FILES_MAX:
        raise DoorError(f"{folder} has {len(paths)} files; at most {FILES_MAX} are read")
    return paths


def _text(path: Path) -> str:
    if path.stat().st_size > FILE_BYTES_MAX:
        raise DoorError(f"{path} has more than {FILE_BYTES_MAX // 2**20} MiB")
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise DoorError(f"{path} cannot be read: {error.strerror}") from error


def _file(path: Path, text: str) -> _File:
    stem = _ENDING.sub("", path.name)
    numbered = _START.fullmatch(stem)
    name, start = (numbered["workload"], int(numbered["start"])) if numbered else (stem, 1)
    if len(name) > _NAME_LENGTH_MAX or not name.isprintable():
        raise DoorError(f"{path}: the name of the file is no name of a workload")
    try:
        output = read_output(text)
    except SysbenchOutputError as error:
        raise DoorError(f"{path}: {error}") from error
    return _File(path=path, workload=own_name(name), start=start, output=output)


def _starts(found: list[_File], *, at: datetime) -> tuple[tuple[Slice, ...], ...]:
    by_start: dict[int, list[_File]] = defaultdict(list)
    for one in found:
        if any(other.workload == one.workload for other in by_start[one.start]):
            raise DoorError(
                f"{one.path}: start {one.start} has another file of the workload {one.workload}"
            )
        by_start[one.start].append(one)
    return tuple(
        tuple(_slice(one, sequence, at=at) for sequence, one in enumerate(by_start[start]))
        for start in sorted(by_start)
    )


def _slice(one: _File, sequence: int, *, at: datetime) -> Slice:
    output = one.output
    seconds = output.per_second_ops_s
    return Slice(
        workload=one.workload,
        side=SideName.CANDIDATE,
        sequence=sequence,
        started_at=at,
        seconds=output.seconds,
        operations=output.operations,
        throughput_ops_s=output.operations / output.seconds,
        per_second_ops_s=seconds if len(seconds) <= PER_SECOND_MAX else (),
        latency_ms=_latency(output),
    )


def _latency(output: SysbenchOutput) -> Latency | None:
    """Return the latency where it is told whole; one percentile alone is not."""
    percentiles, told = output.percentiles_ms, output.latency_ms
    if percentiles is None or not told:
        return None
    return Latency(
        average=told["avg"],
        minimum=told["min"],
        maximum=told["max"],
        p50=percentiles.p50,
        p95=percentiles.p95,
        p99=percentiles.p99,
    )
