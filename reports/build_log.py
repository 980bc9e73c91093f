"""Errors of a build that name a line of the repository, found in the end of its log.

A log comes in as the sandbox wrote it, annotations go out. Code under test writes into this log, so
every part that is taken from it is bounded, on one line, and inside the repository.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.markup import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A compiler that stumbles early complains about everything after; the first ones are the reason.
ANNOTATIONS_MAX: Final = 100
_MESSAGE_LENGTH_MAX: Final = 1000
#: Lines below CMake's own in which it says what the matter is.
_CMAKE_LINES: Final = 3
#: Where the sandbox shows a build its source; the paths in its log begin so, absolute or seen from
#: the build's folder. What the build made itself is not in the repository.
_SOURCE: Final = r"(?:/forkwatch/source/|(?:\.\./){1,5}source/)"
_PLACE: Final = r"(?P<path>[^/\s:][^\s:]{0,500}):(?P<line>[0-9]{1,7})"
#: An error as gcc and clang write it.
_COMPILER: Final = re.compile(
    rf"^{_SOURCE}{_PLACE}:(?:[0-9]{{1,6}}:)? (?:fatal )?error: (?P<message>.{{1,2000}})"
)
#: CMake names its own files as the repository does.
_CMAKE: Final = re.compile(rf"^CMake Error at (?:{_SOURCE})?{_PLACE}\b")


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """A remark at one line of a file of the repository; all of it plain text."""

    path: str
    line: int
    title: str
    message: str


def build_errors(log: str) -> tuple[Annotation, ...]:
    """Return an annotation for each compiler or CMake error in a log that names a source line."""
    found: dict[tuple[str, int], Annotation] = {}
    lines = log.splitlines()
    for number, text in enumerate(lines):
        compiler, cmake = _COMPILER.match(text), _CMAKE.match(text)
        match = compiler or cmake
        if match is None or ".." in match["path"].split("/"):
            continue
        below = lines[number + 1 : number + 1 + _CMAKE_LINES]
        message = compiler["message"] if compiler else _first_words(below)
        place = one_line(match["path"]), max(1, int(match["line"]))
        found.setdefault(
            place,
            Annotation(
                path=place[0],
                line=place[1],
                title="does not build",
                message=one_line(message, length_max=_MESSAGE_LENGTH_MAX) or "error",
            ),
        )
    return tuple(found.values())[:ANNOTATIONS_MAX]


def _first_words(lines: Sequence[str]) -> str:
    return next((line.strip() for line in lines if line.strip()), "")
