from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.change import Change, Interval
from detectors.errors import DataError
from detectors.verdict import Decision, decide

#: Log ratio of a loss of 5 %.
GATE_LOG = -math.log(0.95)


def a_change(
    effect: float, half: float, p_value: float, *, warnings: tuple[str, ...] = ()
) -> Change:
    return Change(
        effect=effect,
        interval=Interval(low=effect - half, high=effect + half, confidence=0.95),
        p_value=p_value,
        detectable_effect=1.4 * half,
        n_baseline=3,
        n_candidate=3,
        method="by hand",
        warnings=warnings,
    )


@pytest.mark.parametrize(
    ("effect", "half", "p_value", "direction", "decision", "words"),
    [
        # Significant and relevant: the direction decides.
        (-0.10, 0.02, 0.001, +1, Decision.REGRESSION, "-9.5% is significant"),
        (-0.10, 0.02, 0.001, -1, Decision.IMPROVEMENT, "reaches the gate of 5.0%"),
        (+0.10, 0.02, 0.001, +1, Decision.IMPROVEMENT, "+10.5% is significant"),
        (+0.10, 0.02, 0.001, -1, Decision.REGRESSION, "p = 0.001"),
        # Exactly at the gate is relevant, and p exactly at alpha is significant.
        (-GATE_LOG, 0.03, 0.05, +1, Decision.REGRESSION, "reaches the gate"),
        # Equivalent within the gate, whether or not something was found.
        (-0.005, 0.02, 0.6, +1, Decision.NO_CHANGE, "whole interval lies within the gate"),
        (-0.02, 0.01, 0.001, +1, Decision.NO_CHANGE, "-2.0% is significant, but"),
        # Nothing shown either way.
        (-0.04, 0.02, 0.001, +1, Decision.INCONCLUSIVE, "is significant and below the gate"),
        (-0.10, 0.15, 0.15, +1, Decision.INCONCLUSIVE, "reaches the gate of 5.0% but is not"),
        (0.00, 0.10, 1.0, +1, Decision.INCONCLUSIVE, "is not significant, and its interval"),
    ],
)
def test_verdict_follows_from_change_direction_and_gate(
    effect: float, half: float, p_value: float, direction: int, decision: Decision, words: str
) -> None:
    verdict = decide(a_change(effect, half, p_value), direction=direction, gate=0.05, alpha=0.05)

    assert verdict.decision is decision
    assert words in verdict.reason
    assert verdict.significant == (p_value <= 0.05)
    assert verdict.relevant == (abs(effect) >= GATE_LOG)


@pytest.mark.parametrize(
    ("effect", "half", "p_value", "advice"),
    [
        # (.10 / (.0513 - .02))^2 = 10.2
        (0.02, 0.10, 0.7, "about 11 times as many"),
        # (.15 / .10)^2 = 2.25
        (-0.10, 0.15, 0.15, "about 3 times as many"),
        (0.051, 0.02, 0.001, "more starts of the same kind will hardly tell"),
        (0.0, 0.50, 1.0, "more starts of the same kind will hardly tell"),
    ],
)
def test_inconclusive_says_what_it_takes(
    effect: float, half: float, p_value: float, advice: str
) -> None:
    verdict = decide(a_change(effect, half, p_value), direction=1, gate=0.05, alpha=0.05)

    assert verdict.decision is Decision.INCONCLUSIVE
    assert advice in verdict.reason
    assert "would have shown" in verdict.reason


def test_infinite_interval_is_inconclusive_and_repeats_what_is_missing() -> None:
    change = a_change(-0.2, math.inf, 1.0, warnings=("at least 2 starts are needed",))

    verdict = decide(change, direction=1, gate=0.05, alpha=0.05)

    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.reason.endswith("at least 2 starts are needed")


@given(
    effect=st.floats(-0.3, 0.3),
    half=st.floats(0.001, 0.5),
    p_value=st.floats(0, 1),
    gate=st.floats(0.01, 0.5),
)
def test_turning_direction_and_effect_around_keeps_the_decision(
    effect: float, half: float, p_value: float, gate: float
) -> None:
    there = decide(a_change(effect, half, p_value), direction=1, gate=gate, alpha=0.05)
    back = decide(a_change(-effect, half, p_value), direction=-1, gate=gate, alpha=0.05)

    assert there.decision is back.decision


@pytest.mark.parametrize(
    ("direction", "gate", "alpha"),
    [(0, 0.05, 0.05), (1, 0.0, 0.05), (1, 1.0, 0.05), (1, 0.05, 0.0), (1, math.nan, 0.05)],
)
def test_impossible_policies_are_refused(direction: int, gate: float, alpha: float) -> None:
    with pytest.raises(DataError):
        decide(a_change(0.0, 0.1, 1.0), direction=direction, gate=gate, alpha=alpha)
