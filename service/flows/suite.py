"""The suite as a whole: tables for pooling from gathered inputs, and a finding kept with verdicts.

Inputs of many workloads come in, one verdict on all of them together goes out. It can arouse a
suspicion and be said to people; it opens no alert by itself. The arithmetic is in
docs/job-lifecycle.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from detectors.change import Interval
from detectors.pooling import (
    GATE_SHARE,
    WORKLOADS_ADVISED,
    SuiteChange,
    paired_differences,
    pool,
    pool_run,
)
from detectors.samples import read_starts
from detectors.shared_noise import learn_pair_noise
from detectors.verdict import Decision, decide
from results.metric import THROUGHPUT
from service.flows.levels import (
    BASELINE_RUNS_MIN,
    CHANGES,
    SUITE_PROMISE_SHARE,
    SUITE_SUSPICION_ALPHA,
    confirm_level,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from detectors.shared_noise import CommonNoise
    from detectors.verdict import Verdict
    from service.core.model import SampleSet, VerdictRecord
    from service.flows.baseline import PairInputs, SingleInputs
    from workloads.plan import Gates

#: What the suite is called where a workload's name would stand.
SUITE: Final = "the suite as a whole"


@dataclass(frozen=True, kw_only=True)
class SuiteFinding:
    """The verdict on all workloads of a run together."""

    verdict: Verdict
    #: Asks for a confirm; single stage only.
    suspicious: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """As JSON, to be kept with each verdict of the run; `read_finding` is the way back."""
        verdict = self.verdict
        change = asdict(verdict.change) | {"warnings": list(verdict.change.warnings)}
        return {
            "change": change,
            "direction": verdict.direction,
            "gate": verdict.gate,
            "alpha": verdict.alpha,
            "decision": verdict.decision.value,
            "suspicious": self.suspicious,
        }


def read_finding(records: Sequence[VerdictRecord]) -> SuiteFinding | None:
    """Return the finding that was kept with the verdicts of a run."""
    kept = next((record.parameters.get("suite") for record in records), None)
    if kept is None:
        return None
    said = kept["change"]
    change = SuiteChange(
        **said | {"interval": Interval(**said["interval"]), "warnings": tuple(said["warnings"])}
    )
    verdict = decide(change, direction=kept["direction"], gate=kept["gate"], alpha=kept["alpha"])
    # Up to `two-stage 3` a pair against the suspicion's direction was inconclusive.
    verdict = replace(verdict, decision=Decision(kept["decision"]))
    return SuiteFinding(verdict=verdict, suspicious=kept["suspicious"])


def suite_of_run(inputs: Sequence[SingleInputs], gates: Gates) -> SuiteFinding | None:
    """Return the common shift of a commit's own run, or None where there is too little for one."""
    if len(inputs) < WORKLOADS_ADVISED:
        return None
    # Runs are told apart by their commit: after a confirm some workloads are represented by
    # another run of the same commit.
    shas = list(dict.fromkeys(past.sha for item in inputs for past in item.baseline))
    history = np.full((len(shas), len(inputs)), np.nan)
    for column, item in enumerate(inputs):
        for past in item.baseline:
            history[shas.index(past.sha), column] = _level(past)
    candidate = np.array([_level(item.candidate) for item in inputs])
    change = pool_run(history, candidate)
    if change.n_baseline < BASELINE_RUNS_MIN:
        return None
    verdict = _decide(change, gates, alpha=SUITE_SUSPICION_ALPHA)
    return SuiteFinding(verdict=verdict, suspicious=verdict.decision in CHANGES)


def suite_of_pair(
    inputs: Sequence[PairInputs],
    single: SuiteFinding | None,
    gates: Gates,
    *,
    own: Sequence[SingleInputs],
) -> SuiteFinding | None:
    """Return the common shift of a paired run, or None where there is too little for one.

    Args:
        inputs: Both sides of each workload.
        single: What the commit's own run showed; without it the pair has nothing to confirm.
        gates: Of the plan.
        own: The commit's own run with its baseline, which knows how noisy starts are together.
    """
    if single is None or len(inputs) < WORKLOADS_ADVISED:
        return None
    table = paired_differences(
        [(_starts(item.baseline), _starts(item.candidate)) for item in inputs]
    )
    if not np.any(np.isfinite(table)):
        return None
    change = pool(table, common=_start_noise(own))
    level = suite_confirm_level(single, gates, effect=change.effect)
    return SuiteFinding(verdict=_decide(change, gates, alpha=level))


def suite_confirm_level(
    single: SuiteFinding, gates: Gates, *, effect: float | None = None
) -> float:
    """Return the level at which a pair confirms a common shift.

    Args:
        single: What the commit's own run showed.
        gates: Of the plan.
        effect: Of the pair, where it is known; one against the suspicion has to stand by itself.
    """
    against = effect is not None and effect * single.verdict.change.effect < 0
    chance = SUITE_SUSPICION_ALPHA if single.suspicious and not against else 1.0
    return confirm_level(gates.false_alarm_rate, chance=chance, tests=1 / SUITE_PROMISE_SHARE)


def _decide(change: SuiteChange, gates: Gates, *, alpha: float) -> Verdict:
    return decide(
        change, direction=THROUGHPUT.direction, gate=GATE_SHARE * gates.default, alpha=alpha
    )


def _start_noise(own: Sequence[SingleInputs]) -> CommonNoise:
    """Return the noise that workloads of one start share, from the runs of the baseline."""
    runs: dict[str, list[SampleSet]] = {}
    for past in (past for item in own for past in item.baseline):
        runs.setdefault(past.run, []).append(past)
    return learn_pair_noise([_start_levels(sets) for sets in runs.values()])


def _start_levels(sets: Sequence[SampleSet]) -> NDArray[np.float64]:
    rows = [read_starts(_starts(item), what=item.run).levels for item in sets]
    table = np.full((len(rows), max(row.size for row in rows)), np.nan)
    for line, row in zip(table, rows, strict=True):
        line[: row.size] = row
    return table


def _starts(item: SampleSet) -> list[list[float]]:
    return [list(start) for start in item.starts]


def _level(item: SampleSet) -> float:
    return item.measured.level
