"""Ranges and searches for the tests: commits by number, and a bench that measures them with noise.

Everything random comes from the seed of the bench.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from bisects.commits import RangeCommit
from bisects.document import BisectQuestion, CommitState, Observation
from bisects.search import Search

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from bisects.document import BisectDocument
    from bisects.search import NextOrder

AT = datetime(2026, 11, 3, 6, 30, tzinfo=UTC)
SOURCE = ("sql/handler.cc",)


def sha_of(place: int) -> str:
    return f"{place + 1:08x}".ljust(40, "0")


def a_range(
    count: int, files: Callable[[int], tuple[str, ...]] = lambda _: SOURCE
) -> list[RangeCommit]:
    return [
        RangeCommit(
            sha=sha_of(place),
            subject=f"Change number {place}",
            author="Ada Lovelace",
            committed_at=AT + timedelta(hours=place),
            files=files(place),
        )
        for place in range(count)
    ]


def a_question(count: int, **chosen: Any) -> BisectQuestion:
    facts: dict[str, Any] = {
        "fork": "demo",
        "workload": "scan",
        "suite": "commit",
        "host_class": "small",
        "variant": "rel",
        "config": "default",
        "good": sha_of(0),
        "bad": sha_of(count - 1),
        "budget_minutes": 100_000.0,
    }
    return BisectQuestion(**{**facts, **chosen})


def a_search(count: int, **chosen: Any) -> Search:
    facts: dict[str, Any] = {"engine": "mariadb", "tool_version": "0.1.0"}
    question = chosen.pop("question", None) or a_question(count)
    commits = chosen.pop("commits", None) or a_range(count)
    return Search(question, commits, **{**facts, **chosen})


def observed(commit: int, *log_ratios: float, **more: Any) -> Observation:
    """An observation of a minute, measured where there are values."""
    facts: dict[str, Any] = {
        "job": f"job-{commit}",
        "state": CommitState.MEASURED if log_ratios else CommitState.BROKEN,
        "seconds": 60.0,
        "build_seconds": 0.0,
        "failure": "" if log_ratios else "build: make failed with status 2",
    }
    return Observation(commit=commit, log_ratios=log_ratios, **{**facts, **more})


class Bench:
    """Measures commits of a range in which one step is planted; culprit 0 is none."""

    def __init__(
        self,
        culprit: int,
        *,
        step: float = -0.1,
        sd: float = 0.01,
        broken: Collection[int] = (),
        same: Collection[int] = (),
        seed: int = 1,
    ) -> None:
        self.culprit, self.step, self.sd = culprit, step, sd
        self.broken, self.same = broken, same
        self.asked: list[int] = []
        self._rng = random.Random(seed)

    def observe(self, order: NextOrder) -> Observation:
        self.asked.append(order.commit)
        if order.commit in self.broken:
            return observed(order.commit)
        if order.commit in self.same:
            return observed(order.commit, state=CommitState.SAME, failure="")
        level = self.step if 0 < self.culprit <= order.commit else 0.0
        return observed(
            order.commit, *(self._rng.gauss(level, self.sd) for _ in range(order.starts))
        )


def searched(search: Search, bench: Bench) -> BisectDocument:
    """Search to the end."""
    while (order := search.next()) is not None:
        search.take(bench.observe(order))
    return search.document()
