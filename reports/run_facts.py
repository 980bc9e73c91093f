"""What a run tells besides throughput: exact counters, load and start; for a terminal and Markdown.

A run document comes in, a renderable or a text goes out, nothing where it tells nothing of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from reports.exact_text import exact_markdown, exact_renderable
from reports.load_and_start import LEGEND, load_and_start_table
from reports.markdown import table_markdown
from reports.terminal import table_renderable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from results.document import RunDocument


def facts_renderables(document: RunDocument) -> list[RenderableType]:
    """Return what a terminal shows below the verdicts."""
    parts: list[RenderableType] = []
    if document.exact is not None:
        parts.append(exact_renderable(document.exact))
    table = load_and_start_table(document)
    if table.lines:
        parts += [Text(), table_renderable(table), Text(LEGEND, style="bright_black")]
    return parts


def facts_markdown(document: RunDocument) -> str:
    """Return the same as Markdown; empty where there is nothing."""
    parts = []
    if document.exact is not None:
        parts.append(exact_markdown(document.exact))
    table = load_and_start_table(document)
    if table.lines:
        parts.append(f"**{table.title}**\n\n{table_markdown(table)}\n\n{LEGEND}")
    return "\n\n".join(parts)
