"""How often a commit without a change alarms where the processor wanders between single runs.

`python -m benchmarks.detection.wandering_host COMMITS PAIRS RUNS`: commits are judged alone by the
code that judges, on a baseline of so many runs; each that is suspected is then paired so many
times, which counts what is rare without judging a million commits. The gate is so small that the
levels alone keep the promise. Further words, such as `steady`, choose hosts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.detection.many_promise import series_key
from detectors.verdict import Decision
from results.slice import SideName
from service.core.model import JobKind, SampleSet
from service.flows.baseline import PairInputs, SingleInputs
from service.flows.judge import judge_pair, judge_single
from workloads.plan import Gates

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from service.core.model import VerdictRecord

AT: Final = datetime(2026, 11, 3, tzinfo=UTC)
WORKLOADS, STARTS, CONFIRM_STARTS = 3, 3, 4
START_SD, SLICE_SD = 0.008, 0.005
#: Of one side of a start of a pair, beside what both sides share: such a guest is no quiet host.
SIDE_SD: Final = 0.03
GATES: Final = Gates(default=0.001)
#: Runs of a guest with two speeds are 40 % apart: what was seen between two commits of one demo.
STEP: Final = float(np.log(1.4))
#: How often it changes its speed from one run to the next, or is met at the other one.
OFTEN: Final = 0.1


def steady(rng: np.random.Generator, runs: int) -> NDArray[np.float64]:
    """Return the log speed of each run on a quiet host."""
    return 0.01 * rng.standard_normal(runs)


def wandering(rng: np.random.Generator, runs: int) -> NDArray[np.float64]:
    """Return log speeds that are drawn anew for every run, two of them mostly within 40 %."""
    return 0.17 * rng.standard_normal(runs)


def two_speeds(rng: np.random.Generator, runs: int) -> NDArray[np.float64]:
    """Return log speeds where one run in ten meets a processor that is 40 % faster."""
    return STEP * (rng.random(runs) < OFTEN) + steady(rng, runs)


def spells(rng: np.random.Generator, runs: int) -> NDArray[np.float64]:
    """Return log speeds of two kinds that last for ten runs on average."""
    state = (rng.integers(2) + np.cumsum(rng.random(runs) < OFTEN)) % 2
    return STEP * state + steady(rng, runs)


HOSTS: Final = (steady, wandering, two_speeds, spells)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What was said of commits without a change."""

    commits: int
    suspected: int
    #: Pairs of suspected commits that called a regression, and those whose own run had risen.
    pairs: int
    alarms: int
    alarms_after_a_rise: int

    @property
    def alarm_rate(self) -> float:
        """Share of all commits that are called a regression."""
        return self.suspected / self.commits * self.alarms / max(1, self.pairs)

    @property
    def alarm_rate_one_way(self) -> float:
        """The same, were a pair believed in the direction of the suspicion alone."""
        kept = self.alarms - self.alarms_after_a_rise
        return self.suspected / self.commits * kept / max(1, self.pairs)


def count(
    speeds: Callable[[np.random.Generator, int], NDArray[np.float64]],
    *,
    commits: int,
    pairs: int,
    rng: np.random.Generator,
    runs: int = 10,
    gates: Gates = GATES,
) -> Counted:
    """Judge commits without a change, and pair each suspected one so many times."""
    suspected = alarms = after_a_rise = 0
    for _ in range(commits):
        own = _own_runs(speeds(rng, runs + 1), rng)
        singles = judge_single(own, gates, run="new", sha="new", at=AT)
        if not any(single.suspicious for single in singles):
            continue
        suspected += 1
        for _ in range(pairs):
            slower = _called_slower(singles, rng, gates)
            alarms += bool(slower)
            after_a_rise += bool(slower) and all(
                single.suspicious and single.effect > 0 for single in slower
            )
    return Counted(
        commits=commits,
        suspected=suspected,
        pairs=suspected * pairs,
        alarms=alarms,
        alarms_after_a_rise=after_a_rise,
    )


def main() -> None:
    """Print one line of a table for each kind of host."""
    commits, pairs, runs = (int(word) for word in sys.argv[1:4])
    hosts = [host for host in HOSTS if host.__name__ in sys.argv[4:] or not sys.argv[4:]]
    print("| host | runs | suspected | called a regression | as suspected | alarms of pairs |")
    print("|---|---|---|---|---|---|")
    for host in hosts:
        rng = np.random.default_rng(20261122)
        found = count(host, commits=commits, pairs=pairs, rng=rng, runs=runs)
        shares = (found.suspected / commits, found.alarm_rate, found.alarm_rate_one_way)
        cells = " | ".join(f"{share:.3%}" for share in shares)
        name = host.__name__
        print(f"| {name} | {runs} | {cells} | {found.alarms} of {found.pairs} |", flush=True)


def _called_slower(
    singles: list[VerdictRecord], rng: np.random.Generator, gates: Gates
) -> list[VerdictRecord]:
    """Return the single verdicts of the workloads that one pair calls a regression."""
    both = [
        PairInputs(
            series=single.series,
            baseline=_samples(0.0, rng, starts=CONFIRM_STARTS, sd=SIDE_SD, side=SideName.BASELINE),
            candidate=_samples(0.0, rng, starts=CONFIRM_STARTS, sd=SIDE_SD),
        )
        for single in singles
    ]
    by_name = {single.series.workload: single for single in singles}
    found = judge_pair(
        both, by_name, gates, starts_max=CONFIRM_STARTS, run="pair", sha="new", at=AT
    )
    return [
        by_name[record.series.workload]
        for record in found
        if record.decision is Decision.REGRESSION
    ]


def _own_runs(speeds: NDArray[np.float64], rng: np.random.Generator) -> list[SingleInputs]:
    """Return runs whose workloads all have the speed of the processor."""
    found = []
    for number in range(WORKLOADS):
        sets = [_samples(speed, rng, starts=STARTS, sd=START_SD) for speed in speeds]
        found.append(
            SingleInputs(series=series_key(number), history=tuple(sets[:-1]), candidate=sets[-1])
        )
    return found


def _samples(
    speed: float,
    rng: np.random.Generator,
    *,
    starts: int,
    sd: float,
    side: SideName = SideName.CANDIDATE,
) -> SampleSet:
    levels = speed + sd * rng.standard_normal((starts, 1))
    values = 1000 * np.exp(levels + SLICE_SD * rng.standard_normal((starts, 2)))
    rows = tuple(tuple(float(value) for value in start) for start in values)
    return SampleSet(run="run", side=side, sha="run", kind=JobKind.SINGLE, starts=rows)


if __name__ == "__main__":
    main()
