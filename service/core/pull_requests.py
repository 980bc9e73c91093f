"""The nouns of pull requests as frozen values: what a head is, what is measured of it, how far.

The store returns these, the flow makes them from webhooks and orders in comments. A job of a pull
request is a pair and nothing else: no series and no baseline ever learns from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from service.core.model import GitCommit


@dataclass(frozen=True, kw_only=True)
class PullCommits:
    """A pull request as git has it now."""

    head: GitCommit
    #: Where head and base branch parted; None where they have nothing in common.
    merge_base: GitCommit | None


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """A pull request as its newest news tells it."""

    fork: str
    number: int
    head_sha: str
    #: The first news of this head, by GitHub's clock: an order given later was given at its sight.
    head_at: datetime
    #: The branch that it asks to be merged into.
    base: str
    #: Its head lies in another repository: anybody may have pushed it.
    outside: bool
    draft: bool
    open: bool
    #: Time of its newest news, by GitHub's clock; older news that arrives later changes nothing.
    changed_at: datetime


class PullJobKind(StrEnum):
    """What a job of a pull request is for."""

    #: The head against its merge base, told in a check and in one comment.
    RUN = "run"
    #: Two commits that somebody named, told in a comment of their own.
    COMPARE = "compare"


class PullJobState(StrEnum):
    """How far a job of a pull request has come."""

    #: Written down; it waits for a machine.
    WAITING = "waiting"
    #: A runner was started.
    MEASURING = "measuring"
    #: The run document is in the store.
    STORED = "stored"
    #: Judged, as far as there was anything to judge.
    JUDGED = "judged"
    #: Nothing was measured; the job says why.
    FAILED = "failed"
    #: A newer head took its place, or the pull request was closed.
    SUPERSEDED = "superseded"


#: Somebody may still have to wait for it.
UNDER_WAY: Final = (PullJobState.WAITING, PullJobState.MEASURING, PullJobState.STORED)


@dataclass(frozen=True, kw_only=True)
class PullJob:
    """One pair measured for a pull request, or asked for in a comment."""

    id: str
    fork: str
    #: Number of the pull request; of a compare, of the issue or pull request that asked.
    pull: int
    kind: PullJobKind
    state: PullJobState
    suite: str
    candidate_sha: str
    #: The merge base of a `run` is looked up when its turn comes.
    baseline_sha: str | None
    #: Identifier that the run document will have.
    run: str
    #: Who asked in a comment, as `github:LOGIN`; empty where a push began it.
    asked_by: str
    #: False for code that nobody with write access has pushed.
    trusted: bool
    #: What the runner is asked, as a job order in JSON; empty before that.
    order: str
    attempts: int
    #: One sentence on what came of it; empty until then.
    said: str
    #: Verdicts as JSON, as `flows.pull_judge` keeps them; empty until judged.
    verdicts: str
    #: Who takes its losses as intended, as `github:LOGIN`, and why; empty where nobody does.
    accepted_by: str
    accepted_reason: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
