from __future__ import annotations

import random

import pytest

from bisects.document import BisectEnd
from bisects.levels import off_levels
from tests.bisects.ranges import Bench, a_search, observed, searched


def over(levels: dict[int, float], *, culprit: int | None, starts: int = 4, seed: int = 3):
    """A search that is over, with measurements of these levels and 0.5 % of noise."""
    rng = random.Random(seed)
    search = a_search(32)
    for place, level in levels.items():
        search.take(observed(place, *(rng.gauss(level, 0.005) for _ in range(starts))))
    end = BisectEnd.NOT_REPRODUCED if culprit is None else BisectEnd.CULPRIT
    culprits = () if culprit is None else (culprit,)
    return search.document().model_copy(update={"end": end, "culprits": culprits})


def test_one_step_explains_itself() -> None:
    assert off_levels(over({10: 0.0, 19: 0.0, 20: -0.1, 31: -0.1}, culprit=20)) == ()
    for seed in range(20):
        found = searched(a_search(32), Bench(20, seed=seed))
        assert off_levels(found) == (), seed


def test_a_second_step_is_noticed() -> None:
    found = off_levels(over({5: 0.0, 12: -0.1, 19: -0.1, 20: -0.2, 31: -0.2}, culprit=20))

    assert [one.commit for one in found] == [12, 19]
    assert found[0].off == pytest.approx(-0.1, abs=0.01)


def test_a_fix_inside_the_range_is_noticed() -> None:
    (found,) = off_levels(over({16: -0.1, 24: 0.0, 31: 0.0}, culprit=None))

    assert found.commit == 16


def test_the_ordinary_difference_of_builds_is_no_step() -> None:
    # 1.5 % off its level, which many starts show beyond doubt, beside a step of 10 %.
    document = over({10: -0.015, 19: 0.0, 20: -0.1, 31: -0.1}, culprit=20, starts=20)

    assert off_levels(document) == ()


def test_nothing_is_said_on_little_noise_or_before_the_end() -> None:
    assert off_levels(over({16: -0.1, 31: 0.0}, culprit=None, starts=2)) == ()
    under_way = over({16: -0.1, 24: 0.0, 31: 0.0}, culprit=None).model_copy(update={"end": None})
    assert off_levels(under_way) == ()
