from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from detectors.errors import DataError
from detectors.noise import estimate_noise
from detectors.pairwise import PAIR_FLOOR_SD, compare
from tests.detectors.noisy_runs import Noise

if TYPE_CHECKING:
    from detectors.change import Change

NO_FLOOR = 1e-12

logs = st.floats(-0.5, 0.5)
starts = st.lists(logs, min_size=1, max_size=4)
pairs = st.lists(st.tuples(starts, starts), min_size=1, max_size=6)
sides = st.lists(starts, min_size=1, max_size=6)


def _natural(side: list[Any], scale: float = 1.0) -> list[Any]:
    return [scale * np.exp(start) for start in side]


def _close(change: Change, other: Change) -> None:
    assert other.effect == pytest.approx(change.effect, abs=1e-9)
    assert other.interval.low == pytest.approx(change.interval.low, rel=1e-6, abs=1e-9)
    assert other.interval.high == pytest.approx(change.interval.high, rel=1e-6, abs=1e-9)
    assert other.p_value == pytest.approx(change.p_value, abs=1e-6)


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_pairs_without_a_floor_are_the_paired_t_test(n: int) -> None:
    rng = np.random.default_rng(n)
    baseline, candidate = Noise().starts(rng, n), Noise().starts(rng, n)
    expected = stats.ttest_rel(np.log(candidate).mean(axis=1), np.log(baseline).mean(axis=1))

    change = compare(baseline, candidate, confidence=0.9, floor_sd=NO_FLOOR)

    interval = expected.confidence_interval(0.9)
    assert change.p_value == pytest.approx(expected.pvalue)
    assert (change.interval.low, change.interval.high) == pytest.approx(tuple(interval))
    assert (change.n_baseline, change.n_candidate) == (n, n)
    assert change.method.startswith("paired")


@pytest.mark.parametrize(("n_baseline", "n_candidate"), [(2, 3), (3, 7), (9, 4)])
def test_unequal_starts_without_a_floor_are_welchs_t_test(
    n_baseline: int, n_candidate: int
) -> None:
    rng = np.random.default_rng(n_baseline)
    baseline, candidate = Noise().starts(rng, n_baseline), Noise().starts(rng, n_candidate)
    expected = stats.ttest_ind(
        np.log(candidate).mean(axis=1), np.log(baseline).mean(axis=1), equal_var=False
    )

    change = compare(baseline, candidate, floor_sd=NO_FLOOR)

    interval = expected.confidence_interval(0.95)
    assert change.p_value == pytest.approx(expected.pvalue)
    assert (change.interval.low, change.interval.high) == pytest.approx(tuple(interval))
    assert (change.n_baseline, change.n_candidate) == (n_baseline, n_candidate)
    assert "cannot be paired" in change.warnings[0]


def test_planted_step_is_found_through_drift_that_both_sides_share() -> None:
    # The host swings by 10 % between starts; only the pairs can see a loss of 5 %.
    rng = np.random.default_rng(1)
    drift = np.exp(0.10 * rng.standard_normal((5, 1)))
    quiet = Noise(start_sd=0.005)
    baseline = drift * quiet.starts(rng, 5)
    candidate = drift * quiet.starts(rng, 5, shift=-0.05)

    change = compare(baseline, candidate)

    assert change.p_value < 0.01
    assert change.interval.low <= -0.05 <= change.interval.high
    assert change.interval.high - change.interval.low < 0.05


def test_noise_alone_is_left_alone() -> None:
    rng = np.random.default_rng(2)

    assert compare(Noise().starts(rng, 5), Noise().starts(rng, 5)).p_value > 0.05


def test_pairs_that_agree_by_luck_are_not_believed() -> None:
    # Two differences of exactly 1 %: no spread at all. With the floor, .002 / sqrt(2) * 12.706.
    change = compare([[100.0], [200.0]], [[101.0], [202.0]])

    half = change.interval.high - change.effect
    assert change.effect == pytest.approx(math.log(1.01))
    assert half == pytest.approx(PAIR_FLOOR_SD / math.sqrt(2) * 12.7062, rel=1e-4)
    assert change.p_value > 0.05


def test_floor_fades_with_the_number_of_pairs() -> None:
    # Differences of exactly 1 % again, in four pairs: .002 / 3 / sqrt(4) * t.975(3).
    change = compare([[100.0]] * 4, [[101.0]] * 4)

    half = change.interval.high - change.effect
    assert half == pytest.approx(PAIR_FLOOR_SD / 3 / 2 * 3.18245, rel=1e-4)


