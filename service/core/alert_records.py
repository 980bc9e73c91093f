"""What is kept about alerts beside themselves: their commits, the audit log, marks on baselines.

Frozen values that the store returns and the flows, the API and the pages read. This module knows
neither tables nor HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003  the API makes its schema from these classes
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


class AlertPart(StrEnum):
    """What a commit has to do with an alert."""

    #: A paired job showed the loss at this commit.
    OPENED = "opened"
    #: A paired job showed it at this commit too: the same cause.
    JOINED = "joined"
    #: The same loss came back with this commit.
    REOPENED = "reopened"
    #: With this commit the loss was gone.
    FIXED = "fixed"


#: Parts of a commit at which the loss was seen.
RAISED: Final = (AlertPart.OPENED, AlertPart.JOINED, AlertPart.REOPENED)


@dataclass(frozen=True, kw_only=True)
class AlertCommit:
    """A commit that had a part in an alert."""

    fork: str
    sha: str
    part: AlertPart
    #: The paired run that showed it; None where none did.
    run: str | None
    at: datetime


class AuditSubject(StrEnum):
    """What an entry of the audit log is about."""

    ALERT = "alert"
    #: The baseline of one series.
    SERIES = "series"
    TOKEN = "token"  # noqa: S105  a word of the log, not a secret


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """Who did what, when, and through what; the log is append-only and in order."""

    id: int
    at: datetime
    subject: AuditSubject
    #: Which: an alert's id, a series' id, a token's name.
    about: str
    #: What was done: an action, or another word such as `create`.
    what: str
    actor: str
    via: str
    #: As it was written, and to be escaped wherever it is shown.
    note: str
    #: Made it one order however often it arrived; empty where nothing did.
    key: str
    #: State of an alert before and after.
    before: str | None
    after: str | None
    #: Whatever else the order said, or the service found.
    details: dict[str, Any] = field(default_factory=dict)
    #: When issue and chat had heard of it; None while they still have to.
    told_at: datetime | None


class MarkKind(StrEnum):
    """What a mark at a commit does to the baseline of a series."""

    #: Somebody accepted the change there: the baseline begins with that commit.
    ACCEPTED = "accepted"
    #: Somebody wants a new baseline: it begins with that commit.
    RESET = "reset"
    #: What was confirmed there was a false alarm: the baseline goes on across it.
    VOID = "void"


@dataclass(frozen=True, kw_only=True)
class BaselineMark:
    """A person's word about where the baseline of a series begins."""

    #: Id of the series.
    series: str
    fork: str
    sha: str
    kind: MarkKind
    #: The alert that it came with, if any.
    alert: str | None
    actor: str
    note: str
    at: datetime


def standing(commits: Sequence[AlertCommit]) -> list[AlertCommit]:
    """Return the commits at which the present loss was seen, of all commits of an alert in order.

    A loss that came back is looked at by itself: what was seen before its fix is history.
    """
    raised = [commit for commit in commits if commit.part in RAISED]
    for place in range(len(raised) - 1, -1, -1):
        if raised[place].part is AlertPart.REOPENED:
            return raised[place:]
    return raised
