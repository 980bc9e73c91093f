"""Deciding: samples and gates in, verdicts out; pure, so that a stored verdict can be replayed.

A commit's own run may only arouse a suspicion, which costs machine time. A regression or an
improvement is said after the paired job alone. The arithmetic of the two stages is in
docs/job-lifecycle.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from detectors.pairwise import compare
from detectors.predictive import predict
from detectors.verdict import Decision, decide
from reports.sentence import sentence
from results.metric import METRICS
from service.core.model import CommitOutcome, JobKind, VerdictRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from detectors.change import Change
    from detectors.verdict import Verdict
    from results.series import SeriesKey
    from service.core.model import SampleSet
    from service.flows.baseline import PairInputs, SingleInputs
    from workloads.plan import Gates

#: Stored with every verdict: raise it when a rule here changes.
RULES: Final = "two-stage 1"
CONFIDENCE: Final = 0.95
#: A suspicion is one workload's change at this level, without a correction for their number: a
#: missed suspicion is a missed regression, a false one is bounded machine time. The confirm's level
#: makes up for it.
SUSPICION_ALPHA: Final = 0.02
#: ... of at least this share of the gate: an estimate at the gate has an even chance to fall below.
SUSPICION_GATE_SHARE: Final = 0.5
#: A baseline of fewer runs says little about noise between runs; until then an effect that reaches
#: the gate is enough for a suspicion.
BASELINE_RUNS_MIN: Final = 3
#: The confirm is evidence of its own: never a weaker level than this, however rare suspicions are.
CONFIRM_ALPHA_MAX: Final = 0.05

CHANGES: Final = (Decision.REGRESSION, Decision.IMPROVEMENT)


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """What came of a commit over all its workloads."""

    outcome: CommitOutcome
    reason: str


def judge_single(
    inputs: Sequence[SingleInputs], gates: Gates, *, run: str, sha: str, at: datetime
) -> list[VerdictRecord]:
    """Return the verdicts of a commit's own run; workloads without a baseline have none."""
    judged = [item for item in inputs if item.baseline]
    return [
        _judge_one(item, gates, workloads=len(judged), run=run, sha=sha, at=at) for item in judged
    ]


def judge_pair(
    inputs: Iterable[PairInputs],
    singles: Mapping[str, VerdictRecord],
    gates: Gates,
    *,
    run: str,
    sha: str,
    at: datetime,
) -> list[VerdictRecord]:
    """Return the verdicts of a paired run; `singles` are those of the commit's own, by workload.

    Workloads that were not suspicious are judged as well: whoever reads that scans are slower wants
    to know what the rest did, and two versions side by side tell it best.
    """
    return [
        _confirm_one(item, singles[item.series.workload], gates, run=run, sha=sha, at=at)
        for item in inputs
        if item.series.workload in singles
    ]


def confirm_alpha(single: VerdictRecord, gates: Gates) -> float:
    """Return the level of the paired job that keeps the promise of `false_alarm_rate` per commit.

    A commit without a change is called changed if a workload is suspected and then confirmed on
    fresh starts, so each workload may use its share of the promise divided by the chance of the
    suspicion. A workload that was not suspicious has only the share.
    """
    parameters = single.parameters
    chance: float = parameters["suspicion_chance"] if single.suspicious else 1.0
    workloads: int = parameters["workloads_judged"]
    level = gates.false_alarm_rate / (chance * workloads)
    return min(CONFIRM_ALPHA_MAX, level)


def conclude(
    singles: Sequence[VerdictRecord],
    confirms: Sequence[VerdictRecord],
    *,
    seeded: Sequence[str],
    unusable: Sequence[str],
    sha: str,
    trouble: str = "",
) -> Conclusion:
    """Return what came of a commit.

    Args:
        singles: Verdicts of its own run.
        confirms: Verdicts of the paired run, where one was asked for.
        seeded: Workloads whose first run this is.
        unusable: Workloads without a usable sample.
        sha: The commit.
        trouble: Why the paired run could not be judged; empty if it was.
    """
    final = final_verdicts(singles, confirms)
    if not final:
        if unusable:
            return Conclusion(
                outcome=CommitOutcome.INCONCLUSIVE,
                reason=f"no usable sample of {', '.join(unusable)}",
            )
        return Conclusion(
            outcome=CommitOutcome.BASELINE,
            reason=f"first run of {', '.join(seeded)}: later commits are compared with it",
        )
    decisions = {verdict.decision for verdict in final.values()}
    if unusable:
        decisions.add(Decision.INCONCLUSIVE)
    words = [sentence(final, at=sha)]
    if trouble:
        words.append(trouble)
    if seeded:
        words.append(f"first run of {', '.join(seeded)}")
    if unusable:
        words.append(f"no usable sample of {', '.join(unusable)}")
    return Conclusion(outcome=_loudest(decisions), reason="; ".join(words))


