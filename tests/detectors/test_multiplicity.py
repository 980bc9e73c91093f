from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from detectors.errors import DataError
from detectors.multiplicity import Method, adjust, adjust_e_values, at_level, lord

#: Benjamini & Hochberg (1995), section 3.2: the fifteen ordered p-values of a study of two
#: treatments. Their procedure finds the first four at .05, Bonferroni's the first three.
PAPER = (
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000),
)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=60)


def test_the_paper_finds_four_of_fifteen() -> None:
    found = adjust(PAPER)

    assert found.found(0.05) == (0, 1, 2, 3)
    assert found.adjusted[3] == pytest.approx(0.0095 * 15 / 4)
    assert found.n_tests == 15
    assert found.method is Method.BENJAMINI_HOCHBERG


def test_any_dependence_costs_the_harmonic_number() -> None:
    """1 + 1/2 + ... + 1/15 = 3.318: at .05 the fourth of the paper's is lost."""
    found = adjust(PAPER, method=Method.BENJAMINI_YEKUTIELI)

    assert found.found(0.05) == (0, 1, 2)
    assert found.adjusted[0] == pytest.approx(0.0001 * 15 * 3.318229, rel=1e-6)


@given(P_VALUES)
def test_scipy_adjusts_alike(p_values: list[float]) -> None:
    for method, name in (
        (Method.BENJAMINI_HOCHBERG, "bh"),
        (Method.BENJAMINI_YEKUTIELI, "by"),
    ):
        expected = stats.false_discovery_control(p_values, method=name)

        assert adjust(p_values, method=method).adjusted == pytest.approx(expected)


@given(P_VALUES, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_nothing_becomes_more_certain(
    p_values: list[float], random: object
) -> None:
    order = list(range(len(p_values)))
    random.shuffle(order)
    found = adjust(p_values).adjusted
    shuffled = adjust([p_values[place] for place in order]).adjusted

    assert shuffled == pytest.approx([found[place] for place in order])
    assert all(after >= before for after, before in zip(found, p_values, strict=True))


def test_e_values_are_adjusted_without_a_price_for_dependence() -> None:
    """Of 4 tests at rate .1, the k largest are found from 4 / (k .1): 40, 20, 13.3, 10."""
    found = adjust_e_values([21.0, 0.0, 25.0, 12.0])

    assert found.found(0.1) == (0, 2)
    assert found.adjusted == pytest.approx((4 / (2 * 21), 1.0, 4 / (2 * 21), 4 / (3 * 12)))
    assert adjust_e_values([math.inf, 1.0]).found(0.01) == (0,)


def test_lord_begins_with_half_the_rate_and_is_paid_by_finds() -> None:
    """Ramdas et al. (2017): w0 g(t) + (rate - w0) g(t - first) + rate g(t - each later)."""
    gamma = [
        0.07720838 * math.log(max(n, 2)) / (n * math.exp(math.sqrt(math.log(n))))
        for n in range(1, 5)
    ]
    stream = lord([1.0, 1e-9, 1e-9, 0.5], rate=0.1)

    assert stream.found == (1, 2)
    assert stream.levels == pytest.approx(
        (
            0.05 * gamma[0],
            0.05 * gamma[1],
            0.05 * gamma[2] + 0.05 * gamma[0],
            0.05 * gamma[3] + 0.05 * gamma[1] + 0.1 * gamma[0],
        )
    )
    assert stream.false_share == pytest.approx(sum(stream.levels) / 2)


def test_lord_spends_less_than_its_rate_for_each_find() -> None:
    rng = np.random.default_rng(1)
    p_values = np.where(rng.random(800) < 0.05, 1e-8, rng.random(800))
    stream = lord(p_values, rate=0.1)

    assert len(stream.found) > 20
    assert sum(stream.levels) <= 0.1 * len(stream.found) + 0.05


def test_a_constant_level_promises_so_many_finds_in_a_stream_without_a_change() -> None:
    stream = at_level([0.5, 0.0009, 0.001, 0.2], level=0.001)

    assert stream.found == (1, 2)
    assert stream.false_share == pytest.approx(0.002)
    assert at_level([0.5] * 2000, level=0.001).false_share == 1.0


@pytest.mark.parametrize("call", [adjust, lambda p: lord(p, rate=0.1)])
@pytest.mark.parametrize("bad", [math.nan, -0.01, 1.01, math.inf])
def test_what_is_no_p_value_is_refused_by_its_place(call: object, bad: float) -> None:
    with pytest.raises(DataError, match="p-value 1 is"):
        call([0.1, bad, 0.2])


def test_bad_input_is_refused_and_no_input_is_a_warning() -> None:
    for wrong in ([[0.1]], ["many"]):
        with pytest.raises(DataError, match="p-values"):
            adjust(wrong)
    for wrong_e in ([math.nan], [-1.0]):
        with pytest.raises(DataError, match="e-value 0"):
            adjust_e_values(wrong_e)
    with pytest.raises(DataError, match="adjust_e_values"):
        adjust([0.1], method=Method.E_BENJAMINI_HOCHBERG)
    for rate in (0.0, 1.0, math.nan):
        with pytest.raises(DataError, match="promise"):
            adjust([0.1]).found(rate)
        with pytest.raises(DataError, match="promise"):
            lord([0.1], rate=rate)
    for nothing in (adjust([]), adjust_e_values([]), at_level([], level=0.1)):
        assert "no test" in nothing.warnings[0]


def null_p_values(rng: np.random.Generator, trials: int, share: float) -> np.ndarray:
    """Two-sided p-values of 42 tests that share so much of their variance, as a start's do."""
    common = rng.standard_normal((trials, 1))
    own = rng.standard_normal((trials, 42))
    return 2 * stats.norm.sf(np.abs(np.sqrt(share) * common + np.sqrt(1 - share) * own))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_without_a_change_a_family_is_called_changed_at_most_at_the_rate(share: float) -> None:
    """2,000 commits at .1: at most .1 plus four binomial standard deviations."""
    p_values = null_p_values(np.random.default_rng(2), 2000, share)
    alarms = np.mean([bool(adjust(row).found(0.1)) for row in p_values])

    assert alarms <= 0.1 + 4 * math.sqrt(0.1 * 0.9 / 2000)


def test_of_the_finds_at_most_the_rate_is_false_under_a_common_noise() -> None:
    """A third of 42 tests changed by 4 sd; the mean share of false finds is at most .1."""
    rng = np.random.default_rng(3)
    common, own = rng.standard_normal((1000, 1)), rng.standard_normal((1000, 42))
    scores = np.sqrt(0.4) * common + np.sqrt(0.6) * own
    scores[:, :14] += 4.0
    shares, found = [], 0
    for row in 2 * stats.norm.sf(np.abs(scores)):
        finds = adjust(row).found(0.1)
        shares.append(sum(place >= 14 for place in finds) / max(1, len(finds)))
        found += sum(place < 14 for place in finds)

    assert np.mean(shares) <= 0.1 + 4 * np.std(shares, ddof=1) / math.sqrt(1000)
    assert found / 14_000 > 0.9
