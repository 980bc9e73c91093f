"""The machine of the story: orders come in, run documents with measured-like noise go out.

The fork says how fast each commit is. Noise has the levels of the real thing, drawn from a seed and
the job's name, so that the same story has the same numbers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from detectors.sequential import SequentialPlan, look
from results.document import (
    Artifact,
    Dataset,
    Failure,
    Host,
    Outcome,
    Placement,
    RunDocument,
    Side,
    Start,
    Toolchain,
)
from results.slice import SideName
from tests.fakes.story.slices import HABITS, sliced
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from results.job import JobOrder
    from tests.fakes.story.fork import StoryFork
    from workloads.plan import Plan

BUILD_SECONDS: Final = 240.0
#: Of a start, beside its slices: restoring, starting, warming up, stopping.
START_SECONDS: Final = 45.0
#: A runner that is told no level looks at this one.
_ALPHA: Final = 0.01
_FIRST_LOOK: Final = 2
_SIDES: Final = (SideName.BASELINE, SideName.CANDIDATE)

#: Throughputs by (workload, side): starts x slices. A start that left a workload alone is empty.
_Rows = dict[tuple[str, SideName], list[list[float]]]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measures commits of one fork."""

    fork: StoryFork
    #: Of all noise.
    seed: int
    #: Names of what was built, which is never built again.
    built: set[str] = field(default_factory=set)

    def document(self, order: JobOrder, *, at: datetime) -> RunDocument:
        """Return the document of a job that begins now."""
        plan = parse_plan(order.plan)
        if self._is_same(order):
            return self._written(order, plan, Outcome.UNCHANGED, {}, at=at)
        rng = random.Random(f"{self.seed}:{order.job}")
        if order.baseline is not None:
            rows = self._pair(order, plan, rng)
            return self._written(order, plan, Outcome.MEASURED, rows, at=at)
        rows = self._single(order, plan, rng)
        trouble = self.fork.deed(order.candidate).trouble
        outcome = Outcome.UNSTABLE if trouble else Outcome.MEASURED
        return self._written(order, plan, outcome, rows, at=at)

    def _is_same(self, order: JobOrder) -> bool:
        """Whether the candidate installs what it would be compared with."""
        other = order.baseline or order.unchanged_from
        content = self.fork.content
        return other is not None and content(other) == content(order.candidate)

    def _single(self, order: JobOrder, plan: Plan, rng: random.Random) -> _Rows:
        suite, luck = plan.suite(order.suite), self.fork.deed(order.candidate).luck
        starts = order.starts or suite.starts
        rows: _Rows = {}
        for workload in order.workloads or suite.workloads:
            run = self._level(order.candidate, workload) * luck.get(workload, 1.0)
            run *= rng.lognormvariate(0, HABITS[workload].run_sd)
            rows[workload, SideName.CANDIDATE] = [
                _start(rng, workload, run, slices=suite.slices) for _ in range(starts)
            ]
        return rows

    def _pair(self, order: JobOrder, plan: Plan, rng: random.Random) -> _Rows:
        """Return both sides, measured until every workload is decided, as a runner does."""
        suite = plan.suite(order.suite)
        starts_max = order.starts or suite.confirm_starts
        undecided = list(order.workloads or suite.workloads)
        rows: _Rows = {(workload, side): [] for workload in undecided for side in _SIDES}
        shas = {SideName.BASELINE: order.baseline or "", SideName.CANDIDATE: order.candidate}
        # Both sides share the day, so that what differs between runs is in neither.
        days = {w: rng.lognormvariate(0, HABITS[w].run_sd) for w in undecided}
        for number in range(1, starts_max + 1):
            for workload in undecided:
                for side in _SIDES:
                    level = self._level(shas[side], workload) * days[workload]
                    rows[workload, side].append(_start(rng, workload, level, slices=suite.slices))
            if number >= _FIRST_LOOK:
                undecided = [w for w in undecided if _undecided(order, plan, w, rows, starts_max)]
        return rows

    def _level(self, sha: str, workload: str) -> float:
        return HABITS[workload].level_ops_s * self.fork.factor(sha, workload)

    def _written(
        self, order: JobOrder, plan: Plan, outcome: Outcome, rows: _Rows, *, at: datetime
    ) -> RunDocument:
        suite = plan.suite(order.suite)
        candidate = self._side(order.candidate, suite.build)
        baseline = self._side(order.baseline, suite.build) if order.baseline else None
        sides = [side for side in (baseline, candidate) if side is not None]
        builds = sum(_building(side) for side in sides)
        starts = tuple(_starts(rows, at=at + timedelta(seconds=builds), seconds=suite.seconds))
        measured = sum(start.seconds for start in starts)
        unstable = outcome is Outcome.UNSTABLE
        trouble = self.fork.deed(order.candidate).trouble if unstable else ""
        dataset = plan.datasets[suite.dataset]
        return RunDocument(
            id=order.run,
            job=order.job,
            fork=plan.fork.name,
            branch=order.branch,
            suite=order.suite,
            config=suite.config,
            variant=suite.build,
            tool_version="0.1.0",
            created_at=at,
            finished_at=at + timedelta(seconds=builds + measured),
            seed=order.seed,
            threads=suite.threads,
            outcome=outcome,
            failure=Failure(stage="host", message=trouble) if unstable else None,
            host=_host(order.host_class, (trouble,) if unstable else ()),
            placement=Placement(mode="disjoint", server_cpus=(2, 3, 4, 5), client_cpus=(6, 7)),
            dataset=Dataset(
                name=suite.dataset,
                digest="5a" * 32,
                engine_format="innodb-10.11",
                tables=dataset.tables,
                rows_per_table=dataset.rows,
            ),
            candidate=candidate,
            baseline=baseline,
            starts=starts,
            starts_max=(order.starts or suite.confirm_starts) if order.baseline else None,
            stage_seconds={"build": builds, "measure": measured},
        )

    def _side(self, sha: str, variant: str) -> Side:
        commit, content = self.fork.commit(sha), self.fork.content(sha)
        cached = content in self.built
        self.built.add(content)
        toolchain = Toolchain(
            c_compiler="gcc 12.2.0",
            cxx_compiler="g++ 12.2.0",
            cmake="3.25.1",
            linker="mold 1.10.1",
            digest="c4" * 8,
        )
        artifact = Artifact(
            id=f"artifact-{sha[:12]}",
            variant=variant,
            tree=commit.tree,
            toolchain=toolchain,
            content_hash=content,
            installed_bytes=412_000_000,
            build_seconds=BUILD_SECONDS,
            cached=cached,
            server_version="10.11.19-MariaDB",
        )
        return Side(commit=commit, artifact=artifact)


