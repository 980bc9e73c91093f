"""The same tables for a terminal, as Rich renderables.

Rows come in, a renderable goes out; the caller owns the console. Cells are `Text`, never Rich
markup, so a workload called `[red]` prints as that. Marks say what colours say, for people and
logs without colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from reports.markup import one_line
from reports.tables import absolute_table, relative_table, throughput_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from reports.rows import Row
    from reports.tables import Line, Table

_STYLES: Final = {"slower": "red", "faster": "green", "": "bright_black"}


def report_renderable(rows: Sequence[Row], *, sentence: str) -> RenderableType:
    """Return the sentence, the verdict table and the costs per operation."""
    tables = [absolute_table(rows), relative_table(rows)]
    return Group(
        Text(one_line(sentence, length_max=2000), style="bold"),
        Text(),
        table_renderable(throughput_table(rows)),
        *(table_renderable(table) for table in tables if table.lines),
    )


def throughput_renderable(rows: Sequence[Row]) -> RenderableType:
    """Return the verdict table alone."""
    return table_renderable(throughput_table(rows))


def table_renderable(table: Table) -> RenderableType:
    """Return one table; the line's tone colours the ratio, grey between the two bounds."""
    rich = RichTable(title=Text(table.title), title_justify="left", box=None, pad_edge=False)
    for column in table.columns:
        rich.add_column(
            Text(column.heading), justify="right" if column.numeric else "left", overflow="fold"
        )
    for line in table.lines:
        rich.add_row(*_cells(table, line))
    return rich


def _cells(table: Table, line: Line) -> list[Text]:
    return [
        Text(
            one_line(cell),
            style=_STYLES[line.tone] if column.heading == "ratio" else "",
        )
        for column, cell in zip(table.columns, line.cells, strict=True)
    ]
