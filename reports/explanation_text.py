"""An explanation as Markdown, and for a terminal.

An explanation of a run document comes in, a text or a Rich renderable goes out. Names of functions
and workloads come from elsewhere and are made inert.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from reports.explanation import (
    callers_table,
    explanation_sentence,
    instructions_table,
    own_table,
    profile_sentence,
)
from reports.markdown import table_markdown
from reports.markup import markdown, one_line
from reports.terminal import table_renderable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rich.console import RenderableType

    from reports.tables import Table
    from results.explanation import Explanation, WorkloadExplanation

#: A sentence names functions, whose signatures are long.
_SENTENCE_LENGTH_MAX: Final = 600


def explanation_markdown(
    explanation: Explanation,
    *,
    folder: Path | None = None,
    addresses: Mapping[str, str] | None = None,
) -> str:
    """Return an explanation as Markdown: sentences and counts, the functions folded away.

    Args:
        explanation: Of a pair.
        folder: The job's, where flame graphs have no address.
        addresses: Of flame graphs by file, where they have one: trusted, and printed as links.
    """
    parts = []
    table = instructions_table(explanation)
    if table.lines:
        parts += [f"**{markdown(table.title)}**", table_markdown(table)]
    for found in explanation.workloads:
        parts += _workload_markdown(found, folder, addresses or {})
    parts += [markdown(line, length_max=_SENTENCE_LENGTH_MAX) for line in explanation.missing]
    return "\n\n".join(parts) or "Nothing was explained."


def _workload_markdown(
    found: WorkloadExplanation, folder: Path | None, addresses: Mapping[str, str]
) -> Iterator[str]:
    yield markdown(explanation_sentence(found), length_max=_SENTENCE_LENGTH_MAX) + "."
    if found.profile:
        file = found.profile.file
        where = addresses.get(file)
        shown = f"[Flame graph]({where})" if where else f"Flame graph: `{_file(folder, file)}`"
        yield f"{shown}; {markdown(profile_sentence(found.profile), length_max=300)}."
    for gap in _gaps(found):
        yield markdown(gap, length_max=_SENTENCE_LENGTH_MAX) + "."
    tables = _tables(found)
    if tables:
        yield f"<details><summary>Functions of {markdown(found.workload)}</summary>"
        for table in tables:
            yield f"**{markdown(table.title)}**"
            yield table_markdown(table)
        yield "</details>"


def explanation_renderable(
    explanation: Explanation, *, folder: Path | None = None
) -> RenderableType:
    """Return an explanation for a terminal."""
    table = instructions_table(explanation)
    parts: list[RenderableType] = [table_renderable(table)] if table.lines else []
    for found in explanation.workloads:
        parts += [Text(), _line(explanation_sentence(found), style="bold")]
        if found.profile:
            parts.append(_line(f"flame graph {_file(folder, found.profile.file)}"))
            parts.append(_line(profile_sentence(found.profile)))
        parts += [_line(gap) for gap in _gaps(found)]
        parts += [table_renderable(one) for one in _tables(found)]
    parts += [_line(line, style="bright_black") for line in explanation.missing]
    return Group(*parts)


def _line(text: str, *, style: str = "") -> Text:
    return Text(one_line(text, length_max=_SENTENCE_LENGTH_MAX), style=style)


def _file(folder: Path | None, file: str) -> str:
    return str(folder / file) if folder else file


def _gaps(found: WorkloadExplanation) -> tuple[str, ...]:
    """Return the gaps that the sentence has not told already."""
    return found.gaps if found.instructions else ()


def _tables(found: WorkloadExplanation) -> list[Table]:
    """Return the tables of functions, where there is a difference to explain."""
    counted = found.instructions
    if counted is None or counted.differs is False:
        return []
    return [table for table in (own_table(found), callers_table(found)) if table.lines]
