"""The nouns of the service as frozen values.

The store returns these and nothing else; pages, the API and the flows read them. This module knows
neither tables nor HTTP. The states are drawn in docs/job-lifecycle.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime  # noqa: TC003  the API makes its schema from these classes
from enum import StrEnum
from functools import cached_property
from typing import Any

from detectors.change import Change, Interval
from detectors.samples import Starts, read_starts
from detectors.verdict import Decision, Verdict
from results.document import Outcome  # noqa: TC001  as datetime
from results.series import SeriesKey  # noqa: TC001  as datetime
from results.slice import SideName  # noqa: TC001  as datetime


class CommitState(StrEnum):
    """How far the flow of a commit has come."""

    #: Known from git; earlier commits are still being measured.
    WAITING = "waiting"
    #: The job that measures this commit alone is out.
    MEASURING = "measuring"
    #: The numbers were suspicious; the paired job is out.
    CONFIRMING = "confirming"
    #: Nothing more will happen; `CommitOutcome` says what came of it.
    FINISHED = "finished"


class CommitOutcome(StrEnum):
    """What came of a commit, over all its workloads; set when the commit is finished."""

    #: The first measured commit of its series: others will be compared with it.
    BASELINE = "baseline"
    #: Shown equivalent within the gate on every workload.
    NO_CHANGE = "no-change"
    #: Confirmed slower on at least one workload.
    REGRESSION = "regression"
    #: Confirmed faster on at least one workload, slower on none.
    IMPROVEMENT = "improvement"
    #: At least one workload could be neither cleared nor confirmed.
    INCONCLUSIVE = "inconclusive"
    #: Did not configure, compile or install.
    BUILD_FAILED = "build-failed"
    #: Installs the same content as an ancestor; nothing was measured.
    UNCHANGED = "unchanged"
    #: The measurement failed, or its runner was lost more often than allowed.
    FAILED = "failed"
    #: The host could not be trusted; the numbers are kept and not judged.
    UNSTABLE = "unstable"
    #: Not measured: newer commits waited, or a backfill has not come to it.
    SKIPPED = "skipped"


class JobKind(StrEnum):
    """What a job measures."""

    #: One commit alone, judged against the stored baseline.
    SINGLE = "single"
    #: A commit in alternation with its baseline, to confirm a suspicion.
    CONFIRM = "confirm"


class JobState(StrEnum):
    """How far a job has come."""

    #: Written down; no runner was started yet.
    CREATED = "created"
    #: A runner was started.
    DISPATCHED = "dispatched"
    #: The run document is in the store.
    STORED = "stored"
    #: Runners were lost more often than allowed.
    ABANDONED = "abandoned"


class JobStatus(StrEnum):
    """What a dispatcher sees when it looks at a job."""

    #: The run document is there.
    FINISHED = "finished"
    #: A runner works on it.
    ALIVE = "alive"
    #: Neither a document nor a runner.
    LOST = "lost"


class AlertState(StrEnum):
    """How far an alert has come; `core.alert_actions` has the transitions."""

    #: A paired job has still to confirm it. Nobody is told, and no alert is stored yet: this is the
    #: time in which its commit is `confirming`.
    SUSPECTED = "suspected"
    #: Shown by a paired job, and not yet answered by anybody.
    CONFIRMED = "confirmed"
    #: The commits of its range are being measured.
    BISECTING = "bisecting"
    #: One commit of its range is named.
    CULPRIT_FOUND = "culprit-found"
    #: Somebody looks after it.
    ACKNOWLEDGED = "acknowledged"
    #: Real and intended: later commits are compared with the new level.
    ACCEPTED = "accepted"
    #: The loss is gone.
    FIXED = "fixed"
    #: There was no loss.
    FALSE = "false"


class EventKind(StrEnum):
    """What happened to a commit."""

    SEEN = "seen"
    DISPATCHED = "dispatched"
    RUNNER_LOST = "runner-lost"
    STORED = "stored"
    BASELINE = "baseline"
    JUDGED = "judged"
    SUSPICIOUS = "suspicious"
    CONFIRM_JUDGED = "confirm-judged"
    ALERTED = "alerted"
    ALERT_CHANGED = "alert-changed"
    #: A series begins anew, because what it was measured under is no more; or how it relates.
    SERIES_BEGAN = "series-began"
    #: Measured against itself for the sake of a host, it was called different.
    AA_CHECK = "aa-check"
    FINISHED = "finished"


@dataclass(frozen=True, kw_only=True)
class Fork:
    """A watched repository."""

    name: str
    branch: str
    first_seen_at: datetime


@dataclass(frozen=True, kw_only=True)
class GitCommit:
    """A commit as the code host describes it."""

    sha: str
    tree: str
    #: First parent; None for the first commit of all.
    parent: str | None
    author: str
    subject: str
    committed_at: datetime


@dataclass(frozen=True, kw_only=True)
class CommitRecord:
    """A commit of a fork and what became of it."""

    fork: str
    sha: str
    tree: str
    #: First parent; it need not be in the store.
    parent: str | None
    author: str
    subject: str
    committed_at: datetime
    #: Order in which the branch's commits were seen; grows, oldest first.
    position: int
    state: CommitState
    #: None until finished.
    outcome: CommitOutcome | None
    #: One sentence on the outcome; empty until finished.
    reason: str
    seen_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Job:
    """One measurement asked of a runner."""

    id: str
    fork: str
    sha: str
    kind: JobKind
    state: JobState
    host_class: str
    #: Identifier that the run document will have.
    run: str
    #: Baseline of a confirm job.
    baseline_sha: str | None
    #: What the runner is asked, as a job order in JSON without its credential.
    order: str
    #: How many times a runner was started.
    attempts: int
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run as its columns tell it; `store.runs.document` has the whole of it."""

    id: str
    job: str
    fork: str
    sha: str
    kind: JobKind
    branch: str
    suite: str
    config: str
    variant: str
    host_class: str
    host_name: str
    outcome: Outcome
    #: Baseline of a paired run.
    baseline_sha: str | None
    #: Digest over the candidate's installed files; None where it was not built.
    content_hash: str | None
    starts: int
    created_at: datetime
    finished_at: datetime
    stored_at: datetime
    #: SHA-256 of the canonical document: equal digests are the same document.
    digest: str


