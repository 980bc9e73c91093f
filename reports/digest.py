"""The week of a fork as frozen values: what the weekly digest is about.

Effects are natural logarithms of candidate over baseline, or of now over then. Nothing is decided
and nothing is worded here; `digest_text` words it, `service.flows` fills it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from detectors.change import Interval


@dataclass(frozen=True, kw_only=True)
class MovedCommit:
    """A commit at which a paired job confirmed a change."""

    sha: str
    subject: str
    author: str
    #: What `reports.sentence` says of the workloads that moved.
    sentence: str
    #: Its workloads with numbers, the largest change first; one without an interval is left out.
    moves: tuple[Standing, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A workload now, against then."""

    workload: str
    #: What tells its series from others of the same workload; empty where there is one only.
    setting: str = ""
    effect: float
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The commit that the whole branch is compared with, and how the workloads stand to it."""

    sha: str
    subject: str
    #: Somebody named it; else it is the first that was measured.
    chosen: bool
    #: Those that differ, the largest first.
    standings: tuple[Standing, ...]
    #: Workloads that were compared and do not differ as far as can be seen.
    same: int
    #: Workloads of this week that this commit has no measurement of.
    absent: int


@dataclass(frozen=True, kw_only=True)
class Drifted:
    """A slow change that no verdict named: a slope, or a step too small for every gate."""

    workload: str
    setting: str = ""
    #: Over all the commits of a slope; of the step alone.
    effect: float
    interval: Interval
    #: Measured commits that it was seen in.
    commits: int
    #: First of them.
    since: str
    #: Where a step is; None for a slope.
    step_at: str | None = None


@dataclass(frozen=True, kw_only=True)
class AlertItem:
    """An alert as one line of the digest."""

    id: str
    sha: str
    subject: str
    author: str
    #: What `reports.sentence` says of the workloads that it is about.
    sentence: str
    state: str
    #: Who looks after it; empty where nobody does.
    owner: str
    #: The day by which it should be settled; empty where nobody said one.
    due: str = ""
    #: That day was over when the week ended.
    overdue: bool = False
    #: Whole days since it was opened, at the end of the week.
    days: int


@dataclass(frozen=True, kw_only=True)
class Precision:
    """What people said about the alerts they have judged so far."""

    true: int
    false: int


@dataclass(frozen=True, kw_only=True)
class EndedBisect:
    """A search for a slow commit that ended in this week."""

    id: str
    workload: str
    #: Its ends; the first is not one of the commits that were searched.
    good: str
    bad: str
    #: Commits between them, the last included.
    commits: int
    #: What `reports.bisect` says of it, or why it was ended.
    said: str
    #: How it ended: `over`, `cancelled` or `failed`.
    state: str
    #: Its alert; empty where it is no alert's.
    alert: str = ""


@dataclass(frozen=True, kw_only=True)
class NoisyWorkload:
    """A workload on which a loss at its gate would be missed more often than one time in five."""

    workload: str
    setting: str = ""
    #: Median of the week's smallest detectable effects, as a log ratio.
    detectable_effect: float
    gate: float
    #: What would help, each a clause.
    advice: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MachineTime:
    """How long machines worked, and what came of it."""

    single_seconds: float = 0.0
    confirm_seconds: float = 0.0
    #: Pairs of pull requests, and of bisects.
    pull_seconds: float = 0.0
    bisect_seconds: float = 0.0
    #: Of commits and their pairs, in runs that brought no numbers to judge.
    wasted_seconds: float = 0.0
    #: Commits that were finished in the week, by what came of them.
    outcomes: dict[str, int]
    #: Suspicions that a paired job cleared, and all that it answered.
    cleared: int = 0
    confirms: int = 0
    #: Pull requests with a verdict, how many of them slower; bisects that named a commit.
    pulls: int = 0
    pulls_slower: int = 0
    culprits: int = 0

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.single_seconds + self.confirm_seconds + self.pull_seconds + self.bisect_seconds


@dataclass(frozen=True, kw_only=True)
class HostHealth:
    """A machine in this week, where there is something to say about it."""

    name: str
    host_class: str
    #: Clauses, the worst first.
    troubles: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Digest:
    """Everything that is said about one week of one fork."""

    fork: str
    branch: str
    #: Such as 2026-W47, with its Monday and Sunday and the zone that they are meant in.
    week: str
    first_day: date
    last_day: date
    zone: str
    #: The week was not over when this was made.
    so_far: bool = False
    #: Commits that came to the branch.
    commits_seen: int
    slower: tuple[MovedCommit, ...] = ()
    faster: tuple[MovedCommit, ...] = ()
    reference: Reference | None = None
    drifted: tuple[Drifted, ...] = ()
    #: Oldest first.
    open_alerts: tuple[AlertItem, ...] = ()
    #: A sentence for each time that series began anew under other conditions.
    began_anew: tuple[str, ...] = ()
    #: Ended in this week, in the order in which they did.
    bisects: tuple[EndedBisect, ...] = ()
    #: Closed in this week.
    fixed: tuple[AlertItem, ...] = ()
    accepted: tuple[AlertItem, ...] = ()
    false_alarms: tuple[AlertItem, ...] = ()
    #: None where nobody has judged an alert yet.
    precision: Precision | None = None
    noisy: tuple[NoisyWorkload, ...] = ()
    machine_time: MachineTime
    hosts: tuple[HostHealth, ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether there is nothing that anybody should hear about.

        Where workloads stand against an old commit is no news by itself, and machine time is not.
        """
        return not (
            self.slower
            or self.faster
            or self.drifted
            or self.open_alerts
            or self.began_anew
            or self.bisects
            or self.fixed
            or self.accepted
            or self.false_alarms
            or self.noisy
            or self.hosts
        )
