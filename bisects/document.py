"""The bisect document: a question, its range, what was observed, and what follows from that.

It is printed, stored and shown, and holds everything that a search can be made from again. Texts
of commits are untrusted and only cut here; whoever shows them escapes them.

History of the format (`version`):
1   2026-11: first version.
    2026-11: `merged`; optional.
    2026-11: `by_host` of an observation; optional.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from bisects.commits import RANGE_COMMITS_MAX
from results.values import GitHash, Name, NonNegative, Part, Positive

#: Of a subject, an author, a reason: what a table can show.
TEXT_MAX: Final = 500
FAILURE_MAX: Final = 2_000
#: Starts of one job; a run document has no more.
STARTS_MAX: Final = 400
#: Jobs of one bisect: as many as the search takes measurements, and as many broken builds.
OBSERVATIONS_MAX: Final = 4_000


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _cut_failure(text: str) -> str:
    return text if len(text) <= FAILURE_MAX else f"{text[: FAILURE_MAX - 1]}…"


Words = Annotated[str, AfterValidator(_cut)]
Reason = Annotated[str, AfterValidator(_cut_failure)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class CommitState(StrEnum):
    """What is known of one commit."""

    UNTRIED = "untried"
    MEASURED = "measured"
    #: It does not build or run; or the host kept it from that, as its observation says.
    BROKEN = "broken"
    #: It was built, and installs the same files as the good end.
    SAME = "same"


class BisectEnd(StrEnum):
    """Why a search is over."""

    CULPRIT = "culprit"
    #: Nothing changed between the ends.
    NOT_REPRODUCED = "not-reproduced"
    #: Commits that cannot be measured lie between these; together they have the probability.
    INDISTINGUISHABLE = "indistinguishable"
    BUDGET = "budget"
    #: As many measurements as there may be: the step is too small to be seen.
    LIMIT = "limit"
    #: No commit but the good end can be measured.
    NOTHING_TO_MEASURE = "nothing-to-measure"
    CANCELLED = "cancelled"


class BisectQuestion(Part):
    """What is asked: which commit of (good, bad] changed a workload."""

    fork: Name
    workload: Name
    suite: Name
    host_class: Name
    variant: Name
    config: Name
    #: Full hashes.
    good: GitHash
    bad: GitHash
    #: The answer is to be right with this probability.
    stop: Annotated[float, Field(gt=0, lt=1)] = 0.95
    #: Building and measuring end after the job in which so many minutes have been spent.
    budget_minutes: Positive
    seed: Annotated[int, Field(ge=0)] = 0

    @property
    def id(self) -> str:
        """Name of the question: equal questions have equal names."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return f"bisect-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


class Observation(Part):
    """One paired job: a commit in alternation with the artifact of the good end."""

    #: Place in the range; 0 is the good end, which is part of every job and no job's candidate.
    commit: Annotated[int, Field(ge=0, lt=RANGE_COMMITS_MAX)]
    job: Name
    state: CommitState
    #: Log of the throughput of the commit over that of the good end, one for each start.
    log_ratios: tuple[float, ...] = Field(default=(), max_length=STARTS_MAX)
    #: Wall time of the job, and how much of it went into building.
    seconds: NonNegative
    build_seconds: NonNegative
    failure: Reason = ""
    #: Content hash of the commit's artifact where it is known: equal ones are the same software.
    artifact: Words = ""
    #: The host, not the commit, is why it could not be measured, however often that was tried.
    by_host: bool = False

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Observation:
        if self.state is CommitState.UNTRIED:
            raise ValueError("an observation says something of its commit")
        if (self.state is CommitState.MEASURED) != bool(self.log_ratios):
            raise ValueError("a measured commit has log ratios, and no other has")
        if self.by_host and self.state is not CommitState.BROKEN:
            raise ValueError("what was measured or is the same was not kept from it by the host")
        return self


class BisectCommit(Part):
    """A commit of the range with what is known of it."""

    sha: GitHash
    subject: Words
    author: Words
    committed_at: AwareDatetime
    state: CommitState
    #: Probability before and after the observations that it is the first of a new level; of the
    #: first commit, the good end, that nothing changed.
    prior: Probability
    posterior: Probability
    #: Starts in which it was measured.
    starts: Annotated[int, Field(ge=0)]
    #: Mean log ratio to the good end.
    effect: float | None
    failure: Reason = ""


class BisectDocument(Part):
    """A bisect as it stands."""

    format: Literal["forkwatch.bisect"] = "forkwatch.bisect"
    version: Literal[1] = 1
    question: BisectQuestion
    commits: tuple[BisectCommit, ...] = Field(min_length=2, max_length=RANGE_COMMITS_MAX)
    #: In the order they were taken, those from before the search first.
    observations: tuple[Observation, ...] = Field(default=(), max_length=OBSERVATIONS_MAX)
    #: Probability that nothing changed.
    nothing: Probability
    #: None while it goes on.
    end: BisectEnd | None
    #: The fewest commits that have the stated probability, 0 standing for "nothing changed". Empty
    #: while it goes on and where nothing was reproduced.
    culprits: tuple[int, ...] = ()
    #: Of the culprits together, or of "nothing changed"; while it goes on that of the best answer.
    probability: Probability
    #: Log ratio at the most probable culprit with its 95 % interval, given that it is the culprit.
    effect: float | None
    effect_low: float | None
    effect_high: float | None
    entropy_bits: NonNegative
    #: By the jobs of this search, whoever waited for them.
    minutes_spent: NonNegative
    #: An estimate; None once it is over.
    minutes_left: NonNegative | None
    engine: Name
    tool_version: Name
    #: Where the one culprit is a merge: the search among what it merged. Its good end is the first
    #: parent of the merge, its bad end the merge.
    merged: BisectDocument | None = None

    @property
    def culprit(self) -> tuple[BisectDocument, int] | None:
        """The search that names one commit, the deepest one within merges, and its place there."""
        inner = self.merged.culprit if self.merged is not None else None
        if inner is not None:
            return inner
        if self.end is BisectEnd.CULPRIT and len(self.culprits) == 1 and self.culprits[0]:
            return self, self.culprits[0]
        return None

    @property
    def likeliest(self) -> int:
        """The most probable answer; 0 is "nothing changed"."""
        return max(range(len(self.commits)), key=lambda place: self.commits[place].posterior)

    @property
    def measured_starts(self) -> int:
        """Starts that were measured."""
        return sum(len(observation.log_ratios) for observation in self.observations)
