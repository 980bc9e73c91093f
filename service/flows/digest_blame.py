"""Whom a digest names for a loss: the commit that a bisect found, or nobody of several.

An alert comes in, words and an author go out. The commit at the end of a range is where a loss was
seen, and need not be where it came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.numbers import short
from service.core.bisections import BisectState
from service.store import bisects, commits

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from bisects.document import BisectCommit
    from service.core.model import Alert


def blamed(session: Session, alert: Alert) -> tuple[str, str]:
    """Return what is said of the commit behind an alert, and its author; empty where nobody's."""
    found = _named(session, alert)
    if found is not None:
        return f"a bisect named {short(found.sha)} {found.subject}", found.author
    seen = commits.find(session, alert.fork, alert.sha)
    if seen is not None and seen.parent not in {None, alert.baseline_sha}:
        return f"one of ({short(alert.baseline_sha)}, {short(alert.sha)}]", ""
    return alert.subject, alert.author


def _named(session: Session, alert: Alert) -> BisectCommit | None:
    """Return the commit that the newest finished bisect of the alert's range has named."""
    for bisect in bisects.newest(session, alert=alert.id):
        asked = bisect.question
        # An alert that was opened again is about another range.
        if (asked.good, asked.bad) != (alert.baseline_sha, alert.sha):
            continue
        document = bisects.document(session, bisect.id)
        if bisect.state is BisectState.OVER and document is not None and document.culprit:
            inner, place = document.culprit
            return inner.commits[place]
    return None
