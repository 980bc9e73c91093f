"""The simulation behind docs/decisions/0018-the-pair-decides.md, on a small scale."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.detection.wandering_host import WORKLOADS, count, spells
from service.flows.levels import CONFIRM_ALPHA_MAX
from workloads.plan import Gates

#: So lax a promise that each confirm is judged at the weakest level there is.
LAX = Gates(default=0.001, false_alarm_rate=0.1)


def test_a_pair_alarms_no_more_often_than_its_level_whichever_way_the_own_run_went() -> None:
    """Half of a two-sided level for each workload, plus three standard errors."""
    found = count(spells, commits=60, pairs=15, rng=np.random.default_rng(5), gates=LAX)

    bound = WORKLOADS * CONFIRM_ALPHA_MAX / 2
    assert found.pairs >= 150, "a host of two speeds arouses suspicions"
    assert found.alarms <= found.pairs * bound + 3 * math.sqrt(found.pairs * bound)
    # The sign of the suspicion decides nothing: there are alarms after a rise and after a fall.
    assert 0 < found.alarms_after_a_rise < found.alarms
    assert found.alarm_rate_one_way < found.alarm_rate <= LAX.false_alarm_rate
