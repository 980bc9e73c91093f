"""The change of each workload: gathered samples in, effects with intervals out.

Which detector answers which question, and with what it is told. What a change means is for
`judge` to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from detectors.noise import estimate_noise
from detectors.predictive import predict
from detectors.sequential import SequentialPlan, look
from detectors.shrinkage import prior_from
from service.flows.levels import confirm_alpha

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.change import Change
    from service.core.model import VerdictRecord
    from service.flows.baseline import PairInputs, SingleInputs
    from workloads.plan import Gates

CONFIDENCE: Final = 0.95


def changes_of_run(items: Sequence[SingleInputs]) -> list[Change]:
    """Return the change of each workload; the others say how noisy this host's workloads are."""
    histories = [[past.measured for past in item.baseline] for item in items]
    models = [estimate_noise(history) for history in histories]
    return [
        predict(
            history,
            item.candidate.measured,
            confidence=CONFIDENCE,
            prior=prior_from([*models[:place], *models[place + 1 :]]),
        )
        for place, (item, history) in enumerate(zip(items, histories, strict=True))
    ]


def change_of_pair(
    item: PairInputs, single: VerdictRecord, gates: Gates, *, starts_max: int
) -> Change:
    """Return the change as it holds for a pair that was looked at after every start."""
    plan = SequentialPlan(
        gate=gates.gate(item.series.workload),
        alpha=confirm_alpha(single, gates),
        starts_max=starts_max,
        confidence=CONFIDENCE,
    )
    sides = [[list(start) for start in side.starts] for side in (item.baseline, item.candidate)]
    return look(*sides, plan=plan).change
