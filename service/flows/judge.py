"""Deciding: samples and gates in, verdicts out; pure, so that a stored verdict can be replayed.

A commit's own run may only arouse a suspicion, which costs machine time. A regression or an
improvement is said after the paired job alone. The levels of the two stages are in `levels`, their
arithmetic is told in docs/job-lifecycle.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from detectors.multiplicity import adjust
from detectors.pooling import SuiteChange
from detectors.verdict import Decision, decide
from reports.sentence import sentence
from results.metric import METRICS
from service.core.model import CommitOutcome, JobKind, VerdictRecord
from service.flows.changes import CONFIDENCE, change_of_pair, changes_of_run
from service.flows.levels import (
    CHANGES,
    SUSPICION_GATE_SHARE,
    confirm_alpha,
    levels_of_pair,
    suspicion_level,
)
from service.flows.readings import at_odds
from service.flows.suite import SUITE, read_finding, suite_of_pair, suite_of_run
from service.flows.suspicion import suspicions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from detectors.change import Change
    from detectors.verdict import Verdict
    from results.series import SeriesKey
    from service.core.model import SampleSet
    from service.flows.baseline import PairInputs, SingleInputs
    from service.flows.suite import SuiteFinding
    from service.flows.suspicion import Suspicion
    from workloads.plan import Gates

#: Stored with every verdict: raise it when a rule here changes.
RULES: Final = "two-stage 4"


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
    changes = changes_of_run(judged)
    adjusted = adjust([change.p_value for change in changes]).adjusted
    suspicions = suspicions_of(judged, changes, gates)
    suite = suite_of_run(judged, gates)
    family = {
        "workloads_judged": len(judged),
        "false_alarm_rate": gates.false_alarm_rate,
        # Where a short baseline bounds no chance, the workloads carry the whole promise.
        "suite": suite.parameters if suite is not None and _all_bounded(suspicions) else None,
    }
    return [
        _judge_one(
            item,
            change,
            gates,
            suspicion=suspicion,
            parameters=family | {"adjusted_p_value": p_value},
            run=run,
            sha=sha,
            at=at,
        )
        for item, change, suspicion, p_value in zip(
            judged, changes, suspicions, adjusted, strict=True
        )
    ]


def judge_pair(
    inputs: Iterable[PairInputs],
    singles: Mapping[str, VerdictRecord],
    gates: Gates,
    *,
    starts_max: int,
    run: str,
    sha: str,
    at: datetime,
    own: Sequence[SingleInputs] = (),
) -> list[VerdictRecord]:
    """Return the verdicts of a paired run.

    Workloads that were not suspicious are judged as well: whoever reads that scans are slower wants
    to know what the rest did, and two versions side by side tell it best.

    Args:
        inputs: Both sides of each workload.
        singles: The verdicts of the commit's own run, by workload.
        gates: Of the plan.
        starts_max: The most starts that the runner was allowed; it looked after each of them.
        run: The paired run.
        sha: The commit.
        at: When.
        own: What the commit's own run was judged by; it knows how noisy starts are together.
    """
    judged = [item for item in inputs if item.series.workload in singles]
    suspicions = [singles[item.series.workload] for item in judged]
    changes = [
        change_of_pair(item, single, gates, starts_max=starts_max)
        for item, single in zip(judged, suspicions, strict=True)
    ]
    suite = suite_of_pair(judged, read_finding(suspicions), gates, own=own)
    levels = levels_of_pair(suspicions, changes, None if suite is None else suite.verdict, gates)
    adjusted = adjust([change.p_value for change in changes]).adjusted
    family = {
        "workloads_judged": len(judged),
        "false_alarm_rate": gates.false_alarm_rate,
        "starts_max": starts_max,
        "suite": None if suite is None else suite.parameters,
    }
    return [
        _confirm_one(
            item,
            single,
            change,
            gates,
            alpha=alpha,
            parameters=family | {"adjusted_p_value": p_value},
            run=run,
            sha=sha,
            at=at,
        )
        for item, single, change, alpha, p_value in zip(
            judged, suspicions, changes, levels, adjusted, strict=True
        )
    ]


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
    suite = _silent_shift(confirms, decisions)
    words = [sentence({SUITE: suite.verdict, **final} if suite else final, at=sha)]
    if suite:
        words.append(_direction_counts(suite))
    words += _at_odds(singles, confirms, suite)
    if trouble:
        # A common shift may be all that was suspicious: then no workload's verdict says so.
        decisions.add(Decision.INCONCLUSIVE)
        words.append(trouble)
    if seeded:
        words.append(f"first run of {', '.join(seeded)}")
    if unusable:
        words.append(f"no usable sample of {', '.join(unusable)}")
    outcome = _loudest(decisions)
    if outcome is CommitOutcome.REGRESSION:
        words += _promise(confirms)
    return Conclusion(outcome=outcome, reason="; ".join(words))


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
    item: SingleInputs,
    change: Change,
    gates: Gates,
    *,
    suspicion: Suspicion | None,
    parameters: dict[str, Any],
    run: str,
    sha: str,
    at: datetime,
) -> VerdictRecord:
    level = suspicion_level(parameters["workloads_judged"])
    verdict = decide(
        change,
        direction=METRICS[item.series.metric].direction,
        gate=gates.gate(item.series.workload),
        # Never laxer than a suspicion: what is called changed here has to be confirmed.
        alpha=min(gates.false_alarm_rate, level),
    )
    return _record(
        verdict,
        item.series,
        item.baseline,
        stage=JobKind.SINGLE,
        suspicious=suspicion is not None,
        parameters=parameters
        | {
            "suspicion_alpha": level,
            "suspicion_gate_share": SUSPICION_GATE_SHARE,
            "suspicion_chance": suspicion.chance if suspicion else None,
            "change_before": suspicion.before if suspicion else None,
        },
        run=run,
        sha=sha,
        at=at,
    )


def _all_bounded(suspicions: Sequence[Suspicion | None]) -> bool:
    """Return whether the chance of every suspicion is known."""
    return all(suspicion is None or suspicion.chance < 1 for suspicion in suspicions)


def _confirm_one(
    item: PairInputs,
    single: VerdictRecord,
    change: Change,
    gates: Gates,
    *,
    alpha: float,
    parameters: dict[str, Any],
    run: str,
    sha: str,
    at: datetime,
) -> VerdictRecord:
    verdict = decide(
        change,
        direction=METRICS[item.series.metric].direction,
        gate=gates.gate(item.series.workload),
        alpha=alpha,
    )
    odds = at_odds(single.verdict, verdict, beside=item.baseline.sha) if single.suspicious else ""
    if odds:
        verdict = replace(verdict, reason=f"{odds}: {verdict.reason}")
    return _record(
        verdict,
        item.series,
        (item.baseline,),
        stage=JobKind.CONFIRM,
        suspicious=False,
        parameters=parameters
        | {"single_run": single.run, "own_alpha": confirm_alpha(single, gates), "at_odds": odds},
        run=run,
        sha=sha,
        at=at,
    )


def _silent_shift(
    confirms: Sequence[VerdictRecord], decisions: set[Decision]
) -> SuiteFinding | None:
    """Return a confirmed shift of the suite that no workload's verdict tells of."""
    suite = read_finding(confirms)
    if suite is None or suite.verdict.decision not in CHANGES or decisions & set(CHANGES):
        return None
    return suite


