"""Judging a pair of a pull request: a run document and gates in, verdicts out; pure.

A pull request has no history to be suspicious of, so its pair carries the whole promise of a false
alarm alone, shared among the workloads. Verdicts are kept as text and read back as they were.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from detectors.change import Change, Interval
from detectors.multiplicity import adjust
from detectors.sequential import SequentialPlan, look
from detectors.verdict import Decision, Verdict, decide
from results.metric import THROUGHPUT
from results.slice import SideName
from service.flows.changes import CONFIDENCE
from service.flows.levels import NAMING_RATE, confirm_level

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from results.document import RunDocument
    from workloads.plan import Gates

_SIDES: Final = (SideName.BASELINE, SideName.CANDIDATE)


def level_of_each(workloads: int, gates: Gates) -> float:
    """Return the level at which each of so many workloads is looked at after every start."""
    return confirm_level(gates.false_alarm_rate, chance=1.0, tests=workloads)


def judge_pull(
    document: RunDocument, gates: Gates, *, level: float, starts_max: int
) -> dict[str, Verdict]:
    """Return the verdict on each workload that was measured on both sides.

    Args:
        document: A measured pair.
        gates: Of the plan that it was ordered with.
        level: That of each workload, which the runner looked at, too.
        starts_max: The most starts that the runner was allowed.
    """
    changes = {}
    for workload in document.workloads():
        sides = [document.samples(workload, THROUGHPUT.name, side) for side in _SIDES]
        if not all(any(start for start in side) for side in sides):
            continue
        plan = SequentialPlan(
            gate=gates.gate(workload), alpha=level, starts_max=starts_max, confidence=CONFIDENCE
        )
        changes[workload] = look(*sides, plan=plan).change
    levels = _levels(list(changes.values()), level=level)
    return {
        workload: decide(
            change, direction=THROUGHPUT.direction, gate=gates.gate(workload), alpha=alpha
        )
        for (workload, change), alpha in zip(changes.items(), levels, strict=True)
    }


def keep_verdicts(verdicts: Mapping[str, Verdict]) -> str:
    """Return verdicts as text; `read_verdicts` is the way back."""
    # Bounds are infinite where there were too few starts, and Python's JSON knows a word for it.
    return json.dumps({workload: asdict(verdict) for workload, verdict in verdicts.items()})


def read_verdicts(text: str) -> dict[str, Verdict]:
    """Return the verdicts that were kept; none of an empty text."""
    kept = json.loads(text) if text else {}
    return {workload: _verdict(said) for workload, said in kept.items()}


def _verdict(said: dict[str, Any]) -> Verdict:
    change = said["change"]
    interval, warnings = Interval(**change["interval"]), tuple(change["warnings"])
    return Verdict(
        **said
        | {
            "decision": Decision(said["decision"]),
            "change": Change(**change | {"interval": interval, "warnings": warnings}),
        }
    )


def _levels(changes: Sequence[Change], *, level: float) -> list[float]:
    """Return the level of each workload: its own, or that of naming what else changed.

    The promise is about a head without any change. Once one workload has changed at its own level
    this is no such head, and the others that moved the same way are named at a rate of false
    discoveries, as in a commit's confirm.
    """
    shown = {math.copysign(1, change.effect) for change in changes if change.p_value <= level}
    named = adjust([change.p_value for change in changes]).found(NAMING_RATE)
    levels = [level] * len(changes)
    for place in named:
        if math.copysign(1, changes[place].effect) in shown:
            levels[place] = max(level, len(named) * NAMING_RATE / len(changes))
    return levels
