"""Judging an A/A check: what a pair of equals says of the host that measured it.

A run document and the gates of the fork's own plan come in, a result for each workload goes out.
It is the rule of every pair; nothing is softer or stricter because the sides are the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from detectors.pairwise import STARTS_MIN
from detectors.pooling import paired_differences
from detectors.sequential import SequentialPlan, look
from detectors.verdict import decide
from reports.numbers import loss_percent, percent, plain
from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.aa_checks import AaResult
from service.flows.changes import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.sequential import Look
    from results.document import RunDocument
    from workloads.plan import Gates

    Starts = Sequence[Sequence[float]]

#: Shared among the workloads: a good host alarms in at most one check of a hundred, which is once
#: in two years of a check a week. As `forkwatch host aa` has it.
CHECK_ALPHA: Final = 0.01
#: Workloads that a sentence names; a suite has dozens.
NAMED_MAX: Final = 6


def alpha_of(workloads: Sequence[str]) -> float:
    """Return the level at which each workload of a check is looked at."""
    return CHECK_ALPHA / max(1, len(workloads))


def results_of(document: RunDocument, gates: Gates) -> tuple[AaResult, ...]:
    """Return what a measured pair of equals showed, workload by workload."""
    names = document.workloads()
    found = []
    for name in names:
        baseline, candidate = (
            document.samples(name, THROUGHPUT.name, side)
            for side in (SideName.BASELINE, SideName.CANDIDATE)
        )
        if any(baseline) and any(candidate):
            plan = SequentialPlan(
                gate=gates.gate(name),
                alpha=alpha_of(names),
                starts_max=max(STARTS_MIN, document.starts_max or len(document.starts)),
                confidence=CONFIDENCE,
            )
            found.append(_result(name, baseline, candidate, plan))
    return tuple(found)


def result_words(results: Sequence[AaResult], host: str) -> str:
    """Return what a check says of its host, in one sentence."""
    alarms = [one for one in results if one.alarms]
    if alarms:
        named = ", ".join(difference_words(one) for one in alarms[:NAMED_MAX])
        more = f" and {len(alarms) - NAMED_MAX} more" if len(alarms) > NAMED_MAX else ""
        return (
            f"{host} called two copies of one artifact different: {named}{more}; "
            "`forkwatch host check` there says what makes it noisy"
        )
    if not results:
        return f"{host} measured no workload on both sides"
    fit = sum(one.fits for one in results)
    seen = [one.sees_percent for one in results if one.sees_percent is not None]
    sight = f"{host} sees losses from {percent(max(seen))} up" if seen else f"{host} sees no loss"
    return f"{sight}; fit for the gates of {fit} of {len(results)} workloads"


def difference_words(one: AaResult) -> str:
    """Return one copy against the other, such as `scan -3.1 % (95 %: -4.0 to -2.2)`."""
    words = f"{one.workload} {_signed(one.effect)} %"
    if one.low is None or one.high is None:
        return words
    share = f"{100 * one.confidence:.0f} %"
    return f"{words} ({share}: {_signed(one.low)} to {_signed(one.high)})"


def _result(workload: str, baseline: Starts, candidate: Starts, plan: SequentialPlan) -> AaResult:
    whole = look(baseline, candidate, plan=plan)
    verdict = decide(
        _as_it_stopped(baseline, candidate, plan, whole).change,
        direction=THROUGHPUT.direction,
        gate=plan.gate,
        alpha=plan.alpha,
    )
    change = whole.change
    return AaResult(
        workload=workload,
        starts=whole.starts,
        sd=_sd(baseline, candidate),
        effect=change.effect,
        low=_finite(change.interval.low),
        high=_finite(change.interval.high),
        confidence=change.interval.confidence,
        detectable_effect=_finite(change.detectable_effect),
        gate=plan.gate,
        decision=verdict.decision,
    )


def _as_it_stopped(baseline: Starts, candidate: Starts, plan: SequentialPlan, whole: Look) -> Look:
    """Return the look at which the ordinary pair would have ended, or the last one."""
    for count in range(1, max(len(baseline), len(candidate))):
        sides = baseline[:count], candidate[:count]
        if all(any(side) for side in sides):
            seen = look(*sides, plan=plan)
            if seen.stopped:
                return seen
    return whole


def _sd(baseline: Starts, candidate: Starts) -> float | None:
    """Return the standard deviation of the log ratio between starts."""
    differences = paired_differences([(baseline, candidate)])[0]
    there = differences[np.isfinite(differences)]
    return float(np.std(there, ddof=1)) if there.size >= STARTS_MIN else None


def _finite(value: float) -> float | None:
    """Return a bound as JSON and databases have it: none where it is infinite."""
    return value if math.isfinite(value) else None


def _signed(effect: float) -> str:
    text = plain(-loss_percent(effect))
    return text if text.startswith("-") or text == "0.0" else f"+{text}"
