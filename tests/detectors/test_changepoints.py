"""Planted changes are found, noise is left alone, and every answer says what it is worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from detectors.changepoints import examine, find_changes
from detectors.errors import DataError
from detectors.streaming import ChangeStream
from detectors.synthetic import (
    Autoregressive,
    Gaussian,
    Modes,
    Noise,
    Ramp,
    Spikes,
    history,
)

QUIET = Gaussian(sd=0.01)


def _rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_planted_step_is_found_at_its_commit_with_its_size() -> None:
    values = history(_rng(), 100, noise=QUIET, steps={60: -0.05})

    (change,) = find_changes(values)

    assert change.index == 60
    assert change.interval.low < -0.05 < change.interval.high
    assert change.effect == pytest.approx(-0.05, abs=0.006)
    assert change.p_value < 1e-6
    assert (change.n_baseline, change.n_candidate) == (60, 40)
    assert 0 < change.detectable_effect < 0.02
    assert change.method == "sequential-scan 1"
    assert change.warnings == ()


def test_effects_of_several_steps_are_from_level_to_level() -> None:
    values = history(_rng(2), 300, noise=QUIET, steps={80: -0.05, 150: 0.08, 220: -0.03})

    changes = find_changes(values)

    assert [change.index for change in changes] == pytest.approx([80, 150, 220], abs=2)
    assert [change.effect for change in changes] == pytest.approx([-0.05, 0.08, -0.03], abs=0.008)


def test_an_old_change_is_not_forgotten_in_a_long_history() -> None:
    values = history(_rng(3), 1000, noise=QUIET, steps={500: 0.04})

    assert [change.index for change in find_changes(values)] == pytest.approx([500], abs=1)


def test_a_young_change_says_that_it_may_still_move() -> None:
    values = history(_rng(4), 65, noise=QUIET, steps={60: -0.06})

    (change,) = find_changes(values)

    assert change.index == 60
    assert change.warnings == ("only 5 points at the new level: its place and size may still move",)


def test_missing_commits_keep_their_place_in_the_index() -> None:
    values = history(_rng(5), 100, noise=QUIET, steps={60: -0.05})
    values[[10, 30, 31]] = np.nan

    found = examine(values)

    assert [change.index for change in found.changes] == [60]
    assert (found.n_points, found.n_missing) == (97, 3)


@pytest.mark.parametrize("far", [0.8, 1.3, 1000.0])
def test_one_point_never_alarms_however_far(far: float) -> None:
    values = history(_rng(6), 100, noise=QUIET)
    values[70] *= far

    found = examine(values)

    assert found.changes == ()
    assert found.spikes == (70,)


def test_two_points_never_alarm_but_many_do() -> None:
    values = history(_rng(7), 80, noise=QUIET, steps={70: math.log(0.5)})

    assert find_changes(values[:72]) == []
    assert [change.index for change in find_changes(values)] == [70]


def test_an_excursion_that_was_short_is_forgotten() -> None:
    values = history(_rng(8), 120, noise=Gaussian(sd=0.02))
    values[60:70] *= math.exp(-0.05)

    during = find_changes(values[:70])
    after = find_changes(values)

    assert [change.index for change in during] == pytest.approx([60], abs=2)
    assert after == []


def test_a_ramp_is_drift_and_not_a_staircase() -> None:
    values = history(_rng(9), 200, noise=Gaussian(sd=0.02) + Ramp(total=-0.2))

    found = examine(values)

    assert found.changes == ()
    assert found.drift is not None
    assert found.drift.total == pytest.approx(-0.2, abs=0.03)
    assert found.drift.slope == pytest.approx(found.drift.total / 200)
    assert found.drift.interval.low < -0.2 / 199 < found.drift.interval.high
    assert found.drift.p_value < 1e-4


def test_a_step_on_a_ramp_is_both_and_its_effect_is_the_step_alone() -> None:
    noise = Gaussian(sd=0.02) + Ramp(total=0.15)
    values = history(_rng(10), 200, noise=noise, steps={120: -0.08})

    found = examine(values)

    assert found.drift is not None
    assert found.drift.total == pytest.approx(0.15, abs=0.04)
    (change,) = found.changes
    assert change.index == pytest.approx(120, abs=3)
    assert change.effect == pytest.approx(-0.08, abs=0.02)


def test_drift_stops_at_the_history_of_one_host() -> None:
    values = history(_rng(11), 20_001, noise=Gaussian(sd=0.02) + Ramp(total=0.2))

    assert examine(values).drift is None


@pytest.mark.parametrize(
    ("noise", "rho", "multimodal"),
    [
        (Gaussian(sd=0.02), 0.0, False),
        (Autoregressive(rho=0.6), 0.6, False),
        (Gaussian(sd=0.01) + Modes(gap=0.06), 0.0, True),
    ],
)
def test_noise_is_summed_up(noise: Noise, rho: float, *, multimodal: bool) -> None:
    found = examine(history(_rng(12), 400, noise=noise))

    assert found.changes == ()
    assert found.noise is not None
    assert found.noise.rho == pytest.approx(rho, abs=0.12)
    assert found.noise.multimodal is multimodal
    assert any("two modes" in warning for warning in found.warnings) is multimodal


def test_spikes_do_not_count_as_noise() -> None:
    values = history(_rng(13), 200, noise=QUIET + Spikes(share=0.05))

    found = examine(values)

    assert found.noise is not None
    assert found.noise.sd == pytest.approx(0.01, abs=0.003)
    assert 3 <= len(found.spikes) <= 20


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        ([5.0], "1 measured commits"),
        ([5.0, 6.0], "2 measured commits"),
        ([float("nan")] * 3, "0 measured commits"),
        ([5.0] * 30, "all values are equal"),
    ],
)
def test_too_little_is_a_warning(values: list[float], warning: str) -> None:
    found = examine(values)

    assert found.changes == ()
    assert found.drift is None
    assert any(said.startswith(warning) for said in found.warnings)


def test_a_constant_series_may_still_step() -> None:
    (change,) = find_changes([100.0] * 20 + [90.0] * 5)

    assert change.index == 20
    assert change.ratio == pytest.approx(0.9)


def test_rounded_values_are_noise_too() -> None:
    values = np.round(history(_rng(14), 100, noise=Gaussian(sd=0.004), level=100.0))

    assert find_changes(values) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "empty"),
        ([1.0, 2.0, 0.0], "value 2 of the history is 0.0"),
        ([1.0, -3.0], "value 1 of the history is -3.0"),
        ([float("inf"), 1.0], "value 0 of the history is inf"),
        ([[1.0, 2.0]], "1-D"),
        (["fast"], "numbers"),
        (np.ones(2_000_001), "at most 2000000"),
    ],
)
def test_bad_input_is_refused_with_its_place(values: object, said: str) -> None:
    with pytest.raises(DataError, match=said):
        find_changes(values)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=said):
        examine(values)  # type: ignore[arg-type]


def test_a_confidence_outside_its_range_is_refused() -> None:
    with pytest.raises(DataError, match="confidence"):
        find_changes([1.0], confidence=1.0)
    with pytest.raises(DataError, match="confidence"):
        ChangeStream(confidence=0.0)


def test_a_million_points_are_answered() -> None:
    values = history(_rng(15), 1_000_000, noise=Gaussian(sd=0.02), steps={600_000: 0.05})

    assert 600_000 in [change.index for change in find_changes(values)]


def test_a_stream_refuses_a_bad_value_and_goes_on() -> None:
    stream = ChangeStream()
    stream.append(10.0)

    with pytest.raises(DataError, match="value 1 of the history is 0"):
        stream.append(0.0)

    stream.append(10.1)
    assert len(stream) == 2


@pytest.mark.parametrize("seed", [16, 17, 18])
def test_a_stream_agrees_with_every_prefix(seed: int) -> None:
    rng = _rng(seed)
    noise = Autoregressive(rho=0.2) + Spikes(share=0.02)
    values = history(rng, 260, noise=noise, steps={50: -0.1, 56: 0.1, 120: 0.08, 200: -0.09})
    values[rng.random(260) < 0.03] = np.nan
    stream = ChangeStream()

    for end, value in enumerate(values, start=1):
        stream.append(float(value))
        assert stream.changes == find_changes(values[:end])

    assert len(stream) == 260
    assert len(stream.changes) >= 2
