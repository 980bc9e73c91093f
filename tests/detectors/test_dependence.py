from __future__ import annotations

import numpy as np
import pytest

from detectors.dependence import CORRELATION_MAX, NUMBERS_MIN, dependence, lag_one
from detectors.synthetic import Autoregressive, Gaussian


def test_independent_numbers_are_worth_themselves() -> None:
    worth = dependence(0.0, 20)

    assert (worth.mean_inflation, worth.variance_bias, worth.df) == pytest.approx((1.0, 1.0, 19.0))


@pytest.mark.parametrize(("rho", "n"), [(0.5, 5), (0.5, 40), (0.8, 20)])
def test_worth_is_that_of_the_covariance_matrix(rho: float, n: int) -> None:
    lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    v = rho**lags
    centre = np.eye(n) - 1 / n

    worth = dependence(rho, n)

    assert worth.mean_inflation == pytest.approx(np.sum(v) / n)
    assert worth.variance_bias == pytest.approx(np.trace(centre @ v) / (n - 1))
    assert worth.df == pytest.approx(n**2 / np.sum(v**2) - 1)


def test_one_number_has_no_degrees_of_freedom() -> None:
    assert dependence(0.5, 1).df == 0.0
    assert dependence(0.5, 1).mean_inflation == 1.0


@pytest.mark.parametrize(("rho", "n"), [(0.5, 40), (0.5, 100), (0.7, 100), (0.3, 200)])
def test_estimate_is_nearly_unbiased_where_it_is_certain(rho: float, n: int) -> None:
    rng = np.random.default_rng(n)
    found = [lag_one(x) for x in Autoregressive(rho=rho).draw(rng, (400, n))]

    # Shrinkage takes (1 - rho^2) / (n rho) on the average.
    assert np.mean(found) == pytest.approx(rho - (1 - rho**2) / (n * rho), abs=0.04)


def test_independent_numbers_are_charged_little() -> None:
    rng = np.random.default_rng(1)
    inflations = [
        dependence(lag_one(x), 20).mean_inflation for x in Gaussian().draw(rng, (1000, 20))
    ]

    assert np.mean(inflations) < 1.15


def test_estimate_stays_inside_its_bounds() -> None:
    assert lag_one(np.arange(50.0)) <= CORRELATION_MAX
    assert lag_one(np.tile([1.0, -1.0], 20)) == 0.0
    assert lag_one(np.ones(30)) == 0.0
    assert lag_one(np.arange(float(NUMBERS_MIN - 1))) == 0.0


def test_units_do_not_matter() -> None:
    x = Autoregressive(rho=0.6).draw(np.random.default_rng(2), 60)

    assert lag_one(7 - 3 * x) == pytest.approx(lag_one(x))
