"""Markdown that cannot be hijacked: text from commits, plans and runners made inert.

Untrusted text comes in, one line of GitHub-flavoured Markdown goes out that shows the same words:
no HTML, no links, no mentions, no references, no table cells, no invisible or reordering
characters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: A subject line longer than this is cut; nobody reads on, and comments have a size limit.
LINE_LENGTH_MAX: Final = 200

#: Inline marks of GitHub's Markdown; `$` begins mathematics there.
_SPECIAL: Final = re.compile(r"([\\`*_\[\]|~$])")
#: What makes a heading, list or rule of a whole line.
_BLOCK: Final = re.compile(r"^(\d*)([-+.)](?=\s|$)|-(?=-)|=)")
#: Control, format (bidi overrides, zero width), surrogate and unassigned characters, and the
#: separators of lines and paragraphs.
_INVISIBLE: Final = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
#: Breaks a word for the forge's own linking of names, issues and addresses, which looks at the
#: rendered text and so cannot be stopped by a backslash.
_BREAK: Final = "\N{ZERO WIDTH SPACE}"
_LINKED: Final = re.compile(r"(@|#|://|\bwww(?=\.)|\bGH-)", re.IGNORECASE)


def one_line(text: str, *, length_max: int = LINE_LENGTH_MAX) -> str:
    """Return text on one line: blanks collapsed, invisible characters dropped, cut to a length."""
    spaced = text
    # Most texts are printable, which is to say without any of these; a page has thousands of them.
    if not text.isprintable():
        spaced = "".join(
            " " if char.isspace() else char
            for char in text
            if char.isspace() or unicodedata.category(char) not in _INVISIBLE
        )
    line = " ".join(spaced.split())
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"


def markdown(text: str, *, length_max: int = LINE_LENGTH_MAX) -> str:
    """Return text as inert Markdown on one line, safe inside a table cell too."""
    line = one_line(text, length_max=length_max)
    broken = _LINKED.sub(rf"\1{_BREAK}", line)
    escaped = _BLOCK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", broken))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def lines(text: str, *, lines_max: int = 200) -> str:
    """Return the last lines of a text as they are, without invisible characters but tabs."""
    return "\n".join(
        "".join(
            char for char in line if char == "\t" or unicodedata.category(char) not in _INVISIBLE
        )
        for line in text.splitlines()[-lines_max:]
    )


def markdown_block(text: str, *, lines_max: int = 40) -> str:
    """Return text as a code block that it cannot close, the last `lines_max` lines of it."""
    body = lines(text, lines_max=lines_max)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{body}\n{fence}"