def test_unequal_sides_that_agree_by_luck_are_not_believed() -> None:
    # Half the floor's variance on each side, a quarter of that with one more degree of freedom,
    # over 2 and 3 starts.
    change = compare([[100.0], [100.0]], [[101.0], [101.0], [101.0]])

    terms = PAIR_FLOOR_SD**2 / 2 / np.array([1, 4]) / np.array([2, 3])
    df = terms.sum() ** 2 / (terms**2 / [1, 2]).sum()
    half = stats.t.isf(0.025, df) * math.sqrt(terms.sum())
    assert change.interval.high - change.effect == pytest.approx(half)


def test_history_steadies_pairs_that_agree_more_than_it_says() -> None:
    # Two pairs, no spread. Expected of the history, which is the prior's: 2 (.008^2 + .01^2)
    # = .000328 with 3 degrees of freedom, beside 1 of the pairs: 3 * .000328 / 4; t.975(4) = 2.776.
    noise = estimate_noise([[[100.0]]])

    change = compare([[100.0], [200.0]], [[99.0], [198.0]], noise=noise)

    half = change.interval.high - change.effect
    assert half == pytest.approx(2.77645 * math.sqrt(0.000246 / 2), rel=1e-4)


def test_history_does_not_excuse_pairs_that_disagree_more_than_it_says() -> None:
    # Starts alone are noisier than the history's: the slices have nothing to add.
    rng = np.random.default_rng(3)
    noise = estimate_noise(Noise().history(rng, 10, 3))
    loud = Noise(start_sd=0.08)
    baseline, candidate = loud.starts(rng, 4), loud.starts(rng, 4)

    assert compare(baseline, candidate, noise=noise) == compare(baseline, candidate)


def test_restless_slices_take_the_history_back() -> None:
    # Two pairs that agree by luck on a day when slices are four times as noisy as in the history:
    # the expected variance is 16 times as large, but for what four degrees of freedom hold back.
    rng = np.random.default_rng(8)
    noise = estimate_noise(Noise().history(rng, 30, 3))
    scatter = np.exp(0.04 * rng.standard_normal((1, 5)) * np.ones((2, 1)))
    calm = np.ones((2, 5))

    restless = compare(100 * scatter, 100 * scatter, noise=noise)
    quiet = compare(100 * calm, 100 * calm, noise=noise)

    logs = np.log(scatter[0])
    squares = 4 * float(np.sum((logs - logs.mean()) ** 2)) / noise.slice_sd**2
    times = math.sqrt((4 + squares) / (4 + 16))
    assert times > 2
    assert restless.interval.high == pytest.approx(times * quiet.interval.high)


def test_missing_slices_are_left_out_of_their_start() -> None:
    whole = compare([[100.0, 110.0], [100.0, 103.0]], [[90.0], [95.0]])

    padded = compare([[100.0, np.nan, 110.0], [100.0, 103.0, np.nan]], [[90.0], [np.nan, 95.0]])

    assert padded == whole


def test_start_missing_on_one_side_is_dropped_from_both() -> None:
    rng = np.random.default_rng(4)
    baseline, candidate = Noise().starts(rng, 4), Noise().starts(rng, 4)
    rows = [0, 1, 3]
    expected = compare(baseline[rows], candidate[rows])
    candidate[2] = np.nan

    change = compare(baseline, candidate)

    assert (change.effect, change.interval) == (expected.effect, expected.interval)
    assert change.n_baseline == 3
    assert change.warnings == ("pairs of starts left out for want of a slice: 1",)


@pytest.mark.parametrize(
    ("baseline", "candidate", "effect"),
    [
        ([[100.0, 100.0]], [[90.0]], math.log(0.9)),
        ([[100.0], [np.nan]], [[90.0], [95.0]], math.log(0.9)),
        ([[100.0], []], [[], [90.0]], math.log(0.9)),
        ([[100.0]], [[90.0], [90.0]], math.log(0.9)),
    ],
)
def test_too_few_starts_are_a_warning_that_says_how_many_it_takes(
    baseline: list[Any], candidate: list[Any], effect: float
) -> None:
    change = compare(baseline, candidate)

    assert change.effect == pytest.approx(effect)
    assert (change.interval.low, change.interval.high) == (-math.inf, math.inf)
    assert (change.p_value, change.detectable_effect) == (1.0, math.inf)
    assert "at least 2 are needed" in change.warnings[-1]


