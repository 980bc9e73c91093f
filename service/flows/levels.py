"""Levels of the two stages: how the promise of one commit is shared among its tests.

Numbers of workloads and the plan's promise come in, levels of significance go out. The arithmetic
is told, with worked numbers, in docs/job-lifecycle.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from detectors.multiplicity import adjust
from detectors.verdict import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.change import Change
    from detectors.verdict import Verdict
    from service.core.model import VerdictRecord
    from workloads.plan import Gates

CHANGES: Final = (Decision.REGRESSION, Decision.IMPROVEMENT)

#: A suspicion is one workload's change at this level or a stricter one. A missed suspicion is a
#: missed regression, a false one is bounded machine time; the confirm's level makes up for it.
SUSPICION_ALPHA: Final = 0.02
#: ... but all workloads together suspect at most this share of commits without a change: beyond
#: five workloads the single level falls. Uncorrected, 42 workloads would cost every second such
#: commit a paired job, and leave each a confirm that four pairs of starts hardly pass. Of the
#: budgets .05, .1 and .2, this one found most losses of 7 % with 10, 20 and 42 workloads
#: (docs/job-lifecycle.md).
SUSPICION_BUDGET: Final = 0.1
#: A history shows a new change point in at most this share of commits without a change: of streams
#: of 100 such commits 0.9 % alarm, 1.6 % where neighbours resemble each other, 5.3 % in the hundred
#: commits after a true change (docs/statistics/changepoints.md).
CHANGE_POINT_CHANCE: Final = 0.0005
#: A suspicion is at least this share of the gate: an estimate at the gate has an even chance to
#: fall below it.
SUSPICION_GATE_SHARE: Final = 0.5
#: A baseline of fewer runs says little about noise between runs; until then an effect that reaches
#: the gate is enough for a suspicion.
BASELINE_RUNS_MIN: Final = 3
#: The confirm is evidence of its own: never a weaker level than this, however rare suspicions are.
CONFIRM_ALPHA_MAX: Final = 0.05
#: A common shift of the suite at this level arouses a suspicion: one commit in fifty by chance.
SUITE_SUSPICION_ALPHA: Final = 0.02
#: Share of the promise that a common shift may spend.
SUITE_PROMISE_SHARE: Final = 0.5
#: Once a commit is shown to have changed, at most this share of the workloads that are named with
#: it may be false.
NAMING_RATE: Final = 0.05


def suspicion_level(workloads: int) -> float:
    """Return the level at which each of so many workloads is suspected."""
    return min(SUSPICION_ALPHA, SUSPICION_BUDGET / workloads)


def suspicion_chance(workloads: int) -> float:
    """Return how often each of so many workloads of a commit without a change is suspected."""
    return suspicion_level(workloads) + CHANGE_POINT_CHANCE


def confirm_level(false_alarm_rate: float, *, chance: float, tests: float) -> float:
    """Return the level of one of `tests` confirms that are each reached with that chance."""
    return min(CONFIRM_ALPHA_MAX, false_alarm_rate / (chance * tests))


def confirm_alpha(single: VerdictRecord, gates: Gates, *, effect: float | None = None) -> float:
    """Return the level of the paired job that keeps the promise of `false_alarm_rate` per commit.

    A commit without a change is called changed if a workload is suspected and then confirmed on
    fresh starts, so each workload may use its share of the promise divided by the chance of the
    suspicion. A workload that was not suspicious has only the share, and so has one whose pair went
    the other way: what speaks against the suspicion owes nothing to how rare suspicions are.

    Args:
        single: What the commit's own run showed.
        gates: Of the plan.
        effect: Of the pair, where it is known.
    """
    parameters = single.parameters
    against = effect is not None and effect * single.effect < 0
    rare = single.suspicious and not against
    chance: float = parameters["suspicion_chance"] if rare else 1.0
    workloads: int = parameters["workloads_judged"]
    return confirm_level(gates.false_alarm_rate, chance=chance, tests=workloads)


def levels_of_pair(
    singles: Sequence[VerdictRecord],
    changes: Sequence[Change],
    suite: Verdict | None,
    gates: Gates,
) -> list[float]:
    """Return the level of each workload: its own, or that of naming what else changed.

    The promise is about commits without any change. Once one workload, or the suite, is shown to
    have changed at its own level, this is no such commit, and the others that moved the same way
    are named at a rate of false discoveries instead.
    """
    levels = [
        confirm_alpha(single, gates, effect=change.effect)
        for single, change in zip(singles, changes, strict=True)
    ]
    shown = {
        math.copysign(1, change.effect)
        for change, level in zip(changes, levels, strict=True)
        if change.p_value <= level
    }
    if suite is not None and suite.decision in CHANGES:
        shown.add(math.copysign(1, suite.change.effect))
    named = adjust([change.p_value for change in changes]).found(NAMING_RATE)
    for place in named:
        if math.copysign(1, changes[place].effect) in shown:
            # Benjamini and Hochberg's threshold: a test is found if it is at or below it.
            levels[place] = max(levels[place], len(named) * NAMING_RATE / len(changes))
    return levels
