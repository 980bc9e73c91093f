"""Slow changes and standings, from histories made here; no store."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from results.series import SeriesKey
from service.core.digests import HistoryPoint, ReferenceRun, SeriesHistory
from service.flows.digest_trends import (
    drifted_in,
    measured_since,
    settings_of,
    standing_against,
    stretch_of,
)
from tests.fakes.memory_fork import sha_of
from tests.fakes.stored_weeks import HOUR, MONDAY, WEEK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.digest import Drifted

KEY = SeriesKey(
    fork="demo",
    branch="main",
    host_class="small",
    variant="rel",
    config="default",
    workload="scan",
    metric="throughput_ops_s",
    dataset="small:dddd",
    placement="shared-core",
)


def key(**parts: str) -> SeriesKey:
    return SeriesKey(**{part: getattr(KEY, part) for part in KEY.__dataclass_fields__} | parts)


def history(
    logs: Sequence[float],
    *,
    series: SeriesKey = KEY,
    accepted: Sequence[int] = (),
    step: timedelta = HOUR,
) -> SeriesHistory:
    """Return a history of one start with two equal slices for each commit."""
    return SeriesHistory(
        series=series,
        points=tuple(
            HistoryPoint(
                sha=sha_of(number),
                stored_at=MONDAY + number * step,
                starts=((100 * math.exp(log),) * 2,) * 2,
            )
            for number, log in enumerate(logs)
        ),
        accepted=frozenset(map(sha_of, accepted)),
    )


def noise(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.006, count)


def drifted(found: SeriesHistory) -> tuple[Drifted, ...]:
    return drifted_in([found], begins=MONDAY, settings={found.series.id: ""})


@pytest.mark.parametrize("each", [-0.004, -0.001, 0.002])
def test_a_slope_is_found_with_its_size(each: float) -> None:
    logs = each * np.arange(80) + noise(7, 80)

    (found,) = drifted(history(logs))
    assert found.step_at is None
    assert found.interval.low <= 80 * each <= found.interval.high
    assert found.commits == 80


def test_noise_alone_drifts_nowhere() -> None:
    # Of 60 calm histories none has a slope of 1 %, and one step is what luck may make of them.
    found = [one for seed in range(60) for one in drifted(history(noise(seed, 100)))]

    assert [one for one in found if one.step_at is None] == []
    assert len(found) <= 1


def test_a_step_below_the_gate_is_found_and_dated() -> None:
    logs = np.where(np.arange(80) < 50, 0.0, -0.03) + noise(3, 80)

    (found,) = drifted(history(logs))
    assert found.step_at is not None
    assert abs(int(found.step_at, 16) - 50) <= 2
    assert found.effect == pytest.approx(-0.03, abs=0.006)


def test_an_old_step_is_old_news() -> None:
    logs = np.where(np.arange(80) < 30, 0.0, -0.03) + noise(3, 80)
    old = history(logs, step=timedelta(days=1))

    assert drifted_in([old], begins=MONDAY + 10 * WEEK, settings={KEY.id: ""}) == ()
    assert drifted_in([old], begins=MONDAY + 6 * WEEK, settings={KEY.id: ""}) != ()


def test_a_confirmed_change_is_no_drift() -> None:
    logs = np.where(np.arange(80) < 50, 0.0, -0.1) + noise(3, 80)

    assert drifted(history(logs, accepted=[50])) == ()
    assert drifted(history(logs)) != ()


def test_a_change_too_small_for_anybody_is_left_out() -> None:
    assert drifted(history(np.linspace(0, -0.006, 100) + noise(5, 100) / 20)) == ()


def test_a_young_history_says_nothing() -> None:
    assert drifted(history(np.linspace(0, -0.2, 11))) == ()


def test_the_stretch_begins_at_the_last_confirmed_change() -> None:
    found = stretch_of(history([0.0] * 9, accepted=[2, 5]))

    assert [point.sha for point in found] == [sha_of(number) for number in (5, 6, 7, 8)]


def test_only_what_was_measured_this_week_counts() -> None:
    old, new = history([0.0] * 3), history([0.0] * 3, step=WEEK)

    assert measured_since([old, new], MONDAY + 2 * WEEK) == (new,)


def test_two_series_of_a_workload_are_told_apart_by_what_differs() -> None:
    alone = key(workload="point-query")
    default, large = key(host_class="a"), key(host_class="b", config="large")

    assert settings_of([alone, default, large]) == {
        alone.id: "",
        default.id: "a, default",
        large.id: "b, large",
    }


def test_a_standing_has_its_sign_and_interval_from_then_to_now() -> None:
    now = history(noise(1, 20) - 0.1)
    then = ReferenceRun(sha="f" * 40, subject="Import", starts={KEY.id: ((100.0, 100.1),) * 3})

    found = standing_against(then, [now], chosen=True, settings={KEY.id: ""})
    (scan,) = found.standings
    assert scan.effect == pytest.approx(-0.1, abs=0.01)
    assert scan.interval.low < scan.effect < scan.interval.high < 0
    assert (found.same, found.absent) == (0, 0)


def test_what_is_the_same_and_what_is_absent_is_counted() -> None:
    same, other = history(noise(1, 20)), history(noise(2, 20), series=key(workload="insert"))
    then = ReferenceRun(sha="f" * 40, subject="Import", starts={KEY.id: ((100.0, 100.1),) * 3})

    settings = settings_of([same.series, other.series])
    found = standing_against(then, [same, other], chosen=True, settings=settings)
    assert (found.standings, found.same, found.absent) == ((), 1, 1)


def test_the_reference_is_not_compared_with_itself() -> None:
    alone = history([0.0])
    then = ReferenceRun(sha=sha_of(0), subject="Import", starts={KEY.id: ((100.0, 100.1),) * 3})

    found = standing_against(then, [alone], chosen=False, settings={KEY.id: ""})
    assert (found.standings, found.same) == ((), 0)
