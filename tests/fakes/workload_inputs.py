"""What one commit's own run is judged by, from a level: workloads with a calm host's noise."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from results.metric import THROUGHPUT
from results.series import SeriesKey
from results.slice import SideName
from service.core.model import JobKind, SampleSet
from service.flows.baseline import SingleInputs
from service.flows.judge import judge_single
from tests.fakes.run_documents import sha
from workloads.plan import Gates

if TYPE_CHECKING:
    from service.core.model import VerdictRecord

AT = datetime(2026, 11, 3, 6, 30, tzinfo=UTC)
GATES = Gates()
CANDIDATE = sha("c")


def key(workload: str = "scan") -> SeriesKey:
    return SeriesKey(
        fork="demo",
        branch="main",
        host_class="small",
        variant="rel",
        config="default",
        workload=workload,
        metric=THROUGHPUT.name,
        dataset="small:1",
        placement="shared-core",
    )


#: Starts of a set, and the most that a pair of them was allowed.
STARTS = 3


def a_set(level: float, *, seed: int, run: str = "run", **said: Any) -> SampleSet:
    """Three starts of two slices around a level, with the noise of a calm host."""
    rng = random.Random(seed)
    level *= rng.lognormvariate(0, 0.004)
    return SampleSet(
        run=run,
        side=said.get("side", SideName.CANDIDATE),
        sha=said.get("sha", CANDIDATE),
        kind=said.get("kind", JobKind.SINGLE),
        starts=tuple(
            tuple(level * rng.lognormvariate(0, 0.003) for _ in range(2)) for _ in range(STARTS)
        ),
    )


def inputs(level: float, *, runs: int = 6, workload: str = "scan") -> SingleInputs:
    """A candidate at `level` after so many runs at 100."""
    baseline = tuple(a_set(100.0, seed=n, run=f"run-{n}") for n in range(runs))
    return SingleInputs(
        series=key(workload), history=baseline, candidate=a_set(level, seed=99, run="new")
    )


def judged(*items: SingleInputs, gates: Gates = GATES) -> list[VerdictRecord]:
    return judge_single(items, gates, run="new", sha=CANDIDATE, at=AT)
