"""Tables and whole reports in GitHub-flavoured Markdown, for comments, alerts and files.

Rows come in, Markdown goes out. Everything that is not our own wording passes through
`reports.markup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.markup import markdown
from reports.tables import absolute_table, relative_table, throughput_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.rows import Row
    from reports.tables import Table

LEGEND = "▼ 0.95 or less, ▲ 1.05 or more; below 1 is slower."


def throughput_markdown(rows: Sequence[Row]) -> str:
    """Return the verdict table with its legend."""
    return f"{table_markdown(throughput_table(rows))}\n\n{LEGEND}"


def efficiency_markdown(rows: Sequence[Row]) -> str:
    """Return the costs per operation, absolute and relative, each under its title."""
    tables = (absolute_table(rows), relative_table(rows))
    return "\n\n".join(f"**{table.title}**\n\n{table_markdown(table)}" for table in tables)


def report_markdown(rows: Sequence[Row], *, sentence: str) -> str:
    """Return a whole report: the sentence, the verdicts, and the costs folded away."""
    return "\n\n".join(
        [
            f"**{markdown(sentence, length_max=2000)}**",
            throughput_markdown(rows),
            "<details><summary>Cost per operation</summary>",
            efficiency_markdown(rows),
            "</details>",
        ]
    )


def table_markdown(table: Table) -> str:
    """Return one table; numbers are aligned to the right."""
    if not table.lines:
        return "Nothing was measured."
    rule = ["---:" if column.numeric else ":---" for column in table.columns]
    lines = [
        [column.heading for column in table.columns],
        rule,
        *([markdown(cell) for cell in line.cells] for line in table.lines),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
