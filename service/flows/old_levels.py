"""Levels in the past: where a backfill shows that the present level of a series begins.

A backfill comes in, marks on the baselines go into the store. Nobody hears of such a change: it is
history. But a baseline across it would be of two levels, so wide that the next loss hides in it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from detectors.changepoints import find_changes
from detectors.predictive import predict
from detectors.verdict import log_loss
from results.metric import THROUGHPUT
from service.core.alert_actions import SERVICE_ACTOR
from service.core.alert_records import BaselineMark, MarkKind
from service.flows.baseline import BASELINE_RUNS_MAX, level_at
from service.flows.levels import BASELINE_RUNS_MIN, SUSPICION_ALPHA, SUSPICION_GATE_SHARE
from service.store import baseline_marks, commits, series

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from detectors.samples import Starts
    from service.core.backfills import Backfill
    from service.core.model import SampleSet
    from workloads.plan import Gates

#: Kept with each mark, for whoever reads where a baseline begins.
NOTE: Final = "a backfill shows another level before this commit"


def mark_levels(session: Session, backfill: Backfill, gates: Gates, *, at: datetime) -> None:
    """Have each baseline begin where its present level does, as far as the past is known now.

    Only commits up to the first one seen count: what came later was judged. Marks of before give
    way, for they were made when less of the past was known; those of people stay.
    """
    first = commits.find(session, backfill.fork, backfill.before_sha)
    assert first is not None, "a backfill comes before a commit that was seen"
    for key in series.of_fork(session, backfill.fork, metric=THROUGHPUT.name):
        baseline_marks.remove_noted(session, key.id, actor=SERVICE_ACTOR, note=NOTE)
        history = level_at(session, key, backfill.before_sha)
        sha = present_level(history, gate=gates.gate(key.workload))
        commit = commits.find(session, backfill.fork, sha) if sha else None
        if commit is None or commit.position > first.position:
            continue
        if baseline_marks.find(session, key.id, commit.sha) is None:
            baseline_marks.put(
                session,
                BaselineMark(
                    series=key.id,
                    fork=backfill.fork,
                    sha=commit.sha,
                    kind=MarkKind.RESET,
                    alert=None,
                    actor=SERVICE_ACTOR,
                    note=NOTE,
                    at=at,
                ),
            )


def present_level(history: Sequence[SampleSet], *, gate: float) -> str:
    """Return the commit at which the last level of a stretch begins; empty where it has one.

    Two ways, for neither does it all: runs compared backwards, which needs only a few of them, and
    change points, which see slow changes in a long past.

    Args:
        history: Oldest first.
        gate: The smallest relative loss that matters.
    """
    measured = [past for past in history if past.measured.counts.size]
    newest = measured[-BASELINE_RUNS_MAX - 1 :]
    place = _backwards(newest, gate=gate)
    if place:
        return newest[place].sha
    place = _change_point(measured)
    return measured[place].sha if place else ""


def _backwards(runs: Sequence[SampleSet], *, gate: float) -> int:
    """Return the place of the first run that is like all after it, 0 where every run is.

    Two runs in a row have to be unlike them, to the same side: a single one is a spike, and by
    chance it would be so for one in twenty-five hundred.
    """
    for place in range(len(runs) - BASELINE_RUNS_MIN, 1, -1):
        level = [run.measured for run in reversed(runs[place:])]
        near = _side(level, runs[place - 1], gate=gate)
        if near and near == _side(level, runs[place - 2], gate=gate):
            return place
    return 0


def _side(level: Sequence[Starts], run: SampleSet, *, gate: float) -> int:
    """Return to which side a run is unlike a level, 0 where it is not, by the rule of suspicion."""
    change = predict(level, run.measured)
    if change.p_value > SUSPICION_ALPHA:
        return 0
    large = abs(change.effect) >= log_loss(SUSPICION_GATE_SHARE * gate)
    return int(math.copysign(1, change.effect)) if large else 0


def _change_point(runs: Sequence[SampleSet]) -> int:
    """Return the place of the newest change point, 0 where there is none."""
    if not runs:
        return 0
    levels = np.exp([one.measured.level for one in runs])
    changes = find_changes(levels)
    return (changes[-1].index or 0) if changes else 0
