"""Building ahead, simulated: what further hosts save that build while one measures.

Histories come in, minutes go out. The search is that of `forkwatch bisect`, job by job; the hosts
that build are asked for what it would want next after either outcome of the job under way. They
share a cache that costs no time, and are asked anew when a job begins.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.bisect.histories import (
    BUILD_MINUTES,
    ELSEWHERE_WEIGHT,
    MEASURE_MINUTES,
    Kind,
    draw,
)
from benchmarks.bisect.searches import STOP
from benchmarks.detection.row import markdown, share
from bisects.commits import RangeCommit
from bisects.document import BisectQuestion, CommitState, Observation
from bisects.search import Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.bisect.histories import History
    from bisects.document import BisectDocument
    from bisects.search import NextOrder

#: Hosts that build besides the one that measures.
HELPERS: Final = (0, 1, 2)
SIZES: Final = (1.0, 2.0, 3.0, 5.0)
TRIALS: Final = 100
HEADINGS: Final = (
    "history",
    "hosts that build besides",
    "minutes, mean (p95)",
    "builds, mean",
    "right [95 %]",
    "trials",
)
_AT: Final = datetime(2026, 11, 1, tzinfo=UTC)
#: More than any search takes.
_BUDGET_MINUTES: Final = 1e6
_STARTS: Final = 2
_MINUTE_S: Final = 60.0


def table(*, scale: float, seed: int) -> str:
    """Return the minutes of searches in which nothing is built, by the hosts that build."""
    trials = max(4, round(TRIALS * scale))
    lines = []
    for number, size in enumerate(SIZES):
        kind = Kind(commits=64, size=size, broken=True, informed=True, cached=False)
        for helpers in HELPERS:
            ends = [_one(kind, helpers, [seed, number, trial]) for trial in range(trials)]
            lines.append(_line(kind, helpers, ends))
    return markdown(lines, HEADINGS)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a search ended."""

    minutes: float
    builds: int
    right: bool


@dataclass(kw_only=True)
class Hosts:
    """The host that measures and those that build, with their clock in minutes."""

    history: History
    helpers: int
    now: float = 0.0
    #: When the artifact of a commit is there, or its build has failed.
    ready: dict[int, float] = field(default_factory=dict)
    _free: list[float] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Have every helper wait for work."""
        self._free = [0.0] * self.helpers

    def ahead(self, wanted: Sequence[int]) -> None:
        """Have helpers without work build commits, the likeliest first."""
        for commit in wanted:
            helper = next((one for one, at in enumerate(self._free) if at <= self.now), None)
            if helper is not None and commit not in self.ready:
                self._free[helper] = self.ready[commit] = self.now + BUILD_MINUTES

    def build(self, commit: int) -> float:
        """Wait for the artifact of a commit, or build it; return the minutes that took."""
        began = self.now
        self.now = max(self.now, self.ready.setdefault(commit, self.now + BUILD_MINUTES))
        return self.now - began

    def measure(self, rng: np.random.Generator, order: NextOrder) -> Observation:
        """Do a job and return what it brings."""
        # The good end stands beside every commit.
        building = self.build(order.commit) + self.build(0)
        broken = bool(self.history.broken[order.commit])
        values = [] if broken else [self.history.value(order.commit, rng) for _ in range(_STARTS)]
        measuring = MEASURE_MINUTES * len(values)
        self.now += measuring
        return Observation(
            commit=order.commit,
            job=f"job-{order.commit}",
            state=CommitState.BROKEN if broken else CommitState.MEASURED,
            log_ratios=tuple(values),
            seconds=_MINUTE_S * (building + measuring),
            build_seconds=_MINUTE_S * building,
            failure="it does not build" if broken else "",
        )


def searched(history: History, rng: np.random.Generator, *, helpers: int) -> tuple[Hosts, Search]:
    """Search to the end, with helpers that build what is probably wanted next."""
    search, hosts = _search(history), Hosts(history=history, helpers=helpers)
    while (order := search.next()) is not None:
        if helpers:
            hosts.ahead([0, *_following(search, order)])
        search.take(hosts.measure(rng, order))
    return hosts, search


def _one(kind: Kind, helpers: int, seed: Sequence[int]) -> Ended:
    history = draw(kind, np.random.default_rng([*seed, 2]))
    hosts, search = searched(history, np.random.default_rng([*seed, 3]), helpers=helpers)
    found = search.document()
    # A build that a helper has not finished is not waited for.
    built = [commit for commit, at in hosts.ready.items() if at <= hosts.now]
    return Ended(
        minutes=hosts.now,
        builds=len(built),
        right=history.culprit in (found.culprits or (0,)),
    )


def _line(kind: Kind, helpers: int, ends: Sequence[Ended]) -> tuple[str, ...]:
    minutes = np.array([one.minutes for one in ends])
    return (
        kind.words,
        str(helpers),
        f"{minutes.mean():.0f} ({np.quantile(minutes, 0.95):.0f})",
        f"{np.mean([one.builds for one in ends]):.1f}",
        share(sum(one.right for one in ends), len(ends)),
        str(len(ends)),
    )


def _following(search: Search, order: NextOrder) -> list[int]:
    """Return what may be wanted after an order, the likelier outcome's first."""
    now = search.document()
    slow = sum(one.posterior for one in now.commits[1 : order.commit + 1])
    outcomes = [(slow, now.effect or 0.0), (1 - slow, 0.0)]
    found = []
    for _, level in sorted(outcomes, reverse=True):
        trial = copy.deepcopy(search)
        trial.take(_expected(order, level, now))
        following = trial.next()
        if following is not None:
            found.append(following.commit)
    return found


def _expected(order: NextOrder, level: float, now: BisectDocument) -> Observation:
    """Return what a job would bring that measures a commit exactly at a level."""
    fresh = all(one.commit != order.commit for one in now.observations)
    building = _MINUTE_S * BUILD_MINUTES if fresh else 0.0
    return Observation(
        commit=order.commit,
        job="expected",
        state=CommitState.MEASURED,
        log_ratios=(level,) * order.starts,
        seconds=building + _MINUTE_S * MEASURE_MINUTES * order.starts,
        build_seconds=building,
    )


def _search(history: History) -> Search:
    n = history.kind.commits
    commits = [
        RangeCommit(
            sha=_sha(place),
            subject=f"Commit {place}",
            author="Somebody",
            committed_at=_AT,
            files=_files(history, place),
        )
        for place in range(n)
    ]
    question = BisectQuestion(
        fork="simulated",
        workload="scan",
        suite="commit",
        host_class="simulated",
        variant="rel",
        config="default",
        good=_sha(0),
        bad=_sha(n - 1),
        stop=STOP,
        budget_minutes=_BUDGET_MINUTES,
    )
    return Search(
        question,
        commits,
        engine="mariadb",
        tool_version="simulated",
        build_seconds=_MINUTE_S * BUILD_MINUTES,
        measure_seconds=_MINUTE_S * MEASURE_MINUTES * _STARTS,
        starts_each=_STARTS,
    )


def _files(history: History, place: int) -> tuple[str, ...]:
    """Return paths that weigh as the history says."""
    known = place and history.weights[place - 1] == ELSEWHERE_WEIGHT
    return ("README.md",) if known else ("sql/handler.cc",)


def _sha(place: int) -> str:
    return f"{place + 1:040x}"
