"""How often a commit without a change is called a regression, through the code that judges.

`python -m benchmarks.detection.many_promise COMMITS WORKLOADS SHARED`: the gate is so small that
every significant change is relevant, so that the levels alone keep the promise.
"""

from __future__ import annotations

import sys
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from detectors.verdict import Decision
from results.metric import THROUGHPUT
from results.series import SeriesKey
from results.slice import SideName
from service.core.model import JobKind, SampleSet
from service.flows.baseline import PairInputs, SingleInputs
from service.flows.judge import judge_pair, judge_single
from service.flows.suite import read_finding
from workloads.plan import Gates

if TYPE_CHECKING:
    from numpy.typing import NDArray

AT: Final = datetime(2026, 11, 3, tzinfo=UTC)
RUNS, STARTS, CONFIRM_STARTS = 10, 3, 4
RUN_SD, START_SD, SLICE_SD = 0.010, 0.008, 0.005
#: A promise of one in a hundred leaves something to count.
GATES: Final = Gates(default=0.001, false_alarm_rate=0.01)


def main() -> None:
    """Judge commits without a change and print what was said of them."""
    commits, workloads, common = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    rng = np.random.default_rng(20261121)
    counts: Counter[str] = Counter()
    for _ in range(commits):
        counts.update(_judge(rng, workloads=workloads, common=common))
    print(f"{commits} commits of {workloads} workloads that share {common:.1%}:")
    for what, count in sorted(counts.items()):
        print(f"  {what}: {count} ({count / commits:.2%})")


def _judge(rng: np.random.Generator, *, workloads: int, common: float) -> list[str]:
    moves = [
        common * (rng.standard_normal() + rng.standard_normal(STARTS)) for _ in range(RUNS + 1)
    ]
    own = [
        SingleInputs(
            series=series_key(number),
            history=tuple(_samples(rng, moves[run], run=f"run-{run}") for run in range(RUNS)),
            candidate=_samples(rng, moves[-1], run="new"),
        )
        for number in range(workloads)
    ]
    singles = judge_single(own, GATES, run="new", sha="new", at=AT)
    suite = read_finding(singles)
    said = []
    if any(single.suspicious for single in singles):
        said.append("a workload suspected")
    if suite is not None and suite.suspicious:
        said.append("the suite suspected")
    if not said:
        return []
    sides = [common * rng.standard_normal(CONFIRM_STARTS) for _ in range(2)]
    pairs = [
        PairInputs(
            series=single.series,
            baseline=_samples(rng, sides[0], run="pair", side=SideName.BASELINE),
            candidate=_samples(rng, sides[1], run="pair"),
        )
        for single in singles
    ]
    by_name = {single.series.workload: single for single in singles}
    found = judge_pair(
        pairs,
        by_name,
        GATES,
        starts_max=CONFIRM_STARTS,
        run="pair",
        sha="new",
        at=AT,
        own=own,
    )
    decisions = {record.decision for record in found}
    changes = (Decision.REGRESSION, Decision.IMPROVEMENT)
    said += [f"called: {decision.value}" for decision in changes if decision in decisions]
    return ["paired", *said]


def _samples(
    rng: np.random.Generator,
    moves: NDArray[np.float64],
    *,
    run: str,
    side: SideName = SideName.CANDIDATE,
) -> SampleSet:
    """Starts that move together by `moves`; sides of a pair share their run's noise."""
    level = 0.0 if run == "pair" else RUN_SD * rng.standard_normal()
    starts = level + moves[:, None] + START_SD * rng.standard_normal((moves.size, 1))
    values = 1000 * np.exp(starts + SLICE_SD * rng.standard_normal((moves.size, 2)))
    rows = tuple(tuple(float(value) for value in start) for start in values)
    return SampleSet(run=run, side=side, sha=run, kind=JobKind.SINGLE, starts=rows)


def series_key(number: int) -> SeriesKey:
    """Return the key of the throughput of one of many workloads."""
    return SeriesKey(
        fork="fork",
        branch="main",
        host_class="host",
        variant="rel",
        config="default",
        workload=f"workload-{number}",
        metric=THROUGHPUT.name,
        dataset="small",
        placement="pinned",
    )


if __name__ == "__main__":
    main()
