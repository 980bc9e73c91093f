from __future__ import annotations

import random

import pytest

from bisects.document import BisectEnd
from bisects.levels import noise_of, off_levels, other_steps
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
    for seed in range(8):
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


def test_an_earlier_step_is_placed_between_two_measured_commits() -> None:
    (found,) = other_steps(over({5: 0.0, 12: -0.1, 19: -0.1, 20: -0.2, 31: -0.2}, culprit=20))

    assert (found.after, found.up_to) == (5, 12)
    assert found.size == pytest.approx(-0.1, abs=0.01)


def test_a_step_and_its_fix_are_both_placed() -> None:
    step, fix = other_steps(over({10: 0.0, 16: -0.1, 24: 0.0, 31: 0.0}, culprit=None))

    assert (step.after, step.up_to, fix.after, fix.up_to) == (10, 16, 16, 24)
    assert step.size == pytest.approx(-fix.size, abs=0.01)


def test_half_a_fix_after_the_culprit_is_placed() -> None:
    (found,) = other_steps(over({19: 0.0, 20: -0.2, 25: -0.1, 31: -0.1}, culprit=20))

    assert (found.after, found.up_to) == (20, 25)
    assert found.size == pytest.approx(0.1, abs=0.01)


def test_one_step_has_no_other() -> None:
    assert other_steps(over({10: 0.0, 19: 0.0, 20: -0.1, 31: -0.1}, culprit=20)) == ()
    for seed in range(8):
        assert other_steps(searched(a_search(32), Bench(20, seed=seed))) == (), seed


def test_the_noise_within_commits_is_told() -> None:
    sd, df = noise_of(over({10: 0.0, 20: -0.1}, culprit=20, starts=10))

    assert df == 18
    assert sd == pytest.approx(0.005, rel=0.4)
    assert noise_of(a_search(4).document()) == (0.0, 0)


class TwoSteps(Bench):
    """A second step that takes back as much of the first as is said."""

    def __init__(self, first: int, second: int, back: float, *, seed: int) -> None:
        super().__init__(first, seed=seed)
        self._second, self._back = second, back

    def observe(self, order):
        found = super().observe(order)
        if order.commit < self._second:
            return found
        raised = tuple(value - self.step * self._back for value in found.log_ratios)
        return found.model_copy(update={"log_ratios": raised})


@pytest.mark.parametrize(("back", "at_least"), [(0.5, 3), (-1.0, 6)])
def test_a_search_among_two_steps_ends_at_one_and_tells_of_the_other(back, at_least) -> None:
    told = 0
    for seed in range(6):
        found = searched(a_search(32), TwoSteps(10, 21, back, seed=seed))

        assert found.culprits in {(10,), (21,)}
        other = 21 if found.culprits == (10,) else 10
        told += any(step.after < other <= step.up_to for step in other_steps(found))
    assert told >= at_least


def test_a_step_that_was_taken_back_whole_is_named_with_the_fix_or_not_reproduced() -> None:
    named = 0
    for seed in range(6):
        found = searched(a_search(32), TwoSteps(10, 21, 1.0, seed=seed))

        if found.end is BisectEnd.NOT_REPRODUCED:
            continue
        assert found.culprits == (10,)
        (back,) = other_steps(found)
        assert back.after < 21 <= back.up_to
        assert back.size == pytest.approx(0.1, abs=0.02)
        assert back.before == pytest.approx(-0.1, abs=0.02)
        named += 1
    assert named >= 3
