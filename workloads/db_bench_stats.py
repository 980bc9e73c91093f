"""The statistics that a database prints of itself: levels, compaction, stalls, what was ingested.

Text of `--benchmarks=stats` comes in, numbers with units in their names go out; what a version does
not print is left out. Of several blocks the last one counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_N: Final = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)"
_TABLE: Final = re.compile(r"^Level +Files +Size.*$", re.MULTILINE)
_LEVELDB_TABLE: Final = re.compile(
    r"^Level +Files +Size\(MB\) +Time\(sec\) +Read\(MB\) +Write\(MB\)$", re.MULTILINE
)
SUM: Final = "Sum"
_NAME: Final = re.compile(rf"L?[0-9]{{1,2}}|{SUM}")
_PLAIN: Final = re.compile(_N)
#: Files, and how many of them are being compacted.
_FILES: Final = re.compile(r"[0-9]{1,9}/[0-9]{1,9}")
_UNITS: Final = {"B": 2**-30, "KB": 2**-20, "MB": 2**-10, "GB": 1.0, "TB": 2.0**10, "PB": 2.0**20}
#: Rows of a table: RocksDB has at most as many levels as this, LevelDB seven.
_ROWS_MAX: Final = 100
_TABLE_MAX: Final = 400 * _ROWS_MAX

_INGEST: Final = re.compile(rf"^Cumulative writes: .*ingest: {_N} GB, {_N} MB/s$", re.MULTILINE)
_COMPACTION: Final = re.compile(
    rf"^Cumulative compaction: {_N} GB write, {_N} MB/s write", re.MULTILINE
)
_FLUSH: Final = re.compile(rf"^Flush\(GB\): cumulative {_N}", re.MULTILINE)
_STALL: Final = re.compile(
    rf"^Cumulative stall: ([0-9]{{1,6}}):([0-9]{{2}}):{_N} H:M:S, {_N} percent$", re.MULTILINE
)
_UPTIME: Final = re.compile(rf"^Uptime\(secs\): {_N} total", re.MULTILINE)
#: Rates are printed in hundredths of a MB/s. Below this one, the ratio of two of them may be wrong
#: by more than one percent.
RATE_MIN: Final = 0.5
#: Where less of what was put has been flushed, its writing has hardly begun.
FLUSHED_MIN: Final = 0.5
#: Printed for a level that holds what it may, give or take 5 %: levels come to rest just below it.
#: Level 0 has it exactly, at as many files as start a compaction.
FULL: Final = 1.0
#: What rounding to hundredths and to tenths may hide.
_HALF_CENT: Final = 0.005
_HALF_TENTH: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level of the tree, or `Sum` for all of them."""

    name: str
    files: int
    size_gib: float
    #: Files that are being compacted at this moment.
    compacting: int = 0
    #: A level is compacted when this reaches 1; what is being compacted is not in it.
    score: float = 0.0
    #: Seconds that compaction into it took, and of a processor; None where a version does not say.
    compaction_s: float | None = None
    compaction_cpu_s: float | None = None
    write_mib: float = 0.0


def levels(text: str) -> tuple[Level, ...]:
    """Return the levels of the last table in `text`, `SUM` last; empty where there is none."""
    heads = list(_TABLE.finditer(text))
    if not heads:
        return ()
    head = heads[-1]
    rows = _rows(text[head.end() : head.end() + _TABLE_MAX])
    names = head.group(0).split()
    if not _LEVELDB_TABLE.fullmatch(head.group(0)):
        return tuple(level for row in rows if (level := _level(names, row)) is not None)
    found = [level for row in rows if (level := _level_of_leveldb(names, row)) is not None]
    return (*found, _sum(found))


def figures(text: str, *, put_mib: float | None = None) -> dict[str, float]:
    """Return what the statistics say, by names with units.

    Args:
        text: What was printed after the benchmark.
        put_mib: What the benchmark put, where the statistics do not tell it.
    """
    found = _of_tree(levels(text))
    found |= _of_rates(text)
    if put_mib and "compaction_write_gib" in found:
        found["ingest_gib"] = put_mib / 1024
        found["write_amplification"] = found["compaction_write_gib"] / found["ingest_gib"]
    flush, stall, uptime = _last(_FLUSH, text), _last(_STALL, text), _last(_UPTIME, text)
    if flush:
        found["flush_gib"] = flush[0]
        if flush[0] < FLUSHED_MIN * found.get("ingest_gib", 0.0):
            found.pop("write_amplification", None)
    if stall:
        hours, minutes, seconds, percent = stall
        found["stall_s"] = 3600 * hours + 60 * minutes + seconds
        found["stall_percent"] = percent
    if uptime:
        found["uptime_s"] = uptime[0]
    return found


def _of_tree(found: Sequence[Level]) -> dict[str, float]:
    # A table that was cut off has no sum.
    if not found or found[-1].name != SUM:
        return {}
    total = found[-1]
    numbers = {"lsm_gib": total.size_gib}
    if total.compaction_s is not None:
        numbers["compaction_s"] = total.compaction_s
    if total.compaction_cpu_s is not None:
        numbers["compaction_cpu_s"] = total.compaction_cpu_s
    if total.write_mib:
        numbers["compaction_write_gib"] = total.write_mib / 1024
    return numbers


