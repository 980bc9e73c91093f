"""Explaining: what a candidate does more of, in instructions and in profiles of both sides.

Servers, snapshots and workloads come in; an explanation for the run document and SVG files in the
job's folder go out. It judges nothing, and what fails is a gap in the explanation: a job that was
measured well does not fail for want of one.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from detectors.verdict import Decision, decide
from results.document import samples_of
from results.explanation import Explanation, WorkloadExplanation
from results.metric import THROUGHPUT
from results.slice import SideName
from runner import deciding, instructions, profile, profiled_pair
from runner.counters import hardware
from runner.errors import ClientError, HostError, StageError
from runner.lone_server import lone_server, not_yet, run_slice
from runner.placement import usable_cpus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from results.document import Start
    from results.explanation import Instructions, Profile
    from runner.bench import Bench
    from runner.deciding import Question
    from runner.progress import Progress
    from workloads.catalog import Workload

#: Begins no further workload after so many minutes: ten workloads, if counting a pair takes the 14
#: to 40 s of docs/counters.md, and profiling two starts and two slices of ten seconds.
MINUTES: Final = 15.0
#: Folder of the flame graphs below the job's.
FOLDER: Final = "explained"
#: Largest seed that sysbench takes as it is.
_SEED_MAX: Final = 2**31 - 1
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9-]+")

_Found = TypeVar("_Found")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What somebody wants to know, and what it may take."""

    instructions: bool = True
    profile: bool = True
    #: The larger count of operations under callgrind; chosen by throughput where not set.
    operations: int | None = None
    minutes: float = MINUTES
    profile_seconds: int = profiled_pair.SECONDS


def slower(
    starts: Sequence[Start], workloads: Sequence[Workload], question: Question
) -> list[Workload]:
    """Return the workloads of a pair with a regression, the largest loss first."""
    found = []
    for workload in workloads:
        seen = deciding.look_at(starts, workload.name, question)
        if seen is None:
            continue
        verdict = decide(
            seen.change,
            direction=THROUGHPUT.direction,
            gate=question.gates.gate(workload.name),
            alpha=question.plan(workload.name).alpha,
        )
        if verdict.decision is Decision.REGRESSION:
            found.append((seen.change.effect, workload))
    return [workload for _, workload in sorted(found, key=lambda each: each[0])]


def throughputs(starts: Sequence[Start], workloads: Sequence[Workload]) -> dict[str, float]:
    """Return operations per second of the baseline by workload, where there are samples."""
    found = {}
    for workload in workloads:
        rows = samples_of(starts, workload.name, THROUGHPUT.name, SideName.BASELINE)
        values = [value for row in rows for value in row]
        if values:
            found[workload.name] = median(values)
    return found


def missing(wanted: Wanted) -> tuple[str, ...]:
    """Return what this machine cannot do of it, and why; each reason is said once."""
    lacks = {
        "instructions per operation": instructions.missing() if wanted.instructions else "",
        "profiles": profile.missing() if wanted.profile else "",
        "counters of the processor": hardware.missing(),
    }
    reasons: dict[str, list[str]] = {}
    for what, why in lacks.items():
        if why:
            reasons.setdefault(why, []).append(what)
    return tuple(f"no {' and no '.join(whats)}: {why}" for why, whats in reasons.items())


def can_nothing(wanted: Wanted) -> bool:
    """Whether this machine can do nothing at all of what is wanted."""
    counts = wanted.instructions and not instructions.missing()
    samples = wanted.profile and not profile.missing()
    return not (counts or samples)


def explain(
    bench: Bench,
    workloads: Sequence[Workload],
    wanted: Wanted,
    *,
    folder: Path,
    progress: Progress,
    throughput_ops_s: Mapping[str, float] | None = None,
) -> Explanation:
    """Return the explanation of these workloads; flame graphs are files in the job's folder.

    Args:
        bench: The pair, as it was or would be measured.
        workloads: The most interesting first: time may be over before the last.
        wanted: What is done for each.
        folder: The job's.
        progress: Told of each workload.
        throughput_ops_s: The baseline's by workload, where it was measured.
    """
    deadline = time.monotonic() + 60 * wanted.minutes
    known = throughput_ops_s or {}
    found = []
    for number, workload in enumerate(workloads, start=1):
        began = time.monotonic()
        gap = _refusal(bench, workload)
        if not gap and began >= deadline:
            gap = f"left out: the {wanted.minutes:g} minutes for explaining were over"
        if gap:
            found.append(WorkloadExplanation(workload=workload.name, gaps=(gap,)))
            continue
        progress.stage("explain", workload.name)
        one = _One(bench=bench, workload=workload, wanted=wanted, deadline=deadline)
        file = f"{FOLDER}/{number:02}-{_NOT_PLAIN.sub('-', workload.name).strip('-')}.svg"
        explained = one.explain(folder, file, known.get(workload.name))
        spent_s = round(time.monotonic() - began, 3)
        found.append(explained.model_copy(update={"seconds": spent_s}))
    return Explanation(workloads=tuple(found), missing=missing(wanted))


