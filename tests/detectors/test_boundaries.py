from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from detectors.boundaries import Boundaries, crossing_chance
from detectors.errors import DataError


def test_one_look_is_a_t_test() -> None:
    assert crossing_chance(np.array([0.03])) == pytest.approx(0.03, rel=1e-9)
    assert Boundaries(first=2, last=2).level(2, overall=0.01) == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize("last", [3, 5, 10])
def test_one_late_look_is_a_t_test(last: int) -> None:
    boundaries = Boundaries(first=last, last=last)

    assert boundaries.level(last, overall=0.05) == pytest.approx(0.05, rel=5e-3)
    assert boundaries.p_value(last, nominal=0.02) == pytest.approx(0.02, rel=5e-3)


@pytest.mark.parametrize(("second", "third"), [(0.05, 0.05), (0.01, 0.04), (0.002, 0.01)])
def test_two_looks_are_an_area_on_the_sphere(second: float, third: float) -> None:
    # Three Gaussian numbers point anywhere on a sphere alike, and t depends on the direction only.
    # A Fibonacci lattice of a million points measures the area where one look crosses.
    n = 1_000_000
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, math.pi * (1 + math.sqrt(5)) * k
    x = np.stack([np.sqrt(1 - z**2) * np.cos(turn), np.sqrt(1 - z**2) * np.sin(turn), z])
    p_second = stats.ttest_1samp(x[:2], 0.0, axis=0).pvalue
    p_third = stats.ttest_1samp(x, 0.0, axis=0).pvalue
    area = np.mean((p_second <= second) | (p_third <= third))

    assert crossing_chance(np.array([second, third])) == pytest.approx(area, rel=2e-3)


@pytest.mark.parametrize(("looks", "nominal"), [(2, 0.0294), (5, 0.0158)])
def test_many_starts_per_look_give_the_nominal_levels_of_pocock(looks: int, nominal: float) -> None:
    # Pocock, Biometrika 1977, table 1: nominal levels for 5 % overall, of z tests; with 40 numbers
    # to a look t is nearly z.
    levels = np.zeros(40 * looks - 1)
    levels[39 - 1 :: 40] = nominal

    assert crossing_chance(levels) == pytest.approx(0.05, rel=0.02)


@pytest.mark.parametrize(("last", "overall"), [(3, 0.05), (10, 0.05), (10, 0.01), (20, 0.05)])
def test_boundaries_are_crossed_as_often_as_stated(last: int, overall: float) -> None:
    trials = 100_000
    boundaries = Boundaries(first=2, last=last)
    levels = np.array([boundaries.level(n, overall=overall) for n in range(2, last + 1)])
    x = np.random.default_rng(last).standard_normal((trials, last))
    n = np.arange(2, last + 1)
    mean = np.cumsum(x, axis=1)[:, 1:] / n
    squares = np.cumsum(x**2, axis=1)[:, 1:] - n * mean**2
    t = mean / np.sqrt(squares / (n - 1) / n)
    crossed = np.mean(np.any(2 * special.stdtr(n - 1, -np.abs(t)) <= levels, axis=1))

    # Four binomial standard deviations; the calculation is good to .5 % of the rate.
    band = 4 * math.sqrt(overall * (1 - overall) / trials)
    assert crossed == pytest.approx(overall, abs=band + 0.005 * overall)


@pytest.mark.parametrize("look", [2, 3, 7, 10])
@pytest.mark.parametrize("overall", [0.2, 0.05, 0.001])
def test_p_value_at_the_boundary_is_the_overall_level(look: int, overall: float) -> None:
    boundaries = Boundaries(first=2, last=10)
    level = boundaries.level(look, overall=overall)

    assert boundaries.p_value(look, nominal=level) == pytest.approx(overall, rel=1e-4)


def test_p_values_never_fall_below_the_nominal_ones() -> None:
    boundaries = Boundaries(first=2, last=10)

    for look in (2, 5, 10):
        nominal = np.geomspace(1e-9, 1.0, 7)
        found = [boundaries.p_value(look, nominal=float(p)) for p in nominal]
        assert found == sorted(found)
        assert all(p >= q for p, q in zip(found, nominal, strict=True))
    assert boundaries.p_value(5, nominal=0.0) == 0.0
    assert boundaries.p_value(5, nominal=1.0) == 1.0


def test_later_looks_are_less_strict_and_more_looks_stricter() -> None:
    ten = [Boundaries(first=2, last=10).level(n, overall=0.01) for n in range(2, 11)]

    assert ten == sorted(ten)
    assert max(ten) < 0.01
    assert Boundaries(first=2, last=20).level(5, overall=0.01) < ten[3]
    assert Boundaries(first=4, last=10).level(5, overall=0.01) > ten[3]


@pytest.mark.parametrize(("first", "last"), [(1, 5), (5, 4), (2, 201), (0, 0)])
def test_looks_that_cannot_be_are_refused(first: int, last: int) -> None:
    with pytest.raises(DataError, match="looks after"):
        Boundaries(first=first, last=last)
