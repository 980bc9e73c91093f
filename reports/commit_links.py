"""Commits in Markdown as links: a forge links a hash that stands alone, and none in backticks.

Markdown of our own making comes in, in which a commit is its hash in backticks, and the address of
the fork's commits; the same text goes out with links. Blocks of code stay as they are. Whatever
others wrote has no backticks left that count (`reports.markup`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from reports.fitting import size

if TYPE_CHECKING:
    from collections.abc import Collection

#: Short as in sentences and commands, or whole.
_COMMIT: Final = re.compile(
    r"(?<![\[`\\])`([0-9a-f]{8}|[0-9a-f]{12}|[0-9a-f]{40}|[0-9a-f]{64})`(?!`|\]\()"
)
_FENCE: Final = re.compile(r"`{3,}")


def with_commit_links(
    text: str, *, commits: str, known: Collection[str] = (), bytes_max: int
) -> str:
    """Return the text with its commits as links, as many of the first as fit.

    Args:
        text: Markdown of ours.
        commits: Address of the fork's commits, to which a slash and a hash are added.
        known: Whole hashes, which stand in addresses for the short ones of the text.
        bytes_max: Size of the whole text at most.
    """
    room = bytes_max - size(text)

    def link(found: re.Match[str]) -> str:
        nonlocal room
        sha = next((one for one in known if one.startswith(found[1])), found[1])
        linked = f"[{found[0]}]({commits}/{sha})"
        room -= len(linked) - len(found[0])
        return linked if room >= 0 else found[0]

    lines, fence = [], ""
    for line in text.split("\n"):
        opened = _FENCE.match(line)
        if fence:
            # Closed by as many backticks or more, and nothing else.
            fence = "" if line.startswith(fence) and not line.strip("` ") else fence
        elif opened:
            fence = opened[0]
        else:
            line = _COMMIT.sub(link, line)  # noqa: PLW2901  the line as it goes out
        lines.append(line)
    return "\n".join(lines)