def explain_regressions(
    bench: Bench,
    workloads: Sequence[Workload],
    starts: Sequence[Start],
    question: Question,
    *,
    minutes: float,
    folder: Path,
    progress: Progress,
) -> Explanation:
    """Return the explanation of a measured pair: empty where no workload has a regression."""
    found = slower(starts, workloads, question)
    if not found:
        return Explanation()
    return explain(
        bench,
        found,
        Wanted(minutes=minutes),
        folder=folder,
        progress=progress,
        throughput_ops_s=throughputs(starts, found),
    )


def _refusal(bench: Bench, workload: Workload) -> str:
    """Return why a workload cannot be explained; empty where it can."""
    reasons = (not_yet(spec, workload) for spec in bench.servers.values())
    return next((reason for reason in reasons if reason), "")


@dataclass(frozen=True, kw_only=True)
class _One:
    """One workload of a pair while it is explained."""

    bench: Bench
    workload: Workload
    wanted: Wanted
    #: By the monotonic clock.
    deadline: float

    def explain(
        self, folder: Path, file: str, throughput_ops_s: float | None
    ) -> WorkloadExplanation:
        """Return what can be found out; what cannot be is a gap."""
        gaps: list[str] = []
        drawn: Profile | None = None
        counted: Instructions | None = None
        try:
            if self.wanted.profile and not profile.missing():
                drawn = _or_gap("no profile", lambda: self._profile(folder, file), gaps)
            if self.wanted.instructions and not instructions.missing():
                counted = _or_gap(
                    "no instructions per operation", lambda: self._count(throughput_ops_s), gaps
                )
        finally:
            shutil.rmtree(self.bench.scratch, ignore_errors=True)
        return WorkloadExplanation(
            workload=self.workload.name, instructions=counted, profile=drawn, gaps=tuple(gaps)
        )

    def _profile(self, folder: Path, file: str) -> Profile:
        seconds = self.wanted.profile_seconds
        sampled = profiled_pair.sample(
            self.bench, self.workload, seconds=seconds, seed=self._seed()
        )
        return profiled_pair.draw(
            sampled, title=self.workload.name, seconds=seconds, folder=folder, file=file
        )

    def _count(self, throughput_ops_s: float | None) -> Instructions:
        bench = self.bench
        if self.wanted.operations is not None:
            operations = instructions.counts_up_to(self.wanted.operations)
        else:
            operations = instructions.counts(throughput_ops_s or self._try())
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            raise ClientError("explain", f"the {self.wanted.minutes:g} minutes for it were over")
        found = instructions.second_opinion(
            bench.servers,
            bench.snapshots,
            self.workload,
            bench.dataset,
            operations=operations,
            seed=self._seed(),
            scratch=bench.scratch,
            # Any one will do where nothing was pinned.
            cpu=(bench.placement.server_cpus or usable_cpus())[-1],
            timeout_s=min(instructions.CLIENT_TIMEOUT_S, left_s),
        )
        repeatable = instructions.repeats(bench.servers.values(), self.workload)
        return instructions.explain(found, operations=operations, repeatable=repeatable)

    def _try(self) -> float:
        """Return the operations per second of the baseline in a slice of one second."""
        bench, side = self.bench, SideName.BASELINE
        with lone_server(
            bench.servers[side],
            bench.snapshots[side],
            bench.scratch / "tried",
            cpus=bench.placement.server_cpus,
        ) as server:
            done = run_slice(
                server,
                self.workload,
                bench.dataset,
                seconds=1,
                threads=1,
                seed=self._seed(),
                cpus=bench.placement.client_cpus,
            )
        return done.throughput_ops_s

    def _seed(self) -> int:
        # To sysbench, 0 is the time of day.
        return self.bench.seed % _SEED_MAX + 1


def _or_gap(what: str, find: Callable[[], _Found], gaps: list[str]) -> _Found | None:
    """Return what is found, or None with the reason added to the gaps."""
    try:
        return find()
    except (StageError, HostError) as error:
        gaps.append(f"{what}: {error}")
        return None
