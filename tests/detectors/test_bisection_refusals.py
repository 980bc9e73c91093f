"""What a bisection refuses: arguments, commits and values out of their range."""

from __future__ import annotations

import math

import pytest

from detectors.bisection import Bisection, EffectPrior, KnownNoise
from detectors.errors import DataError


@pytest.mark.parametrize("n_commits", [1, 0, -3])
def test_a_range_needs_two_commits(n_commits: int) -> None:
    with pytest.raises(DataError, match="2 or more"):
        Bisection(n_commits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": [1, 1]}, "weights"),
        ({"prior": [0] * 7}, "no positive weight"),
        ({"prior": [1] + [0] * 7}, "no positive weight"),
        ({"prior": [1, -1, 1, 1, 1, 1, 1]}, "not negative"),
        ({"prior": [1, math.nan, 1, 1, 1, 1, 1]}, "finite"),
        ({"prior": [1] * 8, "nothing": 0.1}, "not both"),
        ({"nothing": 1.0}, "nothing"),
        ({"nothing": -0.1}, "nothing"),
        ({"stop": 1.0}, "inside"),
        ({"limit": 0}, "limit"),
        ({"costs": [1.0] * 7}, "costs"),
        ({"costs": [0.0] + [1.0] * 7}, "costs"),
        ({"student_df": 0.0}, "student_df"),
        ({"floor_sd": math.inf}, "floor_sd"),
    ],
)
def test_bad_arguments_are_refused(options, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Bisection(8, **options)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_has_to_be_finite(value: float) -> None:
    with pytest.raises(DataError, match="positive number"):
        Bisection(8).record(1, value)


@pytest.mark.parametrize("index", [-1, 8])
def test_an_index_has_to_be_in_the_range(index: int) -> None:
    search = Bisection(8)
    with pytest.raises(DataError, match="no commit"):
        search.record(index, 1.0)
    with pytest.raises(DataError, match="no commit"):
        search.skip(index)
    with pytest.raises(DataError, match="no commit"):
        search.set_cost(index, 1.0)
    assert search.n_measurements == 0


def test_the_rest_of_the_refusals() -> None:
    search = Bisection(2)
    with pytest.raises(DataError, match="no measurement"):
        search.effect()
    with pytest.raises(DataError, match="cost"):
        search.set_cost(1, 0.0)
    with pytest.raises(DataError, match="inside"):
        search.culprits(1.0)
    search.skip(1)
    with pytest.raises(DataError, match="was skipped"):
        search.record(1, 1.0)
    search.skip(0)
    with pytest.raises(DataError, match="every commit"):
        search.select()
    with pytest.raises(DataError, match="known noise"):
        KnownNoise(sd=0.0, df=3)
    with pytest.raises(DataError, match="positive and finite"):
        EffectPrior(sizes=(-1.0,), weights=(1.0,))
    with pytest.raises(DataError, match="order"):
        EffectPrior(sizes=(1.0,), weights=(1.0,), order=0)
