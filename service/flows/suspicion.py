"""Which workloads of a commit's own run are suspicious, and how often that would be chance.

Inputs and their changes come in, suspicions go out. A suspicion costs machine time only. One run
that is unlike its baseline arouses it, and so does a history in which several runs, none of them
odd by itself, have come to a new level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from detectors.changepoints import find_changes
from detectors.verdict import log_loss
from service.flows.levels import (
    BASELINE_RUNS_MIN,
    SUSPICION_GATE_SHARE,
    suspicion_chance,
    suspicion_level,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.change import Change
    from service.flows.baseline import SingleInputs
    from workloads.plan import Gates


@dataclass(frozen=True, kw_only=True)
class Suspicion:
    """Why a workload has to be measured again."""

    #: How often a commit without a change is suspected.
    chance: float
    #: The last commit before the change, where the history shows it earlier than at the candidate.
    before: str | None = None


def suspicions_of(
    items: Sequence[SingleInputs], changes: Sequence[Change], gates: Gates
) -> list[Suspicion | None]:
    """Return the suspicion of each workload; None where there is none.

    This is the one place where a workload becomes suspicious.
    """
    workloads = max(1, len(items))
    return [
        _odd_run(change, gates.gate(item.series.workload), workloads=workloads)
        or _new_level(item, gates.gate(item.series.workload), workloads=workloads)
        for item, change in zip(items, changes, strict=True)
    ]


def _odd_run(change: Change, gate: float, *, workloads: int) -> Suspicion | None:
    """Return the suspicion of one run that is unlike its baseline.

    A long enough baseline gives its chance by the test's level; a short one cannot, and the chance
    counts as 1, which makes the confirm carry the whole promise alone.
    """
    effect = abs(change.effect)
    level = suspicion_level(workloads)
    if change.p_value <= level and effect >= log_loss(SUSPICION_GATE_SHARE * gate):
        return Suspicion(chance=suspicion_chance(workloads))
    if change.n_baseline < BASELINE_RUNS_MIN and effect >= log_loss(gate):
        return Suspicion(chance=1.0)
    return None


def _new_level(item: SingleInputs, gate: float, *, workloads: int) -> Suspicion | None:
    """Return the suspicion of a history that shows a change point with this run and not before.

    What a paired run did not confirm is not asked again with every further commit.
    """
    runs = (*item.history, item.candidate)
    levels = np.exp([one.measured.level for one in runs])
    found = find_changes(levels)
    if not found or find_changes(levels[:-1]):
        return None
    change = found[-1]
    assert change.index, "a change point has a commit before it"
    if abs(change.effect) < log_loss(SUSPICION_GATE_SHARE * gate):
        return None
    return Suspicion(chance=suspicion_chance(workloads), before=item.history[change.index - 1].sha)
