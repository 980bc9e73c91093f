from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from detectors.errors import DataError
from detectors.evidence import t_change
from detectors.noise import NoisePrior
from detectors.predictive import predict
from tests.detectors.noisy_runs import Noise

if TYPE_CHECKING:
    from detectors.change import Change

NO_PRIOR = NoisePrior(slice_sd=1e-6, start_sd=1e-6, run_sd=1e-6, df=1e-9)

logs = st.floats(-0.5, 0.5)
runs = st.lists(st.lists(logs, min_size=1, max_size=4), min_size=1, max_size=3)
histories = st.lists(runs, min_size=1, max_size=7)


def _natural(run: list[Any], scale: float = 1.0) -> list[Any]:
    return [scale * np.exp(start) for start in run]


def _close(change: Change, other: Change) -> None:
    assert other.effect == pytest.approx(change.effect, abs=1e-9)
    assert other.interval.low == pytest.approx(change.interval.low, abs=1e-9)
    assert other.interval.high == pytest.approx(change.interval.high, abs=1e-9)
    assert other.p_value == pytest.approx(change.p_value, abs=1e-6)
    assert other.detectable_effect == pytest.approx(change.detectable_effect, abs=1e-9)


def test_equal_designs_without_a_prior_give_the_textbook_prediction_interval() -> None:
    # Mean and sd of run levels, t with n - 1 degrees of freedom, s * sqrt(1 + 1/n):
    # Hahn & Meeker, Statistical Intervals, on the interval for one future observation.
    rng = np.random.default_rng(1)
    history = Noise(run_sd=0.03).history(rng, 9, 3)
    candidate = Noise().run(rng, 3)
    levels = np.log(history).mean(axis=(1, 2))
    new = np.log(candidate).mean()
    half = stats.t.ppf(0.975, 8) * levels.std(ddof=1) * math.sqrt(1 + 1 / 9)

    change = predict(history, candidate, prior=NO_PRIOR)

    assert change.effect == pytest.approx(new - levels.mean())
    assert change.interval.high - change.effect == pytest.approx(half, rel=1e-6)
    assert change.effect - change.interval.low == pytest.approx(half, rel=1e-6)
    assert (change.n_baseline, change.n_candidate) == (9, 1)
    assert change.warnings == ()


def test_smallest_detectable_effect_is_that_of_a_power_calculation() -> None:
    # R: power.t.test(delta = 0.5, sd = 1, power = 0.8, type = "one.sample") gives n = 33.36713.
    n = 33.36713

    change = t_change(
        effect=0.0, variance=1 / n, df=n - 1, confidence=0.95, n_baseline=1, n_candidate=1,
        method="t", warnings=(),
    )  # fmt: skip

    assert change.detectable_effect == pytest.approx(0.5, rel=1e-5)


def test_one_run_and_one_sample_are_judged_by_the_prior() -> None:
    # Variance 2 * (.010^2 + .008^2 + .010^2) = .000528 with all of it the prior's. Each level has 3
    # degrees of freedom, but the mean square of runs holds all three: 3 in all. t.975(3) = 3.182.
    change = predict([[[100.0]]], [[90.0]])

    assert change.effect == pytest.approx(math.log(0.9))
    assert change.interval.high - change.effect == pytest.approx(3.18245 * 0.022978, rel=1e-4)
    assert any("one run" in warning for warning in change.warnings)


@pytest.mark.parametrize("step", [-0.08, 0.08])
def test_planted_step_is_found(step: float) -> None:
    rng = np.random.default_rng(2)
    history = Noise().history(rng, 10, 3)

    change = predict(history, Noise().run(rng, 3, shift=step))

    assert change.p_value < 0.001
    assert change.interval.low <= step <= change.interval.high


def test_noise_alone_is_left_alone() -> None:
    rng = np.random.default_rng(3)
    history = Noise().history(rng, 10, 3)

    assert predict(history, Noise().run(rng, 3)).p_value > 0.05


