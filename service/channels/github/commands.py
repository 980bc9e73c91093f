"""Orders in comments: `/forkwatch run`, `compare`, `bisect`, `accept` and `explain`.

The text of a comment comes in, the commands in it go out, each understood or with a line on how to
say it right. Whoever wrote it may be anybody, so every word is checked before anything sees it;
whether they may give orders is another question (`permissions`).
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "/forkwatch"
#: More orders in one comment are a mistake or an attack; the rest is not looked at.
COMMANDS_MAX: Final = 5
#: GitHub's own limit of a comment.
_COMMENT_LENGTH_MAX: Final = 65_536
_REASON_LENGTH_MAX: Final = 500
_HIDDEN: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_LINE: Final = re.compile(rf" {{0,3}}{PREFIX}(?:\s+(?P<rest>.*))?$", re.IGNORECASE)

#: Names of suites and workloads, as plans and the catalog allow them.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(?:\([A-Za-z0-9_.,=-]{1,64}\))?")
#: Branches, tags and commits. No leading dash, so that nothing takes it for an option.
_REVISION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}(?:[~^][0-9]{0,4}){0,3}")


class CommandVerb(StrEnum):
    """What can be asked for."""

    RUN = "run"
    COMPARE = "compare"
    BISECT = "bisect"
    ACCEPT = "accept"
    EXPLAIN = "explain"


USAGE: Final = {
    CommandVerb.RUN: "/forkwatch run [SUITE]",
    CommandVerb.COMPARE: "/forkwatch compare BASE [CANDIDATE]",
    CommandVerb.BISECT: "/forkwatch bisect GOOD BAD [WORKLOAD]",
    CommandVerb.ACCEPT: "/forkwatch accept REASON",
    CommandVerb.EXPLAIN: "/forkwatch explain [WORKLOAD]",
}


@dataclass(frozen=True, kw_only=True)
class Command:
    """An order as it was understood."""

    verb: CommandVerb
    #: Suite of a `run`, workload of a `bisect` or `explain`; None where none was given.
    name: str | None = None
    #: Commits as they were written: base and candidate, or good and bad. Not looked up yet.
    revisions: tuple[str, ...] = ()
    #: Of an `accept`: on one line, as it was written, and to be escaped wherever it is shown.
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Misunderstood:
    """An order that was not understood."""

    #: One line for whoever wrote it, without any of their words.
    answer: str


def find_commands(comment: str) -> list[Command | Misunderstood]:
    """Return the commands in a comment, in order; code, quotes and hidden text are not commands."""
    found = [parse_command(line) for line in _order_lines(comment)]
    return found[:COMMANDS_MAX]


def parse_command(words: str) -> Command | Misunderstood:
    """Return the command that the words after `/forkwatch` are."""
    verb_word, _, rest = words.strip().partition(" ")
    try:
        verb = CommandVerb(verb_word.lower())
    except ValueError:
        return Misunderstood(answer=_unknown(verb_word))
    if verb is CommandVerb.ACCEPT:
        return _accept(rest)
    arguments = rest.split()
    if verb in {CommandVerb.RUN, CommandVerb.EXPLAIN}:
        return _named(verb, arguments)
    return _ranged(verb, arguments)


def _order_lines(comment: str) -> Iterator[str]:
    """Give what follows the prefix on each line that is an order."""
    fence = ""
    for line in _HIDDEN.sub("", comment[:_COMMENT_LENGTH_MAX]).splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            continue
        if mark:
            fence = mark[1]
            continue
        order = _LINE.match(line)
        if order:
            yield order["rest"] or ""


def _accept(rest: str) -> Command | Misunderstood:
    reason = " ".join(rest.split())[:_REASON_LENGTH_MAX]
    if not reason:
        return _say_it_right(CommandVerb.ACCEPT, "say why, for whoever asks next year")
    return Command(verb=CommandVerb.ACCEPT, reason=reason)


def _named(verb: CommandVerb, arguments: list[str]) -> Command | Misunderstood:
    if len(arguments) > 1:
        return _say_it_right(verb, "one name at most")
    name = arguments[0] if arguments else None
    if name is not None and not _NAME.fullmatch(name):
        return _say_it_right(verb, "that is no name of a suite or workload")
    return Command(verb=verb, name=name)


def _ranged(verb: CommandVerb, arguments: list[str]) -> Command | Misunderstood:
    """Return a `compare`, of which the candidate may be left out, or a `bisect`."""
    bisect = verb is CommandVerb.BISECT
    fewest, most = (2, 3) if bisect else (1, 2)
    if not fewest <= len(arguments) <= most:
        return _say_it_right(verb, f"it takes {fewest} or {most} arguments")
    revisions, names = arguments[:2], arguments[2:]
    if not all(map(_is_revision, revisions)):
        return _say_it_right(verb, "that is no commit, branch or tag")
    if not all(map(_NAME.fullmatch, names)):
        return _say_it_right(verb, "that is no name of a workload")
    return Command(verb=verb, revisions=tuple(revisions), name=names[0] if names else None)


def _is_revision(word: str) -> bool:
    return bool(_REVISION.fullmatch(word)) and ".." not in word and "//" not in word


def _say_it_right(verb: CommandVerb, why: str) -> Misunderstood:
    return Misunderstood(answer=f"`{USAGE[verb]}`: {why}.")


def _unknown(word: str) -> str:
    near = difflib.get_close_matches(word[:20].lower(), list(CommandVerb), n=1)
    if near:
        return f"There is no such command; did you mean `{USAGE[CommandVerb(near[0])]}`?"
    return "There is no such command. There are: " + ", ".join(f"`{u}`" for u in USAGE.values())
