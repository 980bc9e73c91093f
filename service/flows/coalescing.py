"""Bursts of pushes: which of the commits that wait are measured, and which are skipped.

The waiting commits come in and those that were skipped go out. A skipped commit is not lost: the
next one that is measured is compared with the last one before it, so a change between them has the
skipped ones in its range, and a bisect measures those it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.numbers import short
from service.core.model import EventKind
from service.store import commits, events

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session


def coalesce(session: Session, fork: str, *, most: int, at: datetime) -> set[str]:
    """Skip waiting commits until no more than `most` wait; return the skipped ones.

    The newest is always kept. Doing it again changes nothing.
    """
    waiting = commits.waiting(session, fork)
    if len(waiting) <= most:
        return set()
    before = commits.begun_before(session, fork, waiting[0].position)
    positions = [commit.position for commit in waiting]
    keep = evenly(positions, most=most, before=positions[0] - 1 if before is None else before)
    skipped: set[str] = set()
    instead = waiting[-1].sha
    for commit in reversed(waiting):
        if commit.position in keep:
            instead = commit.sha
            continue
        reason = (
            f"not measured: {len(waiting)} commits waited, and {most} may; a change here is seen "
            f"at {short(instead)}, whose range has this commit in it"
        )
        if commits.skip(session, fork, commit.sha, reason=reason, at=at):
            skipped.add(commit.sha)
            events.append_once(
                session, fork, commit.sha, EventKind.FINISHED, f"skipped: {reason}", at=at
            )
    return skipped


def evenly(positions: Sequence[int], *, most: int, before: int) -> set[int]:
    """Return at most so many of these positions, the last one among them, as evenly as they lie.

    Even gaps make the longest range as short as can be, and so the search in it.

    Args:
        positions: Of the commits that wait, rising.
        most: How many to keep.
        before: Position of the last measured commit before them.
    """
    if len(positions) <= most:
        return set(positions)
    newest = positions[-1]
    wanted = (newest - (newest - before) * step / most for step in range(most))
    return {min(positions, key=lambda one: abs(one - place)) for place in wanted}
