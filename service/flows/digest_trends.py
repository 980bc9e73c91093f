"""Trends for the weekly digest: histories of series come in, slow changes and standings go out.

What is looked for is what verdicts on single commits cannot see: a slope below every gate, a step
that nobody confirmed, and how far the branch has come since an old commit. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import timedelta
from statistics import fmean
from typing import TYPE_CHECKING, Final

from detectors.alarms import FIRST
from detectors.change import Interval
from detectors.changepoints import examine
from detectors.multiplicity import adjust
from detectors.noise import estimate_noise
from detectors.predictive import predict
from detectors.shrinkage import prior_from
from detectors.verdict import log_loss
from reports.digest import Drifted, Reference, Standing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from detectors.change import Change
    from detectors.history import Drift
    from results.series import SeriesKey
    from service.core.digests import HistoryPoint, ReferenceRun, SeriesHistory

    Starts = tuple[tuple[float, ...], ...]

#: A rerun of one build has a sd of 0.7 to 1.8 % (docs/statistics.md): below one percent nobody can
#: do anything about a slow change.
SLOW_CHANGE_MIN: Final = 0.01
#: With fewer points the scan for changes has not begun, and a slope takes more.
POINTS_MIN: Final = FIRST + 1
#: A step is said for so long after its commit was measured; a slope for as long as it lasts.
STEP_AGE_MAX: Final = timedelta(weeks=4)
#: Newest runs that stand for "now": more would reach back into a slope, and from ten on the order
#: tells the noise between neighbours.
NOW_RUNS_MAX: Final = 10
#: Of the standings that are named, at most this share may be false.
NAMING_RATE: Final = 0.05
CONFIDENCE: Final = 0.95
#: Parts of a series that may tell two of one workload apart, in the order they are said.
_PARTS: Final = ("branch", "host_class", "variant", "config", "dataset", "placement")


def measured_since(
    histories: Sequence[SeriesHistory], begins: datetime
) -> tuple[SeriesHistory, ...]:
    """Return the histories that have a point of this week."""
    return tuple(
        history
        for history in histories
        if any(point.stored_at >= begins for point in history.points)
    )


def settings_of(keys: Sequence[SeriesKey]) -> dict[str, str]:
    """Return, by series, what tells it from the others of its workload; empty where it is alone."""
    by_workload: dict[str, list[SeriesKey]] = defaultdict(list)
    for key in keys:
        by_workload[key.workload].append(key)
    settings = {}
    for alike in by_workload.values():
        telling = [part for part in _PARTS if len({getattr(key, part) for key in alike}) > 1]
        for key in alike:
            settings[key.id] = ", ".join(getattr(key, part) for part in telling)
    return settings


def stretch_of(history: SeriesHistory) -> tuple[HistoryPoint, ...]:
    """Return the points since the last confirmed change, its own included."""
    begin = 0
    for place, point in enumerate(history.points):
        if point.sha in history.accepted:
            begin = place
    return history.points[begin:]


def drifted_in(
    histories: Sequence[SeriesHistory], *, begins: datetime, settings: Mapping[str, str]
) -> tuple[Drifted, ...]:
    """Return the slopes and steps that no verdict named, the largest losses first."""
    found = [
        one
        for history in histories
        for one in _slow_changes(
            history, since=begins - STEP_AGE_MAX, setting=settings[history.series.id]
        )
    ]
    return tuple(sorted(found, key=lambda one: one.effect))


def standing_against(
    reference: ReferenceRun,
    histories: Sequence[SeriesHistory],
    *,
    chosen: bool,
    settings: Mapping[str, str],
) -> Reference:
    """Return how the workloads stand now, against the run of an old commit."""
    compared = [
        (history, now, reference.starts[history.series.id])
        for history in histories
        if history.series.id in reference.starts and (now := _now(history, without=reference.sha))
    ]
    changes = _changes([(now, then) for _, now, then in compared])
    named = adjust([change.p_value for change in changes]).found(NAMING_RATE)
    standings = [
        Standing(
            workload=compared[place][0].series.workload,
            setting=settings[compared[place][0].series.id],
            # The old run was the candidate of the comparison; people ask the other way round.
            effect=-changes[place].effect,
            interval=_turned(changes[place].interval),
        )
        for place in named
        if abs(changes[place].effect) >= log_loss(SLOW_CHANGE_MIN)
    ]
    return Reference(
        sha=reference.sha,
        subject=reference.subject,
        chosen=chosen,
        standings=tuple(sorted(standings, key=lambda one: -abs(one.effect))),
        same=len(compared) - len(standings),
        absent=sum(history.series.id not in reference.starts for history in histories),
    )


def _slow_changes(history: SeriesHistory, *, since: datetime, setting: str) -> list[Drifted]:
    """Return what the stretch of one series hides."""
    stretch = stretch_of(history)
    if len(stretch) < POINTS_MIN:
        return []
    found = examine([_level(point.starts) for point in stretch], confidence=CONFIDENCE)
    changes = [_slope(history, stretch, found.drift, setting=setting)] if found.drift else []
    changes += [
        _step(history, stretch, change, setting=setting)
        for change in found.changes
        if change.index is not None and stretch[change.index].stored_at >= since
    ]
    return [one for one in changes if abs(one.effect) >= log_loss(SLOW_CHANGE_MIN)]


def _slope(
    history: SeriesHistory, stretch: Sequence[HistoryPoint], drift: Drift, *, setting: str
) -> Drifted:
    interval = drift.interval
    return Drifted(
        workload=history.series.workload,
        setting=setting,
        effect=drift.total,
        interval=Interval(
            low=interval.low * drift.n,
            high=interval.high * drift.n,
            confidence=interval.confidence,
        ),
        commits=drift.n,
        since=stretch[0].sha,
    )


def _step(
    history: SeriesHistory, stretch: Sequence[HistoryPoint], change: Change, *, setting: str
) -> Drifted:
    assert change.index is not None, "a change of a history has a place in it"
    return Drifted(
        workload=history.series.workload,
        setting=setting,
        effect=change.effect,
        interval=change.interval,
        commits=len(stretch),
        since=stretch[0].sha,
        step_at=stretch[change.index].sha,
    )


def _now(history: SeriesHistory, *, without: str) -> list[Starts]:
    """Return the newest runs of the present level, oldest first, without the reference itself."""
    points = [point for point in stretch_of(history) if point.sha != without]
    return [point.starts for point in points[-NOW_RUNS_MAX:]]


def _changes(pairs: Sequence[tuple[list[Starts], Starts]]) -> list[Change]:
    """Return the change from now to then; the other workloads tell how noisy this host is."""
    models = [estimate_noise(now) for now, _ in pairs]
    return [
        predict(
            now,
            then,
            confidence=CONFIDENCE,
            prior=prior_from([*models[:place], *models[place + 1 :]]),
        )
        for place, (now, then) in enumerate(pairs)
    ]


def _turned(interval: Interval) -> Interval:
    return Interval(low=-interval.high, high=-interval.low, confidence=interval.confidence)


def _level(starts: Starts) -> float:
    """Return the level of a run as the detectors take it: the mean over starts of mean logs."""
    return math.exp(fmean(fmean(math.log(value) for value in start) for start in starts))
