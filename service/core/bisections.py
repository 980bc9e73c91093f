"""The nouns of bisects as frozen values: what was asked, what it is searched in, how far it is.

The store returns these; flows, pages and the API read them. What a bisect finds, and what is
measured next, is for the package `bisects` to say. This module knows neither tables nor HTTP.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  the API makes its schema from these classes
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from bisects.document import BisectQuestion, Observation  # noqa: TC001  as datetime
from service.core.errors import ActionError

if TYPE_CHECKING:
    from bisects.commits import RangeCommit
    from service.core.alert_actions import AlertStep
    from service.core.model import Alert

#: Probability at which a search ends, where nobody wants another.
STOP_USUAL: Final = 0.95
#: Below, the answer is not worth its name; above, the last digits cost more than the first.
STOP_MIN, STOP_MAX = 0.5, 0.999
#: Minutes of building and measuring, where nobody gives more or less.
BUDGET_MINUTES_USUAL: Final = 120.0
#: A day: what takes longer wants a smaller range, or several people to agree on it.
BUDGET_MINUTES_MAX: Final = 1_440.0


class BisectRefusedError(ActionError):
    """This cannot be bisected now."""


class BisectState(StrEnum):
    """How far a bisect has come."""

    #: Written down; another one of its fork is under way.
    WAITING = "waiting"
    #: Its commits are being built and measured.
    MEASURING = "measuring"
    #: It has an answer, of which the document says what it is worth.
    OVER = "over"
    #: Somebody ended it.
    CANCELLED = "cancelled"
    #: The service could not follow it to the end.
    FAILED = "failed"


#: It may still cost machine time.
UNDER_WAY: Final = (BisectState.WAITING, BisectState.MEASURING)


class BisectJobState(StrEnum):
    """How far one measurement of a bisect has come."""

    #: Written down; no runner was started yet.
    WAITING = "waiting"
    #: A runner was started.
    MEASURING = "measuring"
    #: The run document is in the store.
    STORED = "stored"
    #: What it says of its commit is in the store.
    OBSERVED = "observed"
    #: It brought nothing that counts; the job says why.
    FAILED = "failed"


#: Nothing more happens about a job in one of these.
JOB_ENDED: Final = (BisectJobState.OBSERVED, BisectJobState.FAILED)


@dataclass(frozen=True, kw_only=True)
class BisectAsk:
    """What somebody wants to be searched."""

    #: A branch, a tag or a hash, not looked up yet.
    good: str
    bad: str
    #: `github:LOGIN`, `slack:USERID`, `token:NAME`, or `forkwatch` itself.
    actor: str
    #: One of `OrderVia`.
    via: str
    #: None asks for the one that the alert is about, or the only one of the suite.
    workload: str | None = None
    #: Those of the service where None.
    suite: str | None = None
    host_class: str | None = None
    stop: float = STOP_USUAL
    budget_minutes: float = BUDGET_MINUTES_USUAL
    #: The alert on whose issue it was asked for; it counts if the range is the alert's.
    alert: str | None = None
    #: Number of the issue or pull request that the order was written in.
    number: int | None = None


@dataclass(frozen=True, kw_only=True)
class Bisect:
    """A bisect and how far it has come."""

    id: str
    question: BisectQuestion
    state: BisectState
    #: Commits of the range, both ends counted.
    commits: int
    #: The alert whose range is searched, if it is one's.
    alert: str | None
    #: Who asked, as in an order, and through what.
    asked_by: str
    via: str
    #: Number of the issue or pull request that hears of it, if one does.
    number: int | None
    #: One sentence on what is known; empty before the first measurement.
    said: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a search is made from, written down once, so that it can be replayed.

    Only observations and `outside` come to it later; with the same ones it goes on in the same way.
    """

    #: Oldest first: the good end, ..., the bad end.
    commits: tuple[RangeCommit, ...]
    engine: str
    #: Of the tables; empty where the plan does not say.
    storage_engine: str
    tool_version: str
    #: The plan as the default branch had it.
    plan_text: str
    #: False where a stranger's code may be among the commits.
    trusted: bool
    #: Hashes that an artifact is expected of.
    built: tuple[str, ...] = ()
    #: What a build takes; None where none was seen.
    build_seconds: float | None = None
    #: Noise of one start's log ratio with its degrees of freedom, if it is known.
    noise_sd: float | None = None
    noise_df: float = 0.0
    #: Observations from before, such as the job that confirmed the alert.
    known: tuple[Observation, ...] = ()
    #: Source files that commits of the range touch and that neither end's server is made of. The
    #: first job of the bad end may tell them later: a search that is made again knows them from
    #: its beginning.
    outside: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BisectJob:
    """One measurement of a bisect: a commit in alternation with the good end."""

    id: str
    bisect: str
    #: Place of the commit in the range, and its hash.
    commit: int
    sha: str
    state: BisectJobState
    #: Identifier that the run document will have.
    run: str
    #: The most starts of each side.
    starts: int
    #: How many times a runner was started.
    attempts: int
    #: Why it brought nothing that counts; empty where it did.
    said: str
    #: What it says of its commit; None until that is stored.
    observation: Observation | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def digest_of(plan_text: str) -> str:
    """Return the SHA-256 of a plan; what was measured under another one is not mixed in."""
    return hashlib.sha256(plan_text.encode()).hexdigest()


@runtime_checkable
class AlertNews(Protocol):
    """Says something where an alert is talked about, without closing or opening it."""

    def tell_news(self, alert: Alert, sentence: str, text: str, *, key: str) -> str | None:
        """Say it once for each key; return where, None where the alert is nowhere.

        Args:
            alert: What it is about.
            sentence: All that a chat wants to hear, in Markdown.
            text: The whole of it in Markdown, for places that take more.
            key: What the news is, such as the end of a bisect.
        """
        ...


class AlertSteps(Protocol):
    """Notes what the service itself does about an alert."""

    def advance(
        self, alert_id: str, step: AlertStep, *, actor: str, note: str = "", key: str = ""
    ) -> Alert:
        """Note it once for each key.

        Raises:
            ActionError: There is no such alert, or that cannot happen now.
        """
        ...
