"""Jobs of a bisect without a runner: run documents in which a step is planted at one commit."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from forkwatch.bisect_question import question_of
from forkwatch.bisect_showing import progress_line
from forkwatch.bisecting import run, search_of
from results.document import Cause, Outcome
from results.slice import SideName
from tests.fakes.run_documents import a_run

if TYPE_CHECKING:
    from collections.abc import Collection

    from bisects.document import BisectDocument
    from forkwatch.bisect_question import Asked
    from results.document import RunDocument
    from results.job import JobOrder
    from tests.runner.tiny_fork import TinyFork


class PlantedStep:
    """Answers orders as a runner would, with 0.5 % of noise.

    Args:
        slow: Hashes of the commits that scan 10 % slower.
        broken: Those that do not build.
        ends: How the first jobs of a commit end, before one is measured.
        killed: How often the host ends the build of a commit, before it is measured.
    """

    def __init__(
        self,
        slow: Collection[str],
        *,
        broken: Collection[str] = (),
        ends: dict[str, list[Outcome]] | None = None,
        killed: dict[str, int] | None = None,
    ) -> None:
        self.slow, self.broken, self.killed = slow, broken, killed or {}
        self.ends = {sha: list(outcomes) for sha, outcomes in (ends or {}).items()}
        self.orders: list[JobOrder] = []

    @property
    def asked(self) -> Counter[str]:
        """How often each commit was measured."""
        return Counter(order.candidate for order in self.orders)

    def __call__(self, order: JobOrder) -> RunDocument:
        self.orders.append(order)
        assert order.baseline is not None
        assert order.starts is not None
        story = a_run().of("tiny").called(order.run, job=order.job).on(order.candidate)
        story = story.against(order.baseline)
        if order.candidate in self.broken:
            story = story.that(Outcome.BUILD_FAILED, stage="build", message="it does not compile")
            return story.build()
        if self.asked[order.candidate] <= self.killed.get(order.candidate, 0):
            story = story.that(Outcome.FAILED, stage="build", message="cc1plus was killed")
            document = story.build()
            assert document.failure is not None
            failure = document.failure.model_copy(update={"cause": Cause.HOST})
            return document.model_copy(update={"failure": failure})
        ends = self.ends.get(order.candidate, [])
        if ends:
            return story.that(ends.pop(0), stage="host", message="the canary fell").build()
        rng = random.Random(order.seed)
        for side, sha in (
            (SideName.BASELINE, order.baseline),
            (SideName.CANDIDATE, order.candidate),
        ):
            level = 90.0 if sha in self.slow else 100.0
            rows = [[level * rng.lognormvariate(0, 0.0035)] for _ in range(order.starts)]
            story = story.with_samples(order.workloads[0], rows, side=side)
        return story.build()


def ask(fork: TinyFork, good: str, bad: str, **chosen: Any) -> Asked:
    """A question about a range of a fork, with all the time in the world."""
    facts: dict[str, Any] = {
        "plan_path": None,
        "workload": "scan",
        "suite": "commit",
        "stop": 0.95,
        "budget_minutes": 1_000.0,
        "starts_each": 2,
        "seed": 0,
        "host_class": "small",
    }
    return question_of(repository=fork.folder, good=good, bad=bad, **{**facts, **chosen})


def searched(asked: Asked, measure: PlantedStep, told: list[str] | None = None) -> BisectDocument:
    """Search to the end, keeping the lines that whoever waits is told."""
    lines = [] if told is None else told
    return run(
        asked,
        search_of(asked, {}),
        measure=measure,
        tell=lambda now: lines.append(progress_line(now)),
    )
