"""What GitHub takes at most, and the last resort where a text is longer.

`reports` keeps its texts below these limits and says what it leaves out. A text that is too long
all the same is cut here, because a cut report beats a refused one. What is left of the room takes
the links of commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reports.commit_links import with_commit_links

if TYPE_CHECKING:
    from collections.abc import Collection

#: Of a comment's or an issue's body; the API answers "body is too long (maximum is 65536
#: characters)".
BODY_LENGTH_MAX: Final = 65_536
#: Of a check's summary, by GitHub's own description of its API.
SUMMARY_LENGTH_MAX: Final = 65_535
#: Of an issue's title.
TITLE_LENGTH_MAX: Final = 256
#: Of a check's title and of an annotation's.
CHECK_TITLE_LENGTH_MAX: Final = 255
#: Of an annotation's message: 64 KB; nobody reads on after a page.
ANNOTATION_LENGTH_MAX: Final = 4_000
#: By GitHub's own description; further ones are sent with further requests.
ANNOTATIONS_PER_REQUEST: Final = 50
#: Of a commit status' description.
STATUS_LENGTH_MAX: Final = 140

_CUT: Final = "\n\n**Cut here: the text is too long for GitHub.**\n"


def linked(text: str, *, commits: str | None, known: Collection[str] = (), length_max: int) -> str:
    """Return a text that fits, with its commits as links where it is known where they lie.

    Args:
        text: Markdown.
        commits: Address of the repository's commits.
        known: Whole hashes, for those that stand shortened in the text.
        length_max: Of the text.
    """
    fitting = cut(text, length_max)
    if commits is None:
        return fitting
    return with_commit_links(fitting, commits=commits, known=known, bytes_max=length_max)


def cut(text: str, length_max: int) -> str:
    """Return a text of at most so many characters and bytes, which says so where it was cut.

    What was cut may have been inside a code block or a folded section; both are closed.
    """
    if _fits(text, length_max):
        return text
    kept = text.encode()[: length_max - 200].decode(errors="ignore")
    # A line begun is a table's row begun.
    kept = kept[: kept.rfind("\n")] if "\n" in kept else kept
    fence = "\n```" if _inside_block(kept) else ""
    folds = "\n</details>" * (kept.count("\n<details>") - kept.count("\n</details>"))
    return f"{kept}{fence}{folds}{_CUT}"


def cut_line(text: str, length_max: int) -> str:
    """Return one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"


def _fits(text: str, length_max: int) -> bool:
    return len(text.encode()) <= length_max


def _inside_block(text: str) -> bool:
    return sum(line.startswith("```") for line in text.splitlines()) % 2 == 1
