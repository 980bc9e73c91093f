"""Which workloads of a commit's own run are suspicious, and how often that would be chance.

Inputs and their changes come in, chances go out. A suspicion costs machine time only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from service.flows.levels import BASELINE_RUNS_MIN, SUSPICION_GATE_SHARE, suspicion_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.change import Change
    from service.flows.baseline import SingleInputs
    from workloads.plan import Gates


def suspicions_of(
    items: Sequence[SingleInputs], changes: Sequence[Change], gates: Gates
) -> list[float | None]:
    """Return how often a commit without a change is suspected of each workload; None if it is not.

    This is the one place where a workload becomes suspicious. Another source, such as the change
    points of its history, joins here with the chance of its own.
    """
    level = suspicion_level(max(1, len(items)))
    return [
        _suspicion_chance(change, gates.gate(item.series.workload), level=level)
        for item, change in zip(items, changes, strict=True)
    ]


def _suspicion_chance(change: Change, gate: float, *, level: float) -> float | None:
    """Return how often a commit without a change looks like this, or None if it is not suspicious.

    A long enough baseline gives that chance by the test's level; a short one cannot, and the chance
    counts as 1, which makes the confirm carry the whole promise alone.
    """
    effect = abs(change.effect)
    if change.p_value <= level and effect >= _log_loss(SUSPICION_GATE_SHARE * gate):
        return level
    if change.n_baseline < BASELINE_RUNS_MIN and effect >= _log_loss(gate):
        return 1.0
    return None


def _log_loss(share: float) -> float:
    """Return a relative loss as the size of a log ratio."""
    return -math.log1p(-share)
