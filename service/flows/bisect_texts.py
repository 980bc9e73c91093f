"""What people read of a bisect, in Markdown: that it has begun, how it stands, how it ended.

A bisect and what it knows come in. Words about what was found are made by `reports.bisect`, so that
an issue, a thread and a page say the same as the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.bisect import bisect_markdown
from reports.markup import markdown
from reports.numbers import short
from service.core.bisections import BisectState

if TYPE_CHECKING:
    from bisects.document import BisectDocument
    from reports.bisect_evidence import Evidence
    from service.core.bisections import Bisect

#: A sentence about a search names every commit that it could not tell apart.
SAID_LENGTH_MAX = 2_000


def begun_sentence(bisect: Bisect, *, page: str) -> str:
    """Return that a bisect was begun, and where to follow it."""
    question = bisect.question
    count = bisect.commits - 1
    some = f"The {count} commits" if count > 1 else "The one commit"
    are = "are" if count > 1 else "is"
    return (
        f"{some} after `{short(question.good)}` up to `{short(question.bad)}` {are} being searched "
        f"for what changed {markdown(question.workload)}, for at most "
        f"{question.budget_minutes:.0f} minutes: [how it stands]({page})."
    )


def standing_text(
    bisect: Bisect,
    document: BisectDocument | None,
    *,
    page: str,
    evidence: Evidence | None = None,
) -> str:
    """Return how a bisect stands now, for a comment that is brought up to date."""
    if bisect.state is BisectState.WAITING:
        return f"{begun_sentence(bisect, page=page)}\n\nIt waits for the bisect before it."
    if bisect.state is BisectState.MEASURING:
        so_far = f"\n\nSo far: {said(bisect)}" if bisect.said else ""
        return f"{begun_sentence(bisect, page=page)}{so_far}"
    return ended_text(bisect, document, page=page, evidence=evidence)


def ended_text(
    bisect: Bisect,
    document: BisectDocument | None,
    *,
    page: str,
    evidence: Evidence | None = None,
) -> str:
    """Return how a bisect ended, with everything that was measured."""
    if bisect.state is BisectState.OVER and document is not None:
        return f"{bisect_markdown(document, evidence=evidence)}\n\n[All of it]({page})"
    return ended_sentence(bisect, page=page)


def ended_sentence(bisect: Bisect, *, page: str) -> str:
    """Return how a bisect ended, in a line or two."""
    return f"{said(bisect)} [All of it]({page})"


def said(bisect: Bisect) -> str:
    """Return the sentence of a bisect, made inert: subjects and authors are anybody's words."""
    return markdown(bisect.said, length_max=SAID_LENGTH_MAX)
