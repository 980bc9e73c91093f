"""What the culprit of a bisect does more of: counters, exact counters and an explanation.

The run documents of the jobs that measured it come in, tables and text go out. Both sides of each
were measured in alternation, the good end as baseline; what of it is the reason, nobody says here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rich.text import Text

from reports.comparison import counters_table
from reports.exact_text import exact_markdown, exact_renderable
from reports.explanation_text import explanation_markdown, explanation_renderable
from reports.markdown import table_markdown
from reports.numbers import short
from reports.tables import Table
from reports.terminal import table_renderable
from results.document import Outcome
from results.slice import SideName

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from bisects.document import BisectDocument
    from results.document import RunDocument
    from results.exact import ExactCounters
    from results.explanation import Explanation


NOTHING_COUNTED: Final = Table(title="Counters per operation", columns=(), lines=())


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was counted at the culprit beside the good end, and the explanation, if one was made."""

    #: Has no lines where no counter differs, or nothing was counted.
    counters: Table = NOTHING_COUNTED
    exact: ExactCounters | None = None
    #: Of the culprit beside its parent.
    explanation: Explanation | None = None
    #: Where the flame graph of that lies.
    folder: Path | None = None


def culprit_jobs(document: BisectDocument) -> tuple[str, ...]:
    """Return the jobs that measured the one culprit, oldest first; none where none is named."""
    if document.culprit is None:
        return ()
    found, place = document.culprit
    return tuple(one.job for one in found.observations if one.commit == place and one.log_ratios)


def evidence_of(document: BisectDocument, brought: Iterable[RunDocument]) -> Evidence | None:
    """Return what the jobs of the culprit counted; None where there is nothing to tell.

    Args:
        document: A bisect.
        brought: The run documents of `culprit_jobs`, as far as they are there.
    """
    if document.culprit is None:
        return None
    found, place = document.culprit
    sha, asked = found.commits[place].sha, found.question
    usable = [
        one
        for one in brought
        if one.outcome is Outcome.MEASURED
        and one.candidate.commit.sha == sha
        and one.baseline is not None
        and one.baseline.commit.sha == asked.good
    ]
    if not usable:
        return None
    # One more start of the same pair is one more start, whichever job it was of.
    starts = tuple(start for one in usable for start in one.starts)
    whole = usable[-1].model_copy(update={"starts": starts})
    sides = (whole, SideName.BASELINE), (whole, SideName.CANDIDATE)
    exact = next((one.exact for one in reversed(usable) if one.exact is not None), None)
    title = f"Counters per operation of {short(sha)} that differ most from {short(asked.good)}"
    counters = replace(counters_table(*sides, [asked.workload]), title=title)
    return Evidence(counters=counters, exact=exact)


def evidence_markdown(evidence: Evidence) -> str:
    """Return it as Markdown, counters and functions folded away; empty where there is nothing."""
    parts = []
    count = len(evidence.counters.lines)
    if count:
        counters = "1 counter differs" if count == 1 else f"{count} counters differ"
        summary = f"What an operation costs beside the good end: {counters}"
        parts += [
            f"<details><summary>{summary}</summary>",
            table_markdown(evidence.counters),
            "</details>",
        ]
    if evidence.exact is not None:
        parts.append(exact_markdown(evidence.exact))
    if evidence.explanation is not None:
        parts.append(explanation_markdown(evidence.explanation, folder=evidence.folder))
    return "\n\n".join(parts)


def evidence_renderables(evidence: Evidence) -> Sequence[RenderableType]:
    """Return the same for a terminal."""
    parts: list[RenderableType] = []
    if evidence.counters.lines:
        parts += [Text(), table_renderable(evidence.counters)]
    if evidence.exact is not None:
        parts.append(exact_renderable(evidence.exact))
    if evidence.explanation is not None:
        parts.append(explanation_renderable(evidence.explanation, folder=evidence.folder))
    return parts