def final_verdicts(
    singles: Iterable[VerdictRecord], confirms: Iterable[VerdictRecord]
) -> dict[str, Verdict]:
    """Return the last word on each workload: the confirm's, else that of the single run.

    A suspicion that was not confirmed by a paired run is inconclusive, whatever the single run
    said by itself.
    """
    confirmed = {record.series.workload: record.verdict for record in confirms}
    final = {}
    for record in singles:
        verdict = record.verdict
        if record.suspicious:
            verdict = replace(
                verdict,
                decision=Decision.INCONCLUSIVE,
                reason="suspicious, and no paired run confirmed or cleared it",
            )
        final[record.series.workload] = confirmed.get(record.series.workload, verdict)
    return final


def _judge_one(
    item: SingleInputs, gates: Gates, *, workloads: int, run: str, sha: str, at: datetime
) -> VerdictRecord:
    metric = METRICS[item.series.metric]
    gate = gates.gate(item.series.workload)
    change = predict(
        [past.usable_starts for past in item.baseline],
        item.candidate.usable_starts,
        confidence=CONFIDENCE,
    )
    chance = _suspicion_chance(change, gate)
    verdict = decide(
        change,
        direction=metric.direction,
        gate=gate,
        # Never laxer than a suspicion: what is called changed here has to be confirmed.
        alpha=min(gates.false_alarm_rate, SUSPICION_ALPHA),
    )
    parameters = {
        "rules": RULES,
        "confidence": CONFIDENCE,
        "suspicion_alpha": SUSPICION_ALPHA,
        "suspicion_gate_share": SUSPICION_GATE_SHARE,
        "suspicion_chance": chance,
        "workloads_judged": workloads,
    }
    return _record(
        verdict,
        item.series,
        item.baseline,
        stage=JobKind.SINGLE,
        suspicious=chance is not None,
        parameters=parameters,
        run=run,
        sha=sha,
        at=at,
    )


def _suspicion_chance(change: Change, gate: float) -> float | None:
    """Return how often a commit without a change looks like this, or None if it is not suspicious.

    A long enough baseline gives that chance by the test's level; a short one cannot, and the chance
    counts as 1, which makes the confirm carry the whole promise alone.
    """
    effect = abs(change.effect)
    if change.p_value <= SUSPICION_ALPHA and effect >= _log_loss(SUSPICION_GATE_SHARE * gate):
        return SUSPICION_ALPHA
    if change.n_baseline < BASELINE_RUNS_MIN and effect >= _log_loss(gate):
        return 1.0
    return None


def _confirm_one(
    item: PairInputs,
    single: VerdictRecord,
    gates: Gates,
    *,
    run: str,
    sha: str,
    at: datetime,
) -> VerdictRecord:
    metric = METRICS[item.series.metric]
    change = compare(
        [list(start) for start in item.baseline.starts],
        [list(start) for start in item.candidate.starts],
        confidence=CONFIDENCE,
    )
    verdict = decide(
        change,
        direction=metric.direction,
        gate=gates.gate(item.series.workload),
        alpha=confirm_alpha(single, gates),
    )
    contradicted = single.suspicious and change.effect * single.effect < 0
    if verdict.decision in CHANGES and contradicted:
        verdict = replace(
            verdict,
            decision=Decision.INCONCLUSIVE,
            reason="the paired run found a change in the other direction than the suspicion",
        )
    return _record(
        verdict,
        item.series,
        (item.baseline,),
        stage=JobKind.CONFIRM,
        suspicious=False,
        parameters={"rules": RULES, "confidence": CONFIDENCE, "single_run": single.run},
        run=run,
        sha=sha,
        at=at,
    )


def _record(
    verdict: Verdict,
    series: SeriesKey,
    baseline: Sequence[SampleSet],
    *,
    stage: JobKind,
    suspicious: bool,
    parameters: dict[str, Any],
    run: str,
    sha: str,
    at: datetime,
) -> VerdictRecord:
    change = verdict.change
    return VerdictRecord(
        run=run,
        series=series,
        stage=stage,
        sha=sha,
        decision=verdict.decision,
        effect=change.effect,
        low=change.interval.low,
        high=change.interval.high,
        confidence=change.interval.confidence,
        p_value=change.p_value,
        detectable_effect=change.detectable_effect,
        n_baseline=change.n_baseline,
        n_candidate=change.n_candidate,
        method=change.method,
        warnings=change.warnings,
        direction=verdict.direction,
        gate=verdict.gate,
        alpha=verdict.alpha,
        significant=verdict.significant,
        relevant=verdict.relevant,
        suspicious=suspicious,
        reason=verdict.reason,
        baseline_inputs=tuple((past.run, past.side.value) for past in baseline),
        parameters=parameters,
        created_at=at,
    )


def _log_loss(share: float) -> float:
    """Return a relative loss as the size of a log ratio."""
    return -math.log1p(-share)


def _loudest(decisions: set[Decision]) -> CommitOutcome:
    for decision, outcome in (
        (Decision.REGRESSION, CommitOutcome.REGRESSION),
        (Decision.IMPROVEMENT, CommitOutcome.IMPROVEMENT),
        (Decision.INCONCLUSIVE, CommitOutcome.INCONCLUSIVE),
    ):
        if decision in decisions:
            return outcome
    return CommitOutcome.NO_CHANGE
