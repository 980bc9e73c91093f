"""What GitHub takes at most, and the last resort where a text is longer.

`reports` keeps its texts below these limits and says what it leaves out. A text that is too long
all the same is cut here, because a cut report beats a refused one.
"""

from __future__ import annotations

from typing import Final

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
