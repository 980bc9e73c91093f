"""Verdicts from percentages: `a_verdict(-9.1, low=-10.0, high=-8.2)` is a loss of 9.1 %."""

from __future__ import annotations

import math

from detectors.change import Change, Interval
from detectors.verdict import Verdict, decide


def a_change(
    percent: float, *, low: float, high: float, p_value: float = 1e-6, detectable: float = 2.0
) -> Change:
    """Return a change; all numbers in percent, signed."""
    return Change(
        effect=math.log1p(percent / 100),
        interval=Interval(low=math.log1p(low / 100), high=math.log1p(high / 100), confidence=0.95),
        p_value=p_value,
        detectable_effect=-math.log1p(-detectable / 100),
        n_baseline=4,
        n_candidate=4,
        method="test 1",
    )


def a_verdict(
    percent: float,
    *,
    low: float,
    high: float,
    p_value: float = 1e-6,
    detectable: float = 2.0,
    direction: int = 1,
    gate: float = 0.05,
) -> Verdict:
    """Return the verdict on a change of so many percent."""
    change = a_change(percent, low=low, high=high, p_value=p_value, detectable=detectable)
    return decide(change, direction=direction, gate=gate, alpha=0.001)