def _building(side: Side) -> float:
    return 0.0 if side.artifact is None or side.artifact.cached else BUILD_SECONDS


def _undecided(order: JobOrder, plan: Plan, workload: str, rows: _Rows, starts_max: int) -> bool:
    rule = SequentialPlan(
        gate=plan.gates.gate(workload),
        alpha=order.alphas.get(workload, _ALPHA),
        starts_max=starts_max,
    )
    sides = [rows[workload, side] for side in _SIDES]
    return not look(*sides, plan=rule).stopped


def _start(rng: random.Random, workload: str, level: float, *, slices: int) -> list[float]:
    habit = HABITS[workload]
    start = level * rng.lognormvariate(0, habit.start_sd)
    return [start * rng.lognormvariate(0, habit.slice_sd) for _ in range(slices)]


def _starts(rows: _Rows, *, at: datetime, seconds: float) -> Iterator[Start]:
    """Give the starts of a document one after the other."""
    for index in range(max((len(starts) for starts in rows.values()), default=0)):
        pieces = list(_pieces(rows, index))
        slices = tuple(
            sliced(workload, side, value, sequence=place, at=at, seconds=seconds)
            for place, (workload, side, value) in enumerate(pieces)
        )
        measured = seconds * len(pieces)
        yield Start(
            index=index,
            started_at=at,
            seconds=START_SECONDS + measured,
            measured_seconds=measured,
            slices=slices,
        )
        at += timedelta(seconds=START_SECONDS + measured)


def _pieces(
    rows: Mapping[tuple[str, SideName], Sequence[Sequence[float]]], index: int
) -> Iterator[tuple[str, SideName, float]]:
    """Give the slices of one start in the order of measuring: workload by workload, in turns."""
    for workload in dict.fromkeys(workload for workload, _ in rows):
        sides = [side for side in _SIDES if (workload, side) in rows]
        there = [(side, rows[workload, side]) for side in sides]
        turns = [[(side, value) for value in own[index]] for side, own in there if index < len(own)]
        for turn in zip(*turns, strict=True):
            for side, value in turn:
                yield workload, side, value


def _host(host_class: str, warnings: tuple[str, ...]) -> Host:
    return Host(
        name="bench-1",
        host_class=host_class,
        cpu_model="AMD EPYC 7302P 16-Core Processor",
        logical_cpus=8,
        memory_bytes=32 * 2**30,
        kernel="6.1.0-26-amd64",
        os="Debian 12",
        virtualised=False,
        settings={"governor": "performance", "turbo": "off", "smt": "off", "thp": "madvise"},
        warnings=warnings,
        fingerprint="b7" * 16,
    )