def _direction_counts(suite: SuiteFinding) -> str:
    change = suite.verdict.change
    assert isinstance(change, SuiteChange), "a suite's finding is pooled"
    return f"{change.n_fell} of {change.n_workloads} workloads fell, {change.n_rose} rose"


def _at_odds(
    singles: Sequence[VerdictRecord],
    confirms: Sequence[VerdictRecord],
    suite: SuiteFinding | None,
) -> list[str]:
    """Return what is said where a pair found the opposite of what the commit's own run showed."""
    found = {one.series.workload: one.parameters.get("at_odds", "") for one in confirms}
    own = read_finding(singles)
    if suite is not None and own is not None and own.suspicious:
        found[SUITE] = at_odds(own.verdict, suite.verdict)
    return [f"{name}: {words}" for name, words in found.items() if words]


def _promise(confirms: Sequence[VerdictRecord]) -> list[str]:
    """Return what the rate of false alarms is, and over how many tests it holds."""
    kept = confirms[0].parameters if confirms else {}
    if "workloads_judged" not in kept:
        return []
    rate, workloads = kept["false_alarm_rate"], kept["workloads_judged"]
    return [f"at most {rate:.2g} of unchanged commits alarm, over {workloads} workloads"]


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
        parameters={"rules": RULES, "confidence": CONFIDENCE, **parameters},
        created_at=at,
    )


def _loudest(decisions: set[Decision]) -> CommitOutcome:
    for decision, outcome in (
        (Decision.REGRESSION, CommitOutcome.REGRESSION),
        (Decision.IMPROVEMENT, CommitOutcome.IMPROVEMENT),
        (Decision.INCONCLUSIVE, CommitOutcome.INCONCLUSIVE),
    ):
        if decision in decisions:
            return outcome
    return CommitOutcome.NO_CHANGE
