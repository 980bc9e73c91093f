"""Stretches of a series between change points, and where its host became another.

Commits, levels and hosts in order come in, places in that order go out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: A class whose machines take turns changes host at every commit; marks would say nothing then.
HOST_CHANGES_MAX: Final = 20


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Commits between two change points: `[begin, end)`."""

    begin: int
    end: int
    #: Median of its levels.
    level: float
    #: Whether a change point is why it begins; else it is where the range begins.
    begins: bool
    #: Whether it is the last one: what the next commit is compared with.
    newest: bool


def stretches(
    shas: Sequence[str], levels: Sequence[float], begins: Collection[str]
) -> list[Stretch]:
    """Return the stretches of a range in order, none of an empty one."""
    count = len(shas)
    starts = [place for place, sha in enumerate(shas) if place == 0 or sha in begins]
    return [
        Stretch(
            begin=begin,
            end=end,
            level=median(levels[begin:end]),
            begins=shas[begin] in begins,
            newest=end == count,
        )
        for begin, end in pairwise((*starts, count))
    ]


def host_changes(hosts: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Return what happened to the host, by place; nothing where that is the rule.

    Args:
        hosts: Name and fingerprint of the host of each point; an empty fingerprint is not known.
    """
    found: dict[int, str] = {}
    for place, ((name_before, print_before), (name, print_)) in enumerate(pairwise(hosts), start=1):
        if name != name_before:
            found[place] = f"{name_before} before, {name} from here on"
        elif print_before and print_ and print_ != print_before:
            found[place] = f"{name} became another machine (fingerprint)"
    return found if len(found) <= HOST_CHANGES_MAX else {}
