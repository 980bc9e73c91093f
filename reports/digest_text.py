"""The weekly digest as text and data: Markdown, lines for a terminal, and a document for JSON.

A `Digest` comes in; each writer makes inert what is not our own wording, for its own language. What
is said, and in which order, is in `digest_sections`.
"""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from reports.digest_sections import headline, sections, span
from reports.markup import markdown, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from reports.digest import Digest
    from reports.digest_sections import Item

#: Characters of each half of an item; Slack takes 3000 in one text.
HALF_LENGTH_MAX: Final = 600
#: Columns of a terminal that nobody has widened.
WIDTH: Final = 80
#: Raised when a key of `digest_document` changes its meaning.
DOCUMENT_VERSION: Final = 1
_TIE: Final = "\N{NO-BREAK SPACE}"


def digest_markdown(digest: Digest, *, page: str | None = None) -> str:
    """Return the digest as Markdown, one line for each item; one line for a quiet week.

    Args:
        digest: The week.
        page: Address of its page, where the service has one.
    """
    title = _inert(headline(digest))
    if digest.quiet:
        return f"{title}\n"
    parts = [f"# {title}", _inert(span(digest))]
    for section in sections(digest):
        parts.append(f"## {section.title}")
        parts.append("\n".join(f"- {_joined(item, _inert)}" for item in section.items))
    if page:
        parts.append(f"Page of this week: <{page}>")
    return "\n\n".join(parts) + "\n"


def digest_lines(digest: Digest, *, width: int = WIDTH) -> list[str]:
    """Return the digest as lines of plain text, no wider than `width` where words allow it."""
    if digest.quiet:
        # One line is one line, also for whoever cuts columns or counts lines.
        return [_shown(headline(digest))]
    lines = _wrapped(headline(digest), width)
    lines += _wrapped(span(digest), width)
    for section in sections(digest):
        lines += ["", section.title]
        for item in section.items:
            lines += _wrapped(_joined(item, _shown), width, first="- ", rest="  ")
    return lines


def digest_document(digest: Digest) -> dict[str, Any]:
    """Return the digest as data for JSON: every fact, and the sections as they were worded."""
    facts = asdict(digest)
    for day in ("first_day", "last_day"):
        facts[day] = facts[day].isoformat()
    return {
        "format": "forkwatch.digest",
        "version": DOCUMENT_VERSION,
        "headline": headline(digest),
        "span": span(digest),
        "quiet": digest.quiet,
        "facts": facts,
        "sections": [asdict(section) for section in sections(digest)],
    }


def _wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Return one line as several, in which no percent sign is torn from its number."""
    whole = one_line(text, length_max=2 * HALF_LENGTH_MAX).replace(" %", f"{_TIE}%")
    lines = textwrap.wrap(
        whole, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    return [line.replace(_TIE, " ") for line in lines]


def _inert(text: str) -> str:
    return markdown(text, length_max=HALF_LENGTH_MAX)


def _shown(text: str) -> str:
    return one_line(text, length_max=HALF_LENGTH_MAX)


def _joined(item: Item, written: Callable[[str], str]) -> str:
    """Return an item as one line, its halves written apart: neither changes the other."""
    if not item.detail:
        return written(item.text)
    return f"{written(item.text)}: {written(item.detail)}"