def test_two_pairs_are_judged_with_a_warning() -> None:
    rng = np.random.default_rng(5)

    change = compare(Noise().starts(rng, 2), Noise().starts(rng, 2))

    assert math.isfinite(change.interval.low)
    assert "3 are advised" in change.warnings[0]


@settings(deadline=None)
@given(pairs=pairs)
def test_swapping_paired_sides_flips_the_sign_exactly(pairs: list[Any]) -> None:
    baseline, candidate = (_natural(side) for side in zip(*pairs, strict=True))

    there, back = compare(baseline, candidate), compare(candidate, baseline)

    assert back.effect == -there.effect
    assert (back.interval.low, back.interval.high) == (-there.interval.high, -there.interval.low)
    assert back.p_value == there.p_value
    assert back.detectable_effect == there.detectable_effect


@settings(deadline=None)
@given(baseline=sides, candidate=sides)
def test_swapping_any_sides_flips_the_sign_exactly(
    baseline: list[Any], candidate: list[Any]
) -> None:
    baseline, candidate = _natural(baseline), _natural(candidate)

    there, back = compare(baseline, candidate), compare(candidate, baseline)

    assert back.effect == -there.effect
    assert (back.interval.low, back.interval.high) == (-there.interval.high, -there.interval.low)
    assert back.p_value == there.p_value
    assert (back.n_baseline, back.n_candidate) == (there.n_candidate, there.n_baseline)


@settings(deadline=None)
@given(baseline=sides, candidate=sides, scale=st.floats(1e-6, 1e6))
def test_scale_of_both_sides_does_not_matter(
    baseline: list[Any], candidate: list[Any], scale: float
) -> None:
    change = compare(_natural(baseline), _natural(candidate))

    _close(change, compare(_natural(baseline, scale), _natural(candidate, scale)))


@settings(deadline=None)
@given(pairs=pairs, factor=st.floats(0.5, 2.0))
def test_scale_of_one_side_is_the_effect(pairs: list[Any], factor: float) -> None:
    baseline, candidate = (_natural(side) for side in zip(*pairs, strict=True))

    change = compare(baseline, candidate)
    scaled = compare(baseline, [factor * start for start in candidate])

    assert scaled.effect - change.effect == pytest.approx(math.log(factor), abs=1e-9)


@settings(deadline=None)
@given(pairs=pairs, data=st.data())
def test_order_of_pairs_and_of_slices_does_not_matter(
    pairs: list[Any], data: st.DataObject
) -> None:
    baseline, candidate = (_natural(side) for side in zip(*pairs, strict=True))
    mixed = data.draw(st.permutations(pairs))
    mixed = [[data.draw(st.permutations(start)) for start in pair] for pair in mixed]

    other = compare(*(_natural(side) for side in zip(*mixed, strict=True)))

    _close(compare(baseline, candidate), other)


def test_inputs_are_left_as_they_were() -> None:
    rng = np.random.default_rng(6)
    baseline, candidate = Noise().starts(rng, 3), Noise().starts(rng, 3)
    baseline.setflags(write=False)
    candidate.setflags(write=False)

    compare(baseline, candidate)


@pytest.mark.parametrize(
    ("baseline", "candidate", "options", "words"),
    [
        ([], [[1.0]], {}, "baseline has no slice"),
        ([[1.0]], [[np.nan]], {}, "candidate has no slice"),
        ([[1.0], [2.0, 0.0]], [[1.0], [1.0]], {}, "baseline, start 1, slice 1 is 0.0"),
        ([[1.0]], [[-np.inf]], {}, "candidate, start 0, slice 0 is -inf"),
        ([1.0, 2.0], [[1.0], [2.0]], {}, "1-D sequence"),
        ([[1.0]], [[1.0]], {"confidence": 1.0}, "confidence is 1.0"),
        ([[1.0]], [[1.0]], {"floor_sd": 0.0}, "floor_sd is 0.0"),
    ],
)
def test_bad_input_is_refused(
    baseline: list[Any], candidate: list[Any], options: dict[str, float], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        compare(baseline, candidate, **options)
