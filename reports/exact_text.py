"""Exact counters in words: yes, the work differs, or no, it does not; and the plans where they do.

Exact counters of a run document come in, lines, Markdown or a Rich renderable go out. What servers
said is made inert.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from reports.markup import lines, markdown, markdown_block, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from results.exact import CaseDifference, ComparedCase, ExactCounters

PLAN: Final = "plan"
#: A statement of a case and an answer are longer than a name.
_LINE_LENGTH_MAX: Final = 400
#: Lines of a plan that are shown; a plan of the cases has two or three.
_PLAN_LINES_MAX: Final = 20
#: A pushed-down condition that got lost moves six counters of a case (docs/exact-counters.md).
_COUNTERS_SHOWN_MAX: Final = 12


def exact_sentence(exact: ExactCounters) -> str:
    """Return whether the work of the asked queries differs."""
    asked, different = len(exact.cases), exact.different
    if different:
        names = ", ".join(case.name for case in different)
        return f"Exact counters: yes, {len(different)} of {asked} cases differ: {names}"
    if not asked:
        return "Exact counters: not known, no case was answered on both sides"
    counters = sum(len(case.counters) for case in exact.cases)
    return f"Exact counters: no difference in {counters} counters of {asked} cases"


def difference_lines(case: ComparedCase) -> list[str]:
    """Return a line for each thing in which a case differs; plans are told in one."""
    said = [_difference(case, one) for one in case.differences[:_COUNTERS_SHOWN_MAX]]
    more = len(case.differences) - len(said)
    return [*said, f"{case.name}: {more} more counters differ"] if more > 0 else said


def exact_renderable(exact: ExactCounters) -> RenderableType:
    """Return the lines for a terminal, with both plans where they differ."""
    different = exact.different
    parts = [Text(), _text(exact_sentence(exact), style="bold")]
    for case in different:
        parts += [_text(f"  {line}") for line in difference_lines(case)]
        for side, plan in _plans(case):
            parts.append(_text(f"  {side} plan"))
            parts += [
                _text("    " + line.replace("\t", " | "))
                for line in plan.splitlines()[:_PLAN_LINES_MAX]
            ]
    parts += [_text(f"  not compared: {gap}", style="bright_black") for gap in exact.gaps]
    return Group(*parts)


def exact_markdown(exact: ExactCounters) -> str:
    """Return the same as Markdown, plans folded away."""
    parts = [f"**{_inert(exact_sentence(exact))}**"]
    items = [line for case in exact.different for line in difference_lines(case)]
    items += [f"not compared: {gap}" for gap in exact.gaps]
    if items:
        parts.append("\n".join(f"- {_inert(item)}" for item in items))
    for case in exact.different:
        plans = list(_plans(case))
        if plans:
            parts.append(f"<details><summary>Plans of {markdown(case.name)}</summary>")
            parts += [
                f"{side}:\n\n{markdown_block(plan, lines_max=_PLAN_LINES_MAX)}"
                for side, plan in plans
            ]
            parts.append("</details>")
    return "\n\n".join(parts)


def _difference(case: ComparedCase, one: CaseDifference) -> str:
    if one.what == PLAN:
        return f"{case.name}: the plan is another one"
    return f"{case.name}: {one.what} was {one.baseline} and is {one.candidate}"


def _plans(case: ComparedCase) -> Iterator[tuple[str, str]]:
    for one in case.differences:
        if one.what == PLAN:
            yield "baseline", lines(one.baseline)
            yield "candidate", lines(one.candidate)


def _inert(line: str) -> str:
    return markdown(line, length_max=_LINE_LENGTH_MAX)


def _text(line: str, *, style: str = "") -> Text:
    # Leading blanks are the indentation; everything else is somebody else's.
    indent = len(line) - len(line.lstrip(" "))
    return Text(" " * indent + one_line(line, length_max=_LINE_LENGTH_MAX), style=style)