def _of_rates(text: str) -> dict[str, float]:
    """Return what was put and what was written for it.

    Sums are printed in hundredths of a GB, which is too coarse for a short slice; rates are finer,
    and the time that both are divided by is the same.
    """
    ingest, compaction = _last(_INGEST, text), _last(_COMPACTION, text)
    uptime = _last(_UPTIME, text)
    if not ingest or not compaction or not uptime:
        return {}
    numbers = {
        "ingest_gib": _finer(*ingest, uptime_s=uptime[0]),
        "compaction_write_gib": _finer(*compaction, uptime_s=uptime[0]),
    }
    if ingest[1] >= RATE_MIN:
        # What flushes write is in the sum of compaction already: level 0 counts it.
        numbers["write_amplification"] = compaction[1] / ingest[1]
    return numbers


def _finer(gib: float, mib_s: float, *, uptime_s: float) -> float:
    """Return a sum from its rate where that is printed more finely, in a short run."""
    off_by = (_HALF_CENT * uptime_s + _HALF_TENTH * mib_s) / 1024
    return mib_s * uptime_s / 1024 if off_by < _HALF_CENT else gib


def _last(pattern: re.Pattern[str], text: str) -> tuple[float, ...]:
    matches = list(pattern.finditer(text))
    return tuple(float(value) for value in matches[-1].groups()) if matches else ()


def _rows(text: str) -> list[list[str]]:
    """Return the rows of a table as words, its ruler left out."""
    rows: list[list[str]] = []
    for line in text.splitlines()[1 : _ROWS_MAX + 1]:
        words = line.split()
        if words and set(line.strip()) == {"-"}:
            continue
        if not words or not _NAME.fullmatch(words[0]):
            break
        rows.append(words)
    return rows


def _level(names: Sequence[str], row: list[str]) -> Level | None:
    """Return a level of RocksDB; the size has a unit of its own or one in the table's head."""
    gib = _UNITS["MB"]
    if names[2] == "Size":
        if len(row) <= 3 or row[3] not in _UNITS:  # noqa: PLR2004  name, files, size, unit
            return None
        gib = _UNITS[row.pop(3)]
    cells = dict(zip(names, row, strict=False))
    files, _, compacting = row[1].partition("/")
    size = row[2]
    if not _PLAIN.fullmatch(size) or not _FILES.fullmatch(row[1]):
        return None
    return Level(
        name=row[0],
        files=int(files),
        compacting=int(compacting),
        size_gib=float(size) * gib,
        score=_number(cells.get("Score")) or 0.0,
        compaction_s=_number(cells.get("Comp(sec)")),
        compaction_cpu_s=_number(cells.get("CompMergeCPU(sec)")),
    )


def _level_of_leveldb(names: Sequence[str], row: list[str]) -> Level | None:
    cells = {name: _number(value) for name, value in zip(names, row, strict=False)}
    numbers = [cells.get(name) for name in names[1:]]
    if any(value is None for value in numbers):
        return None
    files, size, seconds, _, written = (value or 0.0 for value in numbers)
    return Level(
        name=f"L{row[0]}",
        files=int(files),
        size_gib=size / 1024,
        compaction_s=seconds,
        write_mib=written,
    )


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _PLAIN.fullmatch(text) else None


def _sum(found: Sequence[Level]) -> Level:
    """Return what LevelDB does not print: all levels together."""
    return Level(
        name=SUM,
        files=sum(level.files for level in found),
        size_gib=sum(level.size_gib for level in found),
        compaction_s=sum(level.compaction_s or 0.0 for level in found),
        write_mib=sum(level.write_mib for level in found),
    )


def unrest(found: Sequence[Level], *, universal: bool = False, one_level: bool = False) -> str:
    """Return what a tree that came to rest would not have, in words; empty where it is at rest.

    Args:
        found: Its levels.
        universal: Whether RocksDB's scores count sorted runs, and so say nothing about rest.
        one_level: Whether only a tree in a single level is at rest, as LevelDB's is that tells no
            scores.
    """
    if not found or found[-1].name != SUM:
        return "the database does not tell its levels"
    *each, total = found
    used = [level for level in each if level.files]
    if one_level:
        return f"files in {len(used)} levels" if len(used) > 1 else ""
    if total.compacting:
        return f"{total.compacting} files under compaction"
    left = [
        f"{level.files} files in level 0"
        for level in used
        # What lies in level 0 alone has nothing to be merged with, until it is too many files.
        if level.name == "L0"
        and (level.files < total.files or (level.score >= FULL and not universal))
    ]
    if not universal:
        left += [
            f"{level.name} is {level.score:.1f} times its size"
            for level in used
            if level.score > FULL and level.name != "L0"
        ]
    return ", ".join(left)