@dataclass(frozen=True, kw_only=True)
class SampleSet:
    """The samples of one series from one side of one run."""

    run: str
    side: SideName
    sha: str
    kind: JobKind
    #: Starts x slices, in natural units; a start without a usable slice is an empty row, so that
    #: row i of both sides of a pair were measured together.
    starts: tuple[tuple[float, ...], ...]

    @cached_property
    def measured(self) -> Starts:
        """Starts that have at least one sample, as the detectors read them.

        Each is looked at by several of them, and one of a hundred in a baseline.
        """
        return read_starts([list(start) for start in self.starts if start], what=self.run)


@dataclass(frozen=True, kw_only=True)
class SeriesPoint:
    """One point of a series' chart: a commit's samples, in branch order."""

    sha: str
    position: int
    subject: str
    committed_at: datetime
    samples: SampleSet


@dataclass(frozen=True, kw_only=True)
class VerdictRecord:
    """A verdict with everything it was made from, so that it can be replayed.

    A verdict of a `single` job is a working result: only the commit's outcome and the verdicts of a
    `confirm` job are said to people as regressions or improvements.
    """

    run: str
    series: SeriesKey
    stage: JobKind
    sha: str
    decision: Decision
    #: Log ratio, candidate over baseline, with its interval.
    effect: float
    low: float
    high: float
    confidence: float
    p_value: float
    detectable_effect: float
    n_baseline: int
    n_candidate: int
    #: Name and version of the rule that found the change.
    method: str
    warnings: tuple[str, ...]
    direction: int
    gate: float
    alpha: float
    significant: bool
    relevant: bool
    #: Asks for a confirm; single stage only.
    suspicious: bool
    reason: str
    #: Samples of the baseline, oldest first, each as (run, side).
    baseline_inputs: tuple[tuple[str, str], ...]
    #: Parameters of the judgement beside those above.
    parameters: dict[str, Any] = field(default_factory=dict)
    created_at: datetime

    @property
    def verdict(self) -> Verdict:
        """The verdict as the detectors and reports know it."""
        return Verdict(
            decision=self.decision,
            change=Change(
                effect=self.effect,
                interval=Interval(low=self.low, high=self.high, confidence=self.confidence),
                p_value=self.p_value,
                detectable_effect=self.detectable_effect,
                n_baseline=self.n_baseline,
                n_candidate=self.n_candidate,
                method=self.method,
                warnings=self.warnings,
            ),
            direction=self.direction,
            gate=self.gate,
            alpha=self.alpha,
            significant=self.significant,
            relevant=self.relevant,
            reason=self.reason,
        )


@dataclass(frozen=True, kw_only=True)
class AlertWorkload:
    """What an alert says about one workload; effects are log ratios."""

    workload: str
    effect: float
    low: float
    high: float
    p_value: float
    gate: float


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A confirmed regression, possibly over several workloads."""

    id: str
    fork: str
    #: The first commit seen to be slower; of a loss that came back, the last such commit.
    sha: str
    subject: str
    author: str
    #: The commit it was measured against; the culprit lies in (baseline_sha, sha].
    baseline_sha: str
    state: AlertState
    workloads: tuple[AlertWorkload, ...]
    #: The confirm run.
    run: str
    opened_at: datetime
    #: Who looks after it, as in an order: `github:LOGIN`, or any name that somebody gave.
    owner: str | None = None
    #: The day by which it should be settled.
    due_on: date | None = None
    #: Until then people have asked for no news about it.
    muted_until: datetime | None = None
    #: What people say: a true or a false alarm; None while nobody has.
    true_alarm: bool | None = None
    #: When it was settled; None while it is open.
    closed_at: datetime | None = None

    def muted(self, at: datetime) -> bool:
        """Whether people want no news about it at this time."""
        return self.muted_until is not None and at < self.muted_until


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to a commit; the log is append-only and in order."""

    id: int
    at: datetime
    fork: str
    sha: str
    kind: EventKind
    #: One sentence for people.
    message: str
