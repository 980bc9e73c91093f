"""Reports that have to fit: forges refuse a text that is too long, and then nobody learns anything.

A head and folded sections come in, one Markdown text of at most so many bytes goes out. What does
not fit is left out whole, from the least important end, and the text says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: GitHub takes 65,536 characters in a body and 65,535 in a check's summary. Counted in bytes, which
#: are never fewer than characters, however the other side counts; the rest is for a marker.
BODY_BYTES_MAX: Final = 65_000
#: Kept free for the line that says what was left out.
_CLOSING_BYTES: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Fold:
    """A section behind a click: its title, and Markdown that is complete in itself."""

    title: str
    body: str


def size(text: str) -> int:
    """Return how many bytes a text takes."""
    return len(text.encode("utf-8", errors="replace"))


def fitted(
    head: str,
    folds: Sequence[Fold] = (),
    *,
    foot: str = "",
    page: str | None = None,
    bytes_max: int = BODY_BYTES_MAX,
) -> str:
    """Return head, folds and foot as one text, leaving out the folds that do not fit.

    Args:
        head: Always there; the caller keeps it short enough (`most_lines`).
        folds: The most important first.
        foot: Always there, last.
        page: Where all of it can be read.
        bytes_max: Size of the whole text at most.
    """
    left = bytes_max - size(head) - size(foot) - _CLOSING_BYTES
    kept, missing = [], []
    for fold in folds:
        text = f"\n\n{_folded(fold)}"
        if size(text) <= left:
            kept.append(text)
            left -= size(text)
        else:
            missing.append(fold.title)
    closing = f"\n\n{_left_out(missing, page=page)}" if missing else ""
    ending = f"\n\n{foot}" if foot else ""
    return f"{head}{''.join(kept)}{closing}{ending}\n"


def most_lines(render: Callable[[int], str], count: int, *, bytes_max: int) -> str:
    """Return what `render` makes of as many lines as fit; it is told how many to draw.

    It draws `count` lines where it can, and says itself what it leaves out.
    """
    while count > 0 and size(render(count)) > bytes_max:
        count = count * 3 // 4
    return render(count)


def _folded(fold: Fold) -> str:
    return f"<details><summary>{fold.title}</summary>\n\n{fold.body}\n\n</details>"


def _left_out(titles: Sequence[str], *, page: str | None) -> str:
    where = f" All of it: <{page}>" if page else ""
    return (
        f"Cut here, because the text would be too long for this place: {', '.join(titles)}.{where}"
    )
