"""Verdicts: a change judged by a direction and a gate, both numbers.

Significant (statistics) and relevant (policy) are two words. A regression is both; `no-change`
means shown to be equivalent within the gate, not merely "nothing found", and so a small effect may
be significant and still be no change; anything else is inconclusive and says what it would take.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from detectors.errors import DataError

if TYPE_CHECKING:
    from detectors.change import Change


#: Past this many times the replication, more of the same is no advice.
FACTOR_MAX = 20


class Decision(StrEnum):
    """The four verdicts of the glossary."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    NO_CHANGE = "no-change"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A decision with everything it was made from."""

    decision: Decision
    change: Change
    #: +1 where more is better, -1 where less is better.
    direction: int
    #: Smallest relative loss that matters, as a fraction.
    gate: float
    #: p-values at or below this are significant.
    alpha: float
    significant: bool
    #: The effect is at least the gate, in either direction.
    relevant: bool
    #: One sentence: what was found, or what an inconclusive one would take.
    reason: str


def log_loss(share: float) -> float:
    """Return the size in logs of a relative loss, such as 0.0513 for 0.05.

    A loss of `share` is a log ratio of log(1 - share); a gain as large has the same size in logs.
    Where less is better that is a cost of 1 / (1 - share).
    """
    return -math.log1p(-share)


def decide(change: Change, *, direction: int, gate: float, alpha: float) -> Verdict:
    """Judge a change.

    Args:
        change: The effect with its interval.
        direction: +1 where more is better, -1 where less is better.
        gate: Smallest relative loss that matters, such as 0.05.
        alpha: Significance level of a regression or improvement.

    Raises:
        DataError: direction is not +1 or -1, or gate or alpha is not inside (0, 1).
    """
    if direction not in {1, -1}:
        raise DataError(f"direction is {direction}; it has to be +1 or -1")
    if not 0 < gate < 1 or not 0 < alpha < 1:
        raise DataError(f"gate {gate} and alpha {alpha} have to lie inside (0, 1)")
    threshold = log_loss(gate)
    significant = change.p_value <= alpha
    relevant = abs(change.effect) >= threshold
    worst = max(abs(change.interval.low), abs(change.interval.high))
    if significant and relevant:
        better = change.effect * direction > 0
        decision = Decision.IMPROVEMENT if better else Decision.REGRESSION
        reason = (
            f"{_percent(change.effect)} is significant (p = {change.p_value:.2g}) and reaches the "
            f"gate of {gate:.1%}"
        )
    elif worst < threshold:
        decision = Decision.NO_CHANGE
        # A loss and the gain that makes up for it are equally far: 0.950 and 1.053.
        ends = f"{1 - gate:.3f} to {1 / (1 - gate):.3f}"
        reason = f"the whole interval lies within the gate of {gate:.1%}, ratios of {ends}"
        if significant:
            reason = f"{_percent(change.effect)} is significant, but {reason}"
    else:
        decision = Decision.INCONCLUSIVE
        reason = _what_it_takes(change, gate=gate, significant=significant, relevant=relevant)
    return Verdict(
        decision=decision,
        change=change,
        direction=direction,
        gate=gate,
        alpha=alpha,
        significant=significant,
        relevant=relevant,
        reason=reason,
    )


def _what_it_takes(change: Change, *, gate: float, significant: bool, relevant: bool) -> str:
    if not math.isfinite(change.interval.high - change.interval.low):
        return "too little data for an interval: " + "; ".join(
            change.warnings or ("no replicates",)
        )
    size = abs(change.effect)
    threshold = log_loss(gate)
    seen = _percent(-change.detectable_effect).removeprefix("-")
    if relevant:
        finding = (
            f"reaches the gate of {gate:.1%} but is not significant (p = {change.p_value:.2g})"
        )
    elif significant:
        finding = (
            f"is significant and below the gate of {gate:.1%}, but its interval reaches past it"
        )
    else:
        finding = f"is not significant, and its interval reaches past the gate of {gate:.1%}"
    # The interval shrinks with the root of the replication until it leaves 0, or the gate, outside.
    half = (change.interval.high - change.interval.low) / 2
    room = size if relevant else threshold - size
    factor = (half / room) ** 2
    if factor > FACTOR_MAX:
        advice = "more starts of the same kind will hardly tell"
    else:
        advice = f"it takes about {max(math.ceil(factor), 2)} times as many starts or runs"
    return f"{_percent(change.effect)} {finding}; these data would have shown {seen}, {advice}"


def _percent(effect: float) -> str:
    return f"{math.expm1(effect):+.1%}"
