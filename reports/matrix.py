"""Tables of a matrix: several builds, configs or commits, each measured against one base.

Rows of the pairs come in, the field's tables go out as Markdown and for the terminal: relative per
workload, the summary of each group, and the costs per operation. Which differences are significant
was decided before; here the others are marked with `~`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from rich.console import Group as RichGroup
from rich.table import Table as RichTable
from rich.text import Text

from reports import tables
from reports.markdown import table_markdown
from reports.markup import markdown, one_line
from reports.numbers import NOT_KNOWN, mark, rate
from reports.rows import Row
from reports.tables import Column, Line, Table
from reports.terminal import table_renderable
from results.metric import THROUGHPUT_ROWS
from workloads.catalog import Group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from reports.rows import Level

NOT_SIGNIFICANT: Final = "~"
LEGEND: Final = (
    "▼ 0.95 or less, ▲ 1.05 or more; below 1 is slower than the base. ~ is not significant."
)
#: Ratios have two decimals, as the field prints them.
_DECIMALS: Final = 2
#: Of a cell, by the sign in it; grey where there is none.
_STYLES: Final = {mark(0.0): "red", mark(2.0): "green"}
_GREY: Final = "bright_black"
#: As long as a line of a legend may be that quotes why a cell has no numbers.
_LEGEND_LENGTH_MAX: Final = 300
_BASE: Final = "base"
_COUNT: Final = "workloads"
_WORKLOAD: Final = Column(heading="workload", meaning="Microbenchmark", numeric=False)
_GROUP: Final = Column(heading="group", meaning="Group of the field's summaries", numeric=False)
_CELL: Final = Column(heading="cell", meaning="The base, or a column of the legend", numeric=False)
_ROWS: Final = Column(heading=THROUGHPUT_ROWS.unit, meaning=THROUGHPUT_ROWS.description)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One build, config and commit against the base."""

    name: str
    #: The base of this very pair is the row's baseline.
    rows: Sequence[Row] = ()
    #: Workloads whose difference from the base is significant.
    significant: frozenset[str] = frozenset()
    #: Why there are no numbers; empty where there are.
    gap: str = ""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """What was measured of a matrix, the base apart from the cells."""

    base: str
    cells: Sequence[Cell]
    #: Level of the base by workload, over all the pairs that it was measured in.
    base_levels: Mapping[str, Level]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One group of workloads of one cell, over the relative throughput of its workloads."""

    group: str
    #: Heading of the cell's column, such as `col-1`.
    column: str
    workloads: int
    lowest: float
    highest: float
    average: float
    median: float


def matrix_markdown(matrix: Matrix) -> str:
    """Return the legend and all tables, the costs folded away."""
    legend = [markdown(line, length_max=_LEGEND_LENGTH_MAX) for line in legend_lines(matrix)]
    costs = (absolute_table(matrix), relative_table(matrix))
    return "\n\n".join(
        [
            "  \n".join(legend),
            _titled(throughput_table(matrix)),
            LEGEND,
            _titled(summary_table(matrix)),
            "<details><summary>Cost per operation</summary>",
            *(_titled(table) for table in costs),
            "</details>",
        ]
    )


def matrix_renderable(matrix: Matrix) -> RenderableType:
    """Return the legend and all tables for a terminal."""
    costs = (absolute_table(matrix), relative_table(matrix))
    return RichGroup(
        *(
            Text(one_line(line, length_max=_LEGEND_LENGTH_MAX), style="bold")
            for line in legend_lines(matrix)
        ),
        Text(),
        _coloured(throughput_table(matrix)),
        Text(LEGEND, style=_GREY),
        *(_coloured(table) for table in (summary_table(matrix),) if table.lines),
        *(table_renderable(table) for table in costs if table.lines),
    )


def legend_lines(matrix: Matrix) -> list[str]:
    """Return what the columns stand for, and why some have no numbers."""
    lines = [f"Relative to: {matrix.base}"]
    for heading, cell in _numbered(matrix):
        gap = f" (no numbers: {cell.gap})" if cell.gap else ""
        lines.append(f"{heading} : {cell.name}{gap}")
    return lines


def throughput_table(matrix: Matrix) -> Table:
    """Return relative throughput, a line for each workload and a column for each cell."""
    found = {
        (heading, row.workload): _shown(row.ratio, significant=row.workload in cell.significant)
        for heading, cell in _numbered(matrix)
        for row in cell.rows
    }
    headings = [heading for heading, _ in _numbered(matrix)]
    return Table(
        title="Relative throughput",
        columns=(
            _WORKLOAD,
            *(
                Column(heading=heading, meaning=f"{cell.name} over {matrix.base}")
                for heading, cell in _numbered(matrix)
            ),
            _GROUP,
        ),
        lines=tuple(
            Line(
                cells=(
                    workload,
                    *(found.get((heading, workload), NOT_KNOWN) for heading in headings),
                    group,
                )
            )
            for workload, group in _workloads(matrix).items()
        ),
    )


def summaries(matrix: Matrix) -> list[Summary]:
    """Return the summary of each group and cell that has numbers, in the order of the tables."""
    found = []
    for group in dict.fromkeys(_workloads(matrix).values()):
        for heading, cell in _numbered(matrix):
            ratios = [row.ratio for row in cell.rows if row.group == group and _known(row.ratio)]
            values = [ratio for ratio in ratios if ratio is not None]
            if values:
                found.append(
                    Summary(
                        group=group,
                        column=heading,
                        workloads=len(values),
                        lowest=min(values),
                        highest=max(values),
                        average=fmean(values),
                        median=median(values),
                    )
                )
    return found


def summary_table(matrix: Matrix) -> Table:
    """Return min, max, average and median of relative throughput for each group and cell."""
    return Table(
        title="Relative throughput by group",
        columns=(
            _GROUP,
            _CELL,
            Column(heading=_COUNT, meaning="How many have a ratio"),
            Column(heading="min", meaning="Lowest ratio of the group"),
            Column(heading="max", meaning="Highest ratio of the group"),
            Column(heading="avg", meaning="Arithmetic mean of the ratios"),
            Column(heading="median", meaning="Median of the ratios"),
        ),
        lines=tuple(
            Line(
                cells=(
                    summary.group,
                    summary.column,
                    str(summary.workloads),
                    *(
                        _shown(value)
                        for value in (
                            summary.lowest,
                            summary.highest,
                            summary.average,
                            summary.median,
                        )
                    ),
                )
            )
            for summary in summaries(matrix)
        ),
    )


def absolute_table(matrix: Matrix) -> Table:
    """Return the costs per operation, for each workload the base and every cell."""
    rows, names = [], []
    for workload, group in _workloads(matrix).items():
        levels: list[tuple[str, Level | None]] = [(_BASE, matrix.base_levels.get(workload))]
        levels += [(heading, row.candidate) for heading, row in _rows_of(matrix, workload)]
        for heading, level in levels:
            if level is not None:
                # One line each: a row of one side is what the pair's table prints on one line.
                rows.append(
                    Row(
                        workload=workload, group=group, baseline=None, candidate=level, verdict=None
                    )
                )
                names.append(heading)
    table = tables.absolute_table(rows)
    scanned = _scanned(rows)
    return replace(
        table,
        columns=(_WORKLOAD, _CELL, *table.columns[2:], *((_ROWS,) if any(scanned) else ())),
        lines=tuple(
            Line(cells=(line.cells[0], name, *line.cells[2:], *more))
            for name, line, more in zip(names, table.lines, scanned, strict=True)
        ),
    )


def _scanned(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return one more cell for each row, rows per second, if any of them scans a table."""
    rates = [row.candidate.throughput_rows_s if row.candidate else None for row in rows]
    if not any(rates):
        return [()] * len(rows)
    return [(NOT_KNOWN if found is None else rate(found),) for found in rates]


