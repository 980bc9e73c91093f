"""Tables: the cells that Markdown, the terminal and the pages print.

Rows come in, tables of text go out; how a table is drawn is for the caller. The cells are not
escaped: each writer does that for its own language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.numbers import (
    NOT_KNOWN,
    detectable_percent,
    mark,
    percent,
    rate,
    ratio,
    ratio_interval,
    relative,
    tone,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.verdict import Verdict
    from reports.rows import Level, Row


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column with its heading and what the heading means."""

    heading: str
    meaning: str
    numeric: bool = True


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of cells; the tone is `slower`, `faster` or nothing."""

    cells: tuple[str, ...]
    tone: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Headings and lines; every line has as many cells as there are columns."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]


_WORKLOAD: Final = Column(heading="workload", meaning="Microbenchmark", numeric=False)

_COSTS: Final = (
    Column(heading="cpu/o", meaning="Machine CPU percent (us+sy) over operations per second"),
    Column(heading="cs/o", meaning="Context switches of the machine per operation"),
    Column(heading="r/o", meaning="Device reads per operation"),
    Column(heading="rKB/o", meaning="KiB read from the device per operation"),
    Column(heading="wKB/o", meaning="KiB written to the device per operation"),
    Column(heading="o/s", meaning="Operations per second, median of starts"),
    Column(heading="server us/o", meaning="CPU microseconds of the server process per operation"),
)
#: Decimals as the field prints them; a cost below them counts as none, because a stray read in a
#: million operations is not a property of the commit.
_DECIMALS: Final = (6, 3, 3, 3, 3, 2, 2)


def throughput_table(rows: Sequence[Row]) -> Table:
    """Return the verdict table: relative throughput, how sure, and what could have been seen."""
    confidence = _confidence(rows)
    return Table(
        title="Relative throughput",
        columns=(
            _WORKLOAD,
            # What is read first stands first: on a phone the rest is off the screen.
            Column(heading="ratio", meaning="Candidate over baseline; below 1 is slower"),
            Column(heading=f"{confidence} interval", meaning="Interval of the ratio"),
            Column(heading="verdict", meaning="What was decided", numeric=False),
            Column(
                heading="could show",
                meaning="Smallest loss this run would have shown, with 80 % power",
            ),
            Column(heading="baseline o/s", meaning="Operations per second, median of starts"),
            Column(heading="candidate o/s", meaning="Operations per second, median of starts"),
            Column(heading="group", meaning="Group of the field's summaries", numeric=False),
        ),
        lines=tuple(_throughput_line(row) for row in rows),
    )


def absolute_table(rows: Sequence[Row]) -> Table:
    """Return the costs per operation, one line for each workload and side."""
    lines = []
    for row in rows:
        for side, level in (("baseline", row.baseline), ("candidate", row.candidate)):
            if level is not None:
                cells = tuple(
                    _absolute(value, decimals)
                    for value, decimals in zip(_costs(level), _DECIMALS, strict=True)
                )
                lines.append(Line(cells=(row.workload, side, *cells)))
    version = Column(heading="version", meaning="Side of the comparison", numeric=False)
    return Table(
        title="Cost per operation, absolute",
        columns=(_WORKLOAD, version, *_COSTS),
        lines=tuple(lines),
    )


def relative_table(rows: Sequence[Row]) -> Table:
    """Return the costs of the candidate over those of the baseline, by the field's ratio rule."""
    lines = []
    for row in rows:
        if row.baseline is None or row.candidate is None:
            continue
        cells = tuple(
            _relative(candidate, baseline, decimals)
            for candidate, baseline, decimals in zip(
                _costs(row.candidate), _costs(row.baseline), _DECIMALS, strict=True
            )
        )
        lines.append(Line(cells=(row.workload, *cells)))
    return Table(
        title="Cost per operation, relative",
        columns=(_WORKLOAD, *_COSTS),
        lines=tuple(lines),
    )


def _throughput_line(row: Row) -> Line:
    return Line(
        cells=(
            row.workload,
            f"{mark(row.ratio)} {ratio(row.ratio)}".strip(),
            *_judged(row.verdict),
            rate(row.baseline.throughput_ops_s) if row.baseline else NOT_KNOWN,
            rate(row.candidate.throughput_ops_s) if row.candidate else NOT_KNOWN,
            row.group,
        ),
        tone=tone(row.ratio),
    )


def _judged(verdict: Verdict | None) -> tuple[str, str, str]:
    """Return interval, decision and the smallest detectable effect."""
    if verdict is None:
        return NOT_KNOWN, "not judged", NOT_KNOWN
    change = verdict.change
    return (
        ratio_interval(change.interval),
        verdict.decision.value,
        percent(detectable_percent(change.detectable_effect)),
    )


def _confidence(rows: Sequence[Row]) -> str:
    """Return the coverage of the intervals, such as `95 %`; they are all made alike."""
    for row in rows:
        if row.verdict is not None:
            return f"{row.verdict.change.interval.confidence * 100:g} %"
    return "95 %"


def _costs(level: Level) -> tuple[float | None, ...]:
    """Return the costs in the order of the columns, None where there are no counters."""
    costs = level.efficiency
    if costs is None:
        return (None, None, None, None, None, level.throughput_ops_s, None)
    return (
        costs.machine_cpu_percent_s,
        costs.switches,
        costs.device_reads,
        costs.device_read_kib,
        costs.device_write_kib,
        level.throughput_ops_s,
        costs.server_cpu_us,
    )


def _absolute(value: float | None, decimals: int) -> str:
    if value is None:
        return NOT_KNOWN
    if round(value, decimals) == 0:
        return "0"
    # Five digits are enough for anybody; a scan's cost has hundreds before the point.
    whole = len(f"{abs(value):.0f}")
    return (
        f"{value:,.{max(0, min(decimals, 5 - whole))}f}" if value >= 1 else f"{value:.{decimals}f}"
    )


def _relative(candidate: float | None, baseline: float | None, decimals: int) -> str:
    if candidate is None or baseline is None:
        return NOT_KNOWN
    # What would print as zero is zero; everything else is divided unrounded.
    return relative(
        0 if round(candidate, decimals) == 0 else candidate,
        0 if round(baseline, decimals) == 0 else baseline,
    )
