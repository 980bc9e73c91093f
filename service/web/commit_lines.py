"""A commit in a line: its outcome, or how far it has come, and one sentence.

A record comes in, words go out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from service.core.model import CommitState

if TYPE_CHECKING:
    from service.core.model import CommitRecord

_WAITING: Final = {
    CommitState.WAITING: "Waits for the commits before it.",
    CommitState.MEASURING: "Is being built and measured.",
    CommitState.CONFIRMING: "Looks different; a paired job is confirming it.",
    CommitState.FINISHED: "",
}


@dataclass(frozen=True, kw_only=True)
class CommitLine:
    """A commit on a list."""

    commit: CommitRecord
    #: The outcome, or the state while there is none.
    status: str
    sentence: str


def commit_line(record: CommitRecord) -> CommitLine:
    """Return a commit as a line of a list."""
    status = record.outcome.value if record.outcome else record.state.value
    return CommitLine(
        commit=record, status=status, sentence=record.reason or _WAITING[record.state]
    )
