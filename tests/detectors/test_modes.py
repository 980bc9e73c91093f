from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.signal import lfilter

from detectors.modes import find_modes

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _draw(kind: str, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    if kind == "uniform":
        return rng.random(n)
    if kind == "t(3)":
        return rng.standard_t(3, n)
    if kind == "AR(1) .5":
        return np.asarray(lfilter([1.0], [1.0, -0.5], rng.standard_normal(n + 50))[50:])
    return rng.standard_normal(n)


@pytest.mark.parametrize("kind", ["Gaussian", "uniform", "t(3)", "AR(1) .5"])
@pytest.mark.parametrize("n", [10, 20, 50, 100])
def test_one_level_is_left_alone(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    flagged = sum(find_modes(_draw(kind, rng, n)) is not None for _ in range(500))

    # At most 1 % each, as stated beside the constants; four binomial standard deviations of 500.
    assert flagged <= 0.01 * 500 + 9


@pytest.mark.parametrize(("share", "apart", "n"), [(0.5, 6.0, 30), (0.2, 6.0, 50), (0.5, 5.0, 60)])
def test_two_modes_are_found_with_their_places(share: float, apart: float, n: int) -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(50):
        x = 10 + rng.standard_normal(n) + apart * (np.arange(n) < share * n)
        modes = find_modes(rng.permutation(x))
        if modes is not None:
            found.append((modes.low, modes.high, modes.share_high))

    assert len(found) >= 42
    assert np.mean(found, axis=0) == pytest.approx((10, 10 + apart, share), abs=0.25)


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal(40) + 8 * (rng.random(40) < 0.4)

    plain, scaled = find_modes(x), find_modes(100 + 0.01 * x)

    assert plain is not None
    assert scaled is not None
    assert scaled.high - scaled.low == pytest.approx(0.01 * (plain.high - plain.low))
    assert scaled.share_high == plain.share_high


def test_one_spike_is_no_mode() -> None:
    x = np.random.default_rng(3).standard_normal(40)
    x[7] -= 30

    assert find_modes(x) is None


def test_few_and_constant_numbers_have_one_mode() -> None:
    assert find_modes(np.array([0.0, 0.0, 0.0, 9.0, 9.0, 9.0])) is None
    assert find_modes(np.full(30, 5.0)) is None
    assert find_modes(np.repeat([0.0, 1.0], 20)) is not None
