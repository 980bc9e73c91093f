"""A look after every start: stop for a difference, for equivalence, at the budget, or go on.

All starts of a pair so far come in, a `Look` goes out: the change with an interval and a p-value
that hold however often one has looked, and whether to stop. It keeps no state, so that a resumed
job gets the same answer. It knows no direction: what is good or bad is `detectors.verdict`'s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from detectors.boundaries import Boundaries
from detectors.errors import DataError
from detectors.evidence import check_confidence
from detectors.pairwise import PAIR_FLOOR_SD, STARTS_MIN, difference
from detectors.verdict import FACTOR_MAX, Decision, decide, log_loss

if TYPE_CHECKING:
    from detectors.change import Change
    from detectors.noise import NoiseModel
    from detectors.pairwise import Difference
    from detectors.samples import Samples

#: Added to the method of the change: a look after every start, levels by degrees of freedom.
METHOD = "every start 1"


class Stop(StrEnum):
    """What to do after a look."""

    #: Neither is shown yet and there is budget left.
    CONTINUE = "continue"
    #: Significant and at least the gate, in either direction.
    DIFFERENT = "different"
    #: The whole interval lies inside the gate.
    EQUIVALENT = "equivalent"
    #: The planned starts are used up and neither was shown.
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, kw_only=True)
class SequentialPlan:
    """What is decided before the first start; the error rates hold for looks within it."""

    #: Smallest relative loss that matters, as a fraction.
    gate: float = 0.05
    #: Chance that a change is called significant at any of the looks although there is none.
    alpha: float = 0.01
    #: Starts of each side before the first look.
    starts_min: int = STARTS_MIN
    #: Starts of each side at which it ends anyway. Every planned look makes all others stricter:
    #: 20 instead of 10 cost a tenth of the interval's width.
    starts_max: int = 10
    #: Chance that the intervals of all looks hold the truth.
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Refuse a plan that cannot be followed."""
        check_confidence(self.confidence)
        if not 0 < self.gate < 1 or not 0 < self.alpha < 1:
            raise DataError(f"gate {self.gate} and alpha {self.alpha} have to lie inside (0, 1)")
        Boundaries(first=self.starts_min, last=self.starts_max)


@dataclass(frozen=True, kw_only=True)
class Look:
    """The evidence after some starts, and what to do next."""

    #: Interval and p-value hold at every look of the plan at once.
    change: Change
    stop: Stop
    #: Starts of each side that could be used.
    starts: int
    #: About how many more it takes if effect and noise stay as they are: 0 when there is nothing
    #: left to show, None when more of the same kind will hardly tell. May exceed the plan.
    starts_more: int | None

    @property
    def stopped(self) -> bool:
        """Whether to measure no more."""
        return self.stop is not Stop.CONTINUE


def look(
    baseline: Samples,
    candidate: Samples,
    *,
    plan: SequentialPlan,
    noise: NoiseModel | None = None,
    floor_sd: float = PAIR_FLOOR_SD,
) -> Look:
    """The evidence in all starts so far; a look after every start is paid for.

    The change is that of `detectors.pairwise.compare` with the nominal level of this look: its
    interval is a repeated confidence interval, its p-value a repeated p-value (Jennison & Turnbull,
    Group Sequential Methods, 2000, chapter 9). `decide(look.change, gate=plan.gate,
    alpha=plan.alpha, ...)` gives the verdict that agrees with `look.stop`.

    Args:
        baseline: All starts so far in the order of measuring, as for `compare`.
        candidate: The same; row i was measured together with row i of the baseline.
        plan: What was decided before the first start.
        noise: The series' own noise; with it two starts can be enough.
        floor_sd: As for `compare`.

    Raises:
        DataError: as for `compare`.
    """
    found = difference(baseline, candidate, noise=noise, floor_sd=floor_sd)
    measured = max(len(baseline), len(candidate))
    usable = min(found.n_baseline, found.n_candidate)
    # More starts than planned were not paid for; the plan is stretched, and that is said.
    last = max(plan.starts_max, usable)
    if last > plan.starts_max:
        warning = f"{usable} starts were looked at, {plan.starts_max} were planned"
        found = replace(found, warnings=(*found.warnings, warning))
    boundaries = Boundaries(first=plan.starts_min, last=last)
    change = _change(found, usable, boundaries=boundaries, plan=plan)
    decision = decide(change, direction=1, gate=plan.gate, alpha=plan.alpha).decision
    if decision is Decision.NO_CHANGE:
        stop = Stop.EQUIVALENT
    elif decision is not Decision.INCONCLUSIVE:
        stop = Stop.DIFFERENT
    else:
        stop = Stop.CONTINUE if measured < plan.starts_max else Stop.EXHAUSTED
    more: int | None = 0
    if decision is Decision.INCONCLUSIVE:
        more = _starts_more(found, usable, boundaries=boundaries, plan=plan)
    return Look(change=change, stop=stop, starts=usable, starts_more=more)


def _change(
    found: Difference, usable: int, *, boundaries: Boundaries, plan: SequentialPlan
) -> Change:
    method = f"{found.method}, {METHOD}"
    if usable < boundaries.first:
        warnings = found.warnings
        if usable >= STARTS_MIN:
            warnings = (*warnings, f"usable starts: {usable}; judged from {boundaries.first} on")
        found = replace(found, variance=math.inf, method=method, warnings=warnings)
        return found.change(confidence=plan.confidence)
    level = boundaries.level(usable, overall=1 - plan.confidence)
    change = replace(found, method=method).change(confidence=1 - level)
    return replace(
        change,
        interval=replace(change.interval, confidence=plan.confidence),
        p_value=boundaries.p_value(usable, nominal=change.p_value),
    )


def _starts_more(
    found: Difference, usable: int, *, boundaries: Boundaries, plan: SequentialPlan
) -> int | None:
    """Starts until significance, where the effect is relevant, or until equivalence."""
    if not math.isfinite(found.variance):
        # Nothing is known of the noise yet.
        return max(boundaries.first - usable, 1)
    gate = log_loss(plan.gate)
    relevant = abs(found.effect) >= gate
    room = abs(found.effect) if relevant else gate - abs(found.effect)
    overall = plan.alpha if relevant else 1 - plan.confidence
    starts = np.arange(usable + 1, FACTOR_MAX * usable + 1, dtype=np.float64)
    # Past the plan the looks are taken to be as strict as its last one.
    levels = [boundaries.level(min(n, boundaries.last), overall=overall) for n in map(int, starts)]
    critical = -special.stdtrit(found.df + starts - usable, np.asarray(levels) / 2)
    errors = np.sqrt(found.variance * usable / starts)
    enough = np.flatnonzero(critical * errors < room)
    return int(enough[0]) + 1 if enough.size else None
