"""The nouns of the weekly digest: what the store knows of a week, and the digest as written.

The store returns these values; the flow makes a digest of the former, pages and the command line
read the latter. They know neither tables nor words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from results.document import Outcome
    from results.series import SeriesKey
    from service.core.bisections import Bisect
    from service.core.model import CommitOutcome, JobKind
    from service.core.weeks import Week


@dataclass(frozen=True, kw_only=True)
class Window:
    """The part of a fork's life that a digest is about: from `begins` up to `until`, without it."""

    fork: str
    begins: datetime
    until: datetime


@dataclass(frozen=True, kw_only=True)
class FinishedCommit:
    """A commit whose outcome was written down in the window."""

    sha: str
    subject: str
    author: str
    outcome: CommitOutcome
    #: The sentence that was written down with it.
    reason: str


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A run that came in during the window."""

    id: str
    sha: str
    kind: JobKind
    outcome: Outcome
    host_class: str
    host_name: str
    #: From the beginning of the job to its end, by the runner's clock.
    duration: timedelta


@dataclass(frozen=True, kw_only=True)
class FinishedPullJob:
    """A pair of a pull request that was over in the window."""

    pull: int
    #: Whether a head was judged; one that failed or was superseded cost time all the same.
    judged: bool
    #: Verdicts as they were kept; empty where there are none.
    verdicts: str
    #: From its first runner to its end; none for one that no runner was started for.
    duration: timedelta


@dataclass(frozen=True, kw_only=True)
class BisectWork:
    """What bisects of the fork did in the window."""

    #: Those that ended, the first to end first.
    ended: tuple[Bisect, ...]
    #: How many of them named one commit.
    culprits: int
    #: Of the measurements that ended, from the first runner of each to its end.
    duration: timedelta


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """What one verdict on a single commit could have shown."""

    series: str
    detectable_effect: float
    gate: float
    n_baseline: int


@dataclass(frozen=True, kw_only=True)
class HistoryPoint:
    """What one commit's own run measured in one series."""

    sha: str
    stored_at: datetime
    #: Starts x slices, in natural units; each has at least one.
    starts: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class SeriesHistory:
    """The newest points of a series in branch order, oldest first."""

    series: SeriesKey
    points: tuple[HistoryPoint, ...]
    #: Commits among them that begin a level: a change was confirmed there, or somebody said so.
    accepted: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class ReferenceRun:
    """The run of the commit that the branch is compared with: its starts by series."""

    sha: str
    subject: str
    starts: dict[str, tuple[tuple[float, ...], ...]]


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """What got in the way of measuring, over some runs."""

    slices: int
    disturbed: int
    steal_percent_max: float

    @property
    def share(self) -> float:
        """Disturbed slices of all."""
        return self.disturbed / self.slices if self.slices else 0.0


@dataclass(frozen=True, kw_only=True)
class HostWeek:
    """A machine that worked for the fork, and what the window shows of it."""

    host_class: str
    name: str
    #: Its newest run for the fork before the window's end.
    last_run_at: datetime
    #: When its present fingerprint was first seen, and when any was.
    fingerprint_since: datetime
    first_seen_at: datetime
    disturbance: Disturbance
    canary_readings: int
    canary_suspicious: int


@dataclass(frozen=True, kw_only=True)
class StoredDigest:
    """The digest of one week of one fork; it is written once and never again."""

    fork: str
    week: Week
    #: Name of the time zone that the week was cut in.
    zone: str
    #: One line; all there is where nothing was to say.
    headline: str
    #: Markdown.
    text: str
    #: The same as data: facts, and sections as they were worded (docs/digest.md).
    document: dict[str, Any]
    created_at: datetime
    #: None until a sink has taken it.
    sent_at: datetime | None = None
    #: Where it was sent; empty until then.
    sent_to: str = ""
