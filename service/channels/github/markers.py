"""Markers: invisible first lines by which our own comments and issues are found again.

A topic comes in, a line of HTML comment goes out. Whoever copies a marker into a text of their own
gains nothing: a text is ours only if we wrote it and it begins with the marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping


def marker(topic: str) -> str:
    """Return the line that a text on this topic begins with.

    Names of suites come from a plan: whatever is in a topic cannot end the comment.
    """
    inert = quote(topic, safe=":/").replace("--", "%2D%2D")
    return f"<!-- forkwatch {inert} -->"


def marked(topic: str, text: str) -> str:
    """Return the text with its marker."""
    return f"{marker(topic)}\n{text}"


def is_ours(item: Mapping[str, Any], topic: str, *, login: str) -> bool:
    """Whether a comment or an issue, as the API gives it, is ours and on this topic."""
    author = item.get("user") or {}
    body = str(item.get("body") or "")
    # GitHub ends lines as whoever wrote them did; a person's editor may have changed ours.
    first = body.replace("\r\n", "\n").partition("\n")[0].strip()
    return author.get("login") == login and first == marker(topic)


def same_text(item: Mapping[str, Any], text: str) -> bool:
    """Whether an item already says just that."""
    return str(item.get("body") or "").replace("\r\n", "\n").strip() == text.strip()
