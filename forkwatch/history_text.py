"""The history of one series as text: a line of JSON for each run, the series itself on the first.

Run documents come in as entries, lines go out and come back. A file is made to be read in a diff
and merged by hand: an entry is one line, the newest the last. It does not know where files are
kept, nor what they say about a commit.
"""

from __future__ import annotations

import dataclasses
import json
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import AwareDatetime, Field, ValidationError

from forkwatch.errors import DoorError
from results.document import STARTS_MAX, Outcome
from results.metric import THROUGHPUT
from results.values import GitHash, Name, Part, Positive

if TYPE_CHECKING:
    from collections.abc import Collection

    from results.document import RunDocument
    from results.series import SeriesKey

FORMAT: Final = "forkwatch.history"
VERSION: Final = 1
#: Of one series: about 4,000 runs of three starts, forty times what a verdict looks back on. The
#: oldest go first, so that a branch of many series stays a small download.
FILE_BYTES_MAX: Final = 1024 * 1024


class Entry(Part):
    """What one run says about one series."""

    run: Name
    #: The commit that was measured; of a pair, its candidate.
    sha: GitHash
    #: `paired` where a baseline was measured in alternation with it.
    kind: Literal["single", "paired"]
    measured_at: AwareDatetime
    #: Median throughput of each start: what is left of a run, and enough to judge the next one.
    starts: tuple[Positive, ...] = Field(min_length=1, max_length=STARTS_MAX)
    #: A confirmed change: what came before is another level, and no baseline any more.
    begins: bool = False


class HistoryTextError(DoorError):
    """A file of the history is not one."""


def entries_of(document: RunDocument, *, changed: Collection[str] = ()) -> dict[SeriesKey, Entry]:
    """Return what a run adds to the history of each of its series; nothing if it has no numbers.

    Args:
        document: The run.
        changed: Workloads that a paired run has shown to be on a new level.
    """
    if document.outcome is not Outcome.MEASURED:
        return {}
    found = {}
    for workload in document.workloads():
        rows = document.samples(workload, THROUGHPUT.name)
        starts = tuple(median(row) for row in rows if row)
        if starts:
            found[document.series(workload, THROUGHPUT.name)] = Entry(
                run=document.id,
                sha=document.candidate.commit.sha,
                kind="paired" if document.paired else "single",
                measured_at=document.finished_at,
                starts=starts,
                begins=workload in changed,
            )
    return found


def file_of(key: SeriesKey) -> str:
    """Return the path of a series' file in its place; sixteen hex digits, whatever it is called."""
    return f"series/{key.id}.jsonl"


def read(text: str, *, source: str) -> list[Entry]:
    """Return the entries of a file, oldest first; none of an empty one.

    Raises:
        HistoryTextError: A line is not what belongs there; says which.
    """
    lines = text.splitlines()
    if not lines:
        return []
    _check_header(lines[0], source=source)
    entries = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            entries.append(Entry.model_validate_json(line))
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"])) or "the line"
            raise HistoryTextError(
                f"{source}, line {number}: {where}: {fault['msg']}; repair the line or remove it"
            ) from error
    return entries


def with_entry(text: str, key: SeriesKey, entry: Entry, *, source: str) -> str:
    """Return a file with this entry; the same run is replaced where it stands.

    Raises:
        HistoryTextError: The file is not one.
    """
    entries = read(text, source=source)
    places = [place for place, old in enumerate(entries) if old.run == entry.run]
    if places:
        entries[places[0]] = entry
    else:
        entries.append(entry)
    lines = [_line(one.model_dump(mode="json")) for one in entries]
    header = _line({"format": FORMAT, "version": VERSION, "series": dataclasses.asdict(key)})
    return header + "".join(_newest(lines, room=FILE_BYTES_MAX - len(header.encode())))


def _newest(lines: list[str], *, room: int) -> list[str]:
    """Return the last lines that fit into so many bytes, in their order."""
    kept = []
    for line in reversed(lines):
        room -= len(line.encode())
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _check_header(line: str, *, source: str) -> None:
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    match header:
        case {"format": str(kind), "version": int(version)} if kind == FORMAT:
            if version == VERSION:
                return
            raise HistoryTextError(
                f"{source} has version {version} of the history; this forkwatch knows {VERSION}"
            )
    raise HistoryTextError(f"{source}, line 1: not a history of forkwatch; name another place")


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"