def relative_table(matrix: Matrix) -> Table:
    """Return the costs of every cell over those of the base in the same pair."""
    rows, names = [], []
    for workload in _workloads(matrix):
        for heading, row in _rows_of(matrix, workload):
            if row.baseline is not None and row.candidate is not None:
                rows.append(row)
                names.append(heading)
    table = tables.relative_table(rows)
    return replace(
        table,
        columns=(_WORKLOAD, _CELL, *table.columns[1:]),
        lines=tuple(
            Line(cells=(line.cells[0], name, *line.cells[1:]))
            for name, line in zip(names, table.lines, strict=True)
        ),
    )


def _numbered(matrix: Matrix) -> Iterator[tuple[str, Cell]]:
    """Yield the cells with the headings of their columns; a gap keeps its number."""
    for number, cell in enumerate(matrix.cells, start=1):
        yield f"col-{number}", cell


def _rows_of(matrix: Matrix, workload: str) -> Iterator[tuple[str, Row]]:
    for heading, cell in _numbered(matrix):
        for row in cell.rows:
            if row.workload == workload:
                yield heading, row


def _workloads(matrix: Matrix) -> dict[str, str]:
    """Return the group of each workload, in the field's order of groups."""
    groups = {row.workload: row.group for cell in matrix.cells for row in cell.rows}
    order = [group.value for group in Group]
    return dict(
        sorted(
            groups.items(),
            key=lambda item: order.index(item[1]) if item[1] in order else len(order),
        )
    )


def _known(ratio: float | None) -> bool:
    return ratio is not None and math.isfinite(ratio)


def _shown(ratio: float | None, *, significant: bool = True) -> str:
    """Return a ratio with its marks; the marks are for the ratio as it is printed."""
    if ratio is None or not math.isfinite(ratio):
        return NOT_KNOWN
    printed = round(ratio, _DECIMALS)
    marks = ("" if significant else NOT_SIGNIFICANT, mark(printed), f"{printed:.{_DECIMALS}f}")
    return " ".join(filter(None, marks))


def _titled(table: Table) -> str:
    return f"**{table.title}**\n\n{table_markdown(table)}"


def _coloured(table: Table) -> RenderableType:
    """Return a table of ratios, each in the colour of the field's tables."""
    rich = RichTable(title=Text(table.title), title_justify="left", box=None, pad_edge=False)
    for column in table.columns:
        rich.add_column(
            Text(column.heading), justify="right" if column.numeric else "left", overflow="fold"
        )
    for line in table.lines:
        texts = []
        for column, cell in zip(table.columns, line.cells, strict=True):
            colour = next((style for sign, style in _STYLES.items() if sign in cell), _GREY)
            ratio = column.numeric and column.heading != _COUNT
            texts.append(Text(one_line(cell), style=colour if ratio else ""))
        rich.add_row(*texts)
    return rich