def test_spike_in_the_history_neither_shifts_nor_blinds() -> None:
    rng = np.random.default_rng(4)
    history = Noise().history(rng, 10, 3)
    candidate = Noise().run(rng, 3, shift=-0.08)
    clean = predict([*history[:5], *history[6:]], candidate)

    spiked = predict([*history[:5], history[5] * 0.8, *history[6:]], candidate)

    assert spiked.effect == clean.effect
    assert spiked.interval == clean.interval
    assert spiked.n_baseline == 9
    assert "set aside" in spiked.warnings[0]


def test_starts_do_not_average_the_noise_between_runs_down() -> None:
    # Run noise dominates: a hundred starts instead of two must not halve the interval.
    rng = np.random.default_rng(5)
    truth = Noise(run_sd=0.03, start_sd=0.005, slice_sd=0.005)
    history = truth.history(rng, 20, 3)

    few = predict(history, truth.run(rng, 2))
    many = predict(history, truth.run(rng, 100))

    assert many.detectable_effect > 0.95 * few.detectable_effect


def test_higher_confidence_is_a_wider_interval_around_the_same_effect() -> None:
    rng = np.random.default_rng(6)
    history, candidate = Noise().history(rng, 6, 3), Noise().run(rng, 3)

    usual, strict = predict(history, candidate), predict(history, candidate, confidence=0.99)

    assert strict.effect == usual.effect
    assert strict.interval.low < usual.interval.low
    assert strict.detectable_effect > usual.detectable_effect
    assert strict.p_value == usual.p_value


@settings(deadline=None)
@given(history=histories, candidate=runs, scale=st.floats(1e-6, 1e6))
def test_scale_of_both_sides_does_not_matter(
    history: list[Any], candidate: list[Any], scale: float
) -> None:
    change = predict([_natural(run) for run in history], _natural(candidate))

    scaled = predict([_natural(run, scale) for run in history], _natural(candidate, scale))

    _close(change, scaled)


@settings(deadline=None)
@given(history=histories, candidate=runs, data=st.data())
def test_order_of_slices_starts_and_runs_does_not_matter(
    history: list[Any], candidate: list[Any], data: st.DataObject
) -> None:
    def shuffled(items: list[Any]) -> list[Any]:
        return data.draw(st.permutations(items))

    change = predict([_natural(run) for run in history], _natural(candidate))

    other = predict(
        [_natural([shuffled(start) for start in shuffled(run)]) for run in shuffled(history)],
        _natural([shuffled(start) for start in shuffled(candidate)]),
    )

    _close(change, other)


@settings(deadline=None)
@given(history=histories, candidate=runs)
def test_interval_holds_the_effect_and_agrees_with_the_p_value(
    history: list[Any], candidate: list[Any]
) -> None:
    change = predict([_natural(run) for run in history], _natural(candidate))

    outside = not change.interval.low <= 0 <= change.interval.high
    assert change.interval.low < change.effect < change.interval.high
    assert 0 <= change.p_value <= 1
    assert outside == (change.p_value < 0.05) or change.p_value == pytest.approx(0.05)


def test_inputs_are_left_as_they_were() -> None:
    rng = np.random.default_rng(7)
    history, candidate = np.array(Noise().history(rng, 6, 3)), Noise().run(rng, 3)
    history.setflags(write=False)
    candidate.setflags(write=False)

    predict(history, candidate)


@pytest.mark.parametrize(
    ("history", "candidate", "confidence", "words"),
    [
        ([], [[1.0]], 0.95, "history has no slice"),
        ([[[1.0]]], [], 0.95, "candidate has no slice"),
        ([[[1.0]]], [[np.nan], []], 0.95, "candidate has no slice"),
        ([[[1.0]]], [[1.0], [1.0, -3.0]], 0.95, "candidate, start 1, slice 1 is -3.0"),
        ([[[1.0]]], [[1.0]], 95.0, "confidence is 95.0"),
    ],
)
def test_bad_input_is_refused(
    history: list[Any], candidate: list[Any], confidence: float, words: str
) -> None:
    with pytest.raises(DataError, match=words):
        predict(history, candidate, confidence=confidence)
