"""Deciding: after each start of a pair, which workloads still need measuring.

Starts come in, the undecided workloads and the reasons of the decided ones go out. It judges
throughput alone and by the plan's gates; the verdict itself is for whoever asked for the pair.
Only the starts are looked at, so a resumed job decides as the first one did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from detectors.sequential import SequentialPlan, Stop, look
from results.document import Stopping, samples_of
from results.metric import THROUGHPUT
from results.slice import SideName, SliceState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from detectors.sequential import Look
    from results.document import Start
    from runner.progress import Progress
    from workloads.catalog import Workload
    from workloads.plan import Gates

#: One workload in a hundred may be called changed by chance when a person asks about two commits.
#: The service asks about every commit, and sends stricter levels with its orders.
ALPHA: Final = 0.01


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a pair is to tell."""

    gates: Gates
    #: Level of significance by workload; `ALPHA` where there is none.
    alphas: Mapping[str, float]
    starts_max: int
    #: Measuring ends after the start in which so many seconds have been spent.
    budget_s: float

    def plan(self, workload: str) -> SequentialPlan:
        """Return the rule by which a workload is looked at after each start."""
        return SequentialPlan(
            gate=self.gates.gate(workload),
            alpha=self.alphas.get(workload, ALPHA),
            starts_max=self.starts_max,
        )


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a pair stands after some starts."""

    undecided: Sequence[Workload]
    stopping: tuple[Stopping, ...]


def standing(
    starts: Sequence[Start], workloads: Sequence[Workload], question: Question, progress: Progress
) -> Standing:
    """Return which workloads another start should measure."""
    undecided, stopping = [], []
    spent_s = sum(start.seconds for start in starts)
    for workload in (one for one in workloads if one.reported):
        seen = look_at(starts, workload.name, question)
        if seen is not None:
            progress.look(workload.name, seen)
        tried = sum(
            any(piece.workload == workload.name for piece in start.slices) for start in starts
        )
        if seen is not None and seen.stop is not Stop.CONTINUE:
            reason = seen.stop.value
        elif tried >= question.starts_max:
            # Disturbed starts bring no evidence, and yet they have been tried.
            reason = Stop.EXHAUSTED.value
        elif spent_s >= question.budget_s:
            reason = "budget"
        else:
            undecided.append(workload)
            continue
        stopping.append(Stopping(workload=workload.name, starts=tried, reason=reason))
    return Standing(undecided=undecided, stopping=tuple(stopping))


def look_at(starts: Sequence[Start], workload: str, question: Question) -> Look | None:
    """Return the evidence on one workload, or None before it was measured on both sides."""
    sides = [
        samples_of(starts, workload, THROUGHPUT.name, side)
        for side in (SideName.BASELINE, SideName.CANDIDATE)
    ]
    if not all(any(start for start in side) for side in sides):
        return None
    return look(*sides, plan=question.plan(workload))


def without_samples(starts: Sequence[Start], workloads: Sequence[Workload]) -> str:
    """Return why there is nothing to judge, if no slice of a workload can be used."""
    for workload in (one for one in workloads if one.reported):
        pieces = [
            piece for start in starts for piece in start.slices if piece.workload == workload.name
        ]
        if pieces and all(piece.state is not SliceState.OK for piece in pieces):
            state = pieces[-1].state.value
            return f"every slice of {workload.name} was {state}: {pieces[-1].reason}"
    return ""
