"""The search: observations in, the next measurement out, and the document that says where it is.

It keeps nothing but what it was given, so the same question, commits and observations make the
same search again: that is how a bisect goes on after a crash. Every measurement is a log ratio to
the artifact of the good end, measured beside it, so the level before the change is known.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bisects.commits import refuse_range
from bisects.costs import Costs
from bisects.document import (
    BisectCommit,
    BisectDocument,
    BisectEnd,
    CommitState,
    Observation,
)
from bisects.errors import BisectError
from bisects.prior import weights
from detectors.bisection import Bisection, KnownNoise, StopReason

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from bisects.commits import RangeCommit
    from bisects.document import BisectQuestion

#: Of one job. A pair is judged by the spread of its starts, so that the runner takes no fewer.
STARTS_EACH: Final = 2
#: Coverage of the interval of the effect.
CONFIDENCE: Final = 0.95

_ENDS: Final = {
    StopReason.CULPRIT: BisectEnd.CULPRIT,
    StopReason.NOTHING_CHANGED: BisectEnd.NOT_REPRODUCED,
    StopReason.INDISTINGUISHABLE: BisectEnd.INDISTINGUISHABLE,
    StopReason.LIMIT: BisectEnd.LIMIT,
    StopReason.NOTHING_TO_MEASURE: BisectEnd.NOTHING_TO_MEASURE,
}


@dataclass(frozen=True, kw_only=True)
class NextOrder:
    """What to measure next, in alternation with the good end."""

    #: Place in the range.
    commit: int
    sha: str
    #: Of each side.
    starts: int


class Search:
    """Replays observations: the same question, commits and observations give the same next order.

    Args:
        question: What is asked.
        commits: The range, oldest first: the good end, ..., the bad end.
        engine: Server family or library of the plan.
        tool_version: Written into the document.
        build_seconds: A first guess at one build.
        measure_seconds: A first guess at one job without its build.
        built: Hashes of commits whose artifact is there.
        noise_sd: Of one start's log ratio, where it is known.
        noise_df: Degrees of freedom that this is worth.
        known: Observations from before the search; they cost it nothing.
        starts_each: Starts of each job.
        storage_engine: Of the tables, where it is known.
        outside: Source files that neither end's server is made of, where the builds told; `inform`
            tells it later.

    Raises:
        BisectError: The range is too short or too long, or its ends are not those of the question.
    """

    def __init__(
        self,
        question: BisectQuestion,
        commits: Sequence[RangeCommit],
        *,
        engine: str,
        tool_version: str,
        build_seconds: float = 600.0,
        measure_seconds: float = 60.0,
        built: Collection[str] = (),
        noise_sd: float | None = None,
        noise_df: float = 0.0,
        known: Sequence[Observation] = (),
        starts_each: int = STARTS_EACH,
        storage_engine: str = "",
        outside: Collection[str] = (),
    ) -> None:
        refuse_range(len(commits))
        if (commits[0].sha, commits[-1].sha) != (question.good, question.bad):
            raise BisectError("the first and the last commit of the range are not those asked for")
        self._question, self._commits = question, tuple(commits)
        self._engine, self._tool_version = engine, tool_version
        self._starts_each, self._storage_engine = starts_each, storage_engine
        self._noise = KnownNoise(sd=noise_sd, df=noise_df) if noise_sd and noise_df else None
        ready = set(built)
        self._costs = Costs(
            len(commits),
            build_seconds=build_seconds,
            measure_seconds=measure_seconds,
            built=[place for place, one in enumerate(commits) if one.sha in ready],
        )
        self._observations: list[Observation] = []
        self._begin(outside)
        self._seconds_spent = 0.0
        for observation in known:
            self._add(observation)
        self._price()

    def inform(self, outside: Collection[str]) -> None:
        """Weigh the commits anew: source files that neither end's server is made of are known now.

        The search then stands as if that had been known before its first observation.
        """
        self._begin(outside)
        for observation in self._observations:
            self._weigh(observation)
        self._price()

    def take(self, observation: Observation) -> None:
        """Take in the observation of a job.

        Raises:
            BisectError: It is of no commit of the range, or of the good end.
        """
        self._add(observation)
        self._seconds_spent += observation.seconds
        self._price()

    def next(self) -> NextOrder | None:
        """Return what to measure next; None when the search is over."""
        if self.end is not None:
            return None
        commit = self._bisection.select()
        return NextOrder(commit=commit, sha=self._commits[commit].sha, starts=self._starts_each)

    def is_built(self, commit: int) -> bool:
        """Whether the artifact of a commit is there, as far as is known."""
        return self._costs.is_built(commit)

    def expected(self, order: NextOrder, level: float) -> Observation:
        """Return what a job would bring that measures a commit at exactly a level."""
        building = 0.0 if self._costs.is_built(order.commit) else self._costs.build_seconds
        return Observation(
            commit=order.commit,
            job="expected",
            state=CommitState.MEASURED,
            log_ratios=(level,) * order.starts,
            seconds=building + self._costs.measure_seconds,
            build_seconds=building,
        )

    @property
    def end(self) -> BisectEnd | None:
        """Why the search is over; None while it is not."""
        if len(self._excluded) == len(self._commits) - 1:
            return BisectEnd.NOT_REPRODUCED
        stopped = self._bisection.stopped
        if stopped is not None:
            return _ENDS[stopped]
        spent = self._seconds_spent / 60 >= self._question.budget_minutes
        return BisectEnd.BUDGET if spent else None

    def document(self, *, cancelled: bool = False) -> BisectDocument:
        """Return the search as it stands; cancelled, it is over without having got to an answer."""
        end = self.end or (BisectEnd.CANCELLED if cancelled else None)
        posterior = [_probability(value) for value in self._bisection.posterior]
        culprits: tuple[int, ...] = ()
        if end not in {None, BisectEnd.NOT_REPRODUCED}:
            culprits = self._bisection.culprits()
        held = [posterior[place] for place in culprits]
        if not held:
            held = [posterior[0]] if end else [max(posterior)]
        effect, low, high = self._effect(end)
        own: defaultdict[int, list[Observation]] = defaultdict(list)
        for observation in self._observations:
            own[observation.commit].append(observation)
        return BisectDocument(
            question=self._question,
            commits=tuple(
                self._commit(place, posterior[place], own[place])
                for place in range(len(self._commits))
            ),
            observations=tuple(self._observations),
            nothing=posterior[0],
            end=end,
            culprits=culprits,
            probability=_probability(math.fsum(held)),
            effect=effect,
            effect_low=low,
            effect_high=high,
            entropy_bits=max(0.0, self._bisection.entropy / math.log(2)),
            minutes_spent=self._seconds_spent / 60,
            minutes_left=self._minutes_left() if end is None else None,
            engine=self._engine,
            tool_version=self._tool_version,
        )

    def _begin(self, outside: Collection[str]) -> None:
        """Believe what is believed before any observation."""
        self._bisection = Bisection(
            len(self._commits),
            anchored=True,
            prior=weights(
                self._commits,
                engine=self._engine,
                storage_engine=self._storage_engine,
                outside=frozenset(outside),
            ),
            stop=self._question.stop,
            noise=self._noise,
        )
        self._prior = self._bisection.posterior
        #: Commits that cannot be the culprit, whatever is measured.
        self._excluded: set[int] = set()
        #: Commits that are never measured again.
        self._set_aside: set[int] = set()
        #: The first measured place of each artifact that was met.
        self._artifacts: dict[str, int] = {}

    def _add(self, observation: Observation) -> None:
        self._weigh(observation)
        self._observations.append(observation)
        self._costs.learn(observation)

    def _weigh(self, observation: Observation) -> None:
        """Take in what an observation says of the range."""
        commit = observation.commit
        if not 0 < commit < len(self._commits):
            raise BisectError(
                f"there is no measurement of commit {commit}: the range has 1 to "
                f"{len(self._commits) - 1} after its good end, which is part of every measurement"
            )
        if observation.state is CommitState.SAME:
            # Its level is that of the good end, without any noise: no measurement tells more.
            self._exclude(1, commit)
            self._put_aside(commit)
        elif observation.state is CommitState.BROKEN:
            self._put_aside(commit)
        elif commit not in self._set_aside:
            self._meet(observation.artifact, commit)
            for value in observation.log_ratios:
                self._bisection.record(commit, value)

    def _put_aside(self, commit: int) -> None:
        self._set_aside.add(commit)
        self._bisection.skip(commit)

    def _exclude(self, first: int, last: int) -> None:
        self._excluded.update(range(first, last + 1))
        self._bisection.exclude(first, last)

    def _meet(self, artifact: str, commit: int) -> None:
        """Rule out what lies between two commits that install the same files."""
        if not artifact:
            return
        first = self._artifacts.setdefault(artifact, commit)
        if first != commit:
            self._exclude(min(first, commit) + 1, max(first, commit))

    def _price(self) -> None:
        """Tell the bisection what each commit costs by now."""
        for place in range(1, len(self._commits)):
            self._bisection.set_cost(place, self._costs.of(place))

    def _commit(self, place: int, posterior: float, own: Sequence[Observation]) -> BisectCommit:
        values = [value for one in own for value in one.log_ratios]
        known = self._commits[place]
        return BisectCommit(
            sha=known.sha,
            subject=known.subject,
            author=known.author,
            committed_at=known.committed_at,
            state=self._state(place, own),
            prior=_probability(self._prior[place]),
            posterior=posterior,
            starts=len(values),
            effect=math.fsum(values) / len(values) if values else None,
            failure=next((one.failure for one in own if one.failure), ""),
        )

    def _state(self, place: int, own: Sequence[Observation]) -> CommitState:
        if place == 0:
            # It is one side of every measurement.
            measured = any(one.state is CommitState.MEASURED for one in self._observations)
            return CommitState.MEASURED if measured else CommitState.UNTRIED
        states = {one.state for one in own}
        for state in (CommitState.SAME, CommitState.MEASURED, CommitState.BROKEN):
            if state in states:
                return state
        return CommitState.UNTRIED

    def _effect(self, end: BisectEnd | None) -> tuple[float | None, float | None, float | None]:
        """Return the effect at the most probable culprit and its interval, as far as known."""
        if not self._bisection.n_measurements or end is BisectEnd.NOT_REPRODUCED:
            return None, None, None
        found = self._bisection.effect(CONFIDENCE)
        low, high = found.interval.low, found.interval.high
        return _finite(found.effect), _finite(low), _finite(high)

    def _minutes_left(self) -> float:
        """Return about how many minutes are to come; the budget bounds them."""
        jobs = math.ceil(self._bisection.expected_remaining() / self._starts_each)
        left = self._question.budget_minutes - self._seconds_spent / 60
        return max(0.0, min(self._costs.to_come(jobs) / 60, left))


def _probability(value: float) -> float:
    """Return a probability without what sums of rounded numbers are above 1."""
    return min(1.0, max(0.0, float(value)))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
