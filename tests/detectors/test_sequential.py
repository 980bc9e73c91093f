from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.boundaries import Boundaries
from detectors.errors import DataError
from detectors.noise import estimate_noise
from detectors.pairwise import compare
from detectors.sequential import Look, SequentialPlan, Stop, look
from detectors.verdict import Decision, decide
from tests.detectors.noisy_runs import Noise

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLAN = SequentialPlan()
TRIALS = 400

logs = st.floats(-0.5, 0.5)
starts = st.lists(logs, min_size=1, max_size=3)
pairs = st.lists(st.tuples(starts, starts), min_size=1, max_size=6)


def _natural(side: list[Any], scale: float = 1.0) -> list[Any]:
    return [scale * np.exp(start) for start in side]


def _follow(
    baseline: NDArray[np.float64], candidate: NDArray[np.float64], **options: Any
) -> list[Look]:
    """Looks after every start, until one says stop."""
    looks: list[Look] = []
    for n in range(1, len(baseline) + 1):
        looks.append(look(baseline[:n], candidate[:n], plan=PLAN, **options))
        if looks[-1].stopped:
            break
    return looks


def test_one_planned_look_is_the_comparison_itself() -> None:
    rng = np.random.default_rng(1)
    baseline, candidate = Noise().starts(rng, 5), Noise().starts(rng, 5)
    fixed = compare(baseline, candidate)

    change = look(baseline, candidate, plan=SequentialPlan(starts_min=5, starts_max=5)).change

    assert change.effect == fixed.effect
    assert change.p_value == pytest.approx(fixed.p_value, rel=5e-3)
    assert change.interval.low == pytest.approx(fixed.interval.low, abs=1e-4)
    assert change.interval.high == pytest.approx(fixed.interval.high, abs=1e-4)


def test_looking_after_every_start_is_paid_for() -> None:
    rng = np.random.default_rng(2)
    baseline, candidate = Noise().starts(rng, 5), Noise().starts(rng, 5, shift=-0.01)
    fixed = compare(baseline, candidate)

    change = look(baseline, candidate, plan=PLAN).change

    assert change.p_value > fixed.p_value
    assert change.interval.low < fixed.interval.low
    assert change.detectable_effect > fixed.detectable_effect
    assert change.interval.confidence == PLAN.confidence
    assert change.method != fixed.method


def test_loss_beyond_the_gate_stops_as_different() -> None:
    rng = np.random.default_rng(3)

    looks = _follow(Noise().starts(rng, 10), Noise().starts(rng, 10, shift=-0.12))

    assert looks[-1].stop is Stop.DIFFERENT
    assert 3 <= len(looks) <= 6
    assert all(earlier.stop is Stop.CONTINUE for earlier in looks[:-1])
    assert looks[-1].change.effect < 0
    assert looks[-1].starts_more == 0


def test_equal_sides_stop_as_equivalent() -> None:
    rng = np.random.default_rng(4)

    looks = _follow(Noise().starts(rng, 10), Noise().starts(rng, 10))

    assert looks[-1].stop is Stop.EQUIVALENT
    assert 3 <= len(looks) <= 6


def test_noise_that_the_budget_cannot_tame_is_exhausted() -> None:
    rng = np.random.default_rng(5)
    loud = Noise().times(10)

    looks = _follow(loud.starts(rng, 10), loud.starts(rng, 10, shift=-0.02))

    assert len(looks) == 10
    assert looks[-1].stop is Stop.EXHAUSTED
    assert looks[-1].starts_more is None or looks[-1].starts_more > 0


def test_two_starts_are_enough_only_with_a_history() -> None:
    # A loss of a quarter, at a noise of 1 %: Student's t of one degree of freedom cannot know.
    rng = np.random.default_rng(6)
    baseline, candidate = Noise().starts(rng, 2), Noise().starts(rng, 2, shift=-0.29)
    noise = estimate_noise(Noise().history(rng, 8, 3))

    assert look(baseline, candidate, plan=PLAN).stop is Stop.CONTINUE
    assert look(baseline, candidate, plan=PLAN, noise=noise).stop is Stop.DIFFERENT


def test_stop_and_verdict_agree_at_every_look() -> None:
    rng = np.random.default_rng(7)
    agreed = {
        Stop.DIFFERENT: {Decision.REGRESSION, Decision.IMPROVEMENT},
        Stop.EQUIVALENT: {Decision.NO_CHANGE},
        Stop.CONTINUE: {Decision.INCONCLUSIVE},
        Stop.EXHAUSTED: {Decision.INCONCLUSIVE},
    }
    seen = set()
    for shift in (0.0, -0.05, 0.1, -0.2):
        noise = Noise().times(2)
        for found in _follow(noise.starts(rng, 10), noise.starts(rng, 10, shift=shift)):
            for direction in (1, -1):
                verdict = decide(
                    found.change, direction=direction, gate=PLAN.gate, alpha=PLAN.alpha
                )
                assert verdict.decision in agreed[found.stop]
            seen.add(found.stop)
    assert len(seen) >= 3


def test_a_first_look_that_is_planned_later_waits() -> None:
    rng = np.random.default_rng(8)
    baseline, candidate = Noise().starts(rng, 4), Noise().starts(rng, 4, shift=-0.3)
    plan = SequentialPlan(starts_min=4)

    early = look(baseline[:3], candidate[:3], plan=plan)

    assert early.stop is Stop.CONTINUE
    assert math.isinf(early.change.interval.high)
    assert early.change.p_value == 1.0
    assert early.starts_more == 1
    assert "judged from 4 on" in early.change.warnings[-1]
    assert look(baseline, candidate, plan=plan).stop is Stop.DIFFERENT


def test_starts_that_broke_use_up_the_budget_but_are_no_evidence() -> None:
    rng = np.random.default_rng(9)
    loud = Noise().times(4)
    baseline, candidate = loud.starts(rng, 3), loud.starts(rng, 3)
    candidate[1] = np.nan

    found = look(baseline, candidate, plan=SequentialPlan(starts_max=3))

    assert found.stop is Stop.EXHAUSTED
    assert found.starts == 2
    assert "left out" in found.change.warnings[0]


def test_one_start_is_too_little_to_stop() -> None:
    found = look([[100.0]], [[50.0]], plan=PLAN)

    assert found.stop is Stop.CONTINUE
    assert found.starts_more == 1
    assert found.change.p_value == 1.0


def test_starts_beyond_the_plan_are_judged_as_if_planned_and_named() -> None:
    rng = np.random.default_rng(10)
    baseline, candidate = Noise().starts(rng, 6), Noise().starts(rng, 6)

    found = look(baseline, candidate, plan=SequentialPlan(starts_max=4))

    stretched = look(baseline, candidate, plan=SequentialPlan(starts_max=6))
    assert found.change.interval == stretched.change.interval
    assert found.change.warnings == ("6 starts were looked at, 4 were planned",)


def test_sides_of_unequal_length_are_looked_at_too() -> None:
    rng = np.random.default_rng(11)

    found = look(Noise().starts(rng, 4), Noise().starts(rng, 6, shift=-0.2), plan=PLAN)

    assert found.stop is Stop.DIFFERENT
    assert found.starts == 4


@pytest.mark.parametrize("shift", [0.0, -0.08])
def test_starts_more_is_about_what_it_takes(shift: float) -> None:
    rng = np.random.default_rng(12)
    noise = Noise().times(1.5)
    plan = SequentialPlan(starts_max=12)
    ratios = []
    for _ in range(20):
        baseline, candidate = noise.starts(rng, 12), noise.starts(rng, 12, shift=shift)
        guess = look(baseline[:4], candidate[:4], plan=plan).starts_more
        needed = next(
            (n for n in range(4, 13) if look(baseline[:n], candidate[:n], plan=plan).stopped), 12
        )
        ratios.append((4 + guess) / needed if guess is not None else 3.0)

    assert 0.7 <= np.median(ratios) <= 1.4


@given(pairs=pairs)
@settings(max_examples=20, deadline=None)
def test_swapping_sides_flips_the_sign_and_nothing_else(pairs: list[Any]) -> None:
    baseline, candidate = (_natural(side) for side in zip(*pairs, strict=True))

    there = look(baseline, candidate, plan=PLAN)
    back = look(candidate, baseline, plan=PLAN)

    assert back.stop is there.stop
    assert back.starts_more == there.starts_more
    assert back.change.effect == -there.change.effect
    assert back.change.interval.low == -there.change.interval.high
    assert back.change.p_value == there.change.p_value


@given(pairs=pairs, scale=st.floats(1e-3, 1e3), data=st.data())
@settings(max_examples=20, deadline=None)
def test_scale_and_order_do_not_matter(pairs: list[Any], scale: float, data: st.DataObject) -> None:
    baseline, candidate = (_natural(side) for side in zip(*pairs, strict=True))
    mixed = data.draw(st.permutations(pairs))
    found = look(baseline, candidate, plan=PLAN).change

    other = look(*(_natural(side, scale) for side in zip(*mixed, strict=True)), plan=PLAN).change

    assert other.effect == pytest.approx(found.effect, abs=1e-9)
    assert other.interval.low == pytest.approx(found.interval.low, rel=1e-6, abs=1e-9)
    assert other.p_value == pytest.approx(found.p_value, rel=1e-4, abs=1e-9)


@given(pairs=pairs)
@settings(max_examples=20, deadline=None)
def test_interval_and_p_value_agree(pairs: list[Any]) -> None:
    baseline, candidate = (_natural(side) for side in zip(*pairs, strict=True))
    change = look(baseline, candidate, plan=SequentialPlan(confidence=0.99, alpha=0.01)).change

    outside = not change.interval.low <= 0 <= change.interval.high
    assert outside == (change.p_value <= 0.01) or change.p_value == pytest.approx(0.01, rel=1e-3)


def _ever_wrong(noise: Noise, *, last: int, overall: float, seed: int, missing: float = 0) -> float:
    """Share of null pairs that are significant at any look; the looks' own levels, for speed."""
    rng = np.random.default_rng(seed)
    boundaries = Boundaries(first=2, last=last)
    levels = [boundaries.level(n, overall=overall) for n in range(2, last + 1)]
    wrong = 0
    for _ in range(TRIALS):
        baseline, candidate = noise.starts(rng, last, 2), noise.starts(rng, last, 2)
        baseline[rng.random(last) < missing] = np.nan
        for n in range(2, last + 1):
            if np.all(np.isnan(baseline[:n])):
                continue
            change = compare(baseline[:n], candidate[:n])
            if change.n_baseline >= 2 and change.p_value <= levels[change.n_baseline - 2]:
                wrong += 1
                break
    return wrong / TRIALS


@pytest.mark.parametrize(
    ("noise", "last", "missing"),
    [
        (Noise().times(2), 3, 0.0),
        (Noise().times(2), 8, 0.0),
        (Noise().times(2), 8, 0.2),
        (Noise(tails=3).times(2), 3, 0.0),
        (Noise(tails=3).times(2), 8, 0.0),
    ],
)
def test_a_look_after_every_start_errs_no_more_often_than_stated(
    noise: Noise, last: int, missing: float
) -> None:
    rate = _ever_wrong(noise, last=last, overall=0.05, seed=last, missing=missing)

    assert rate <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / TRIALS)


def test_gaussian_looks_use_up_what_is_stated() -> None:
    rate = _ever_wrong(Noise().times(4), last=6, overall=0.10, seed=20)

    assert rate == pytest.approx(0.10, abs=4 * math.sqrt(0.10 * 0.90 / TRIALS))


@pytest.mark.parametrize("times", [1, 4])
def test_looks_with_a_history_err_less_often_even_on_a_noisy_day(times: float) -> None:
    # docs/statistics.md states .3 % at 1 % for one and four times the noise of the history.
    rng = np.random.default_rng(21)
    models = [estimate_noise(Noise().history(rng, 8, 3)) for _ in range(10)]
    boundaries = Boundaries(first=2, last=5)
    today = Noise().times(times)
    wrong = 0
    for trial in range(TRIALS):
        baseline, candidate = today.starts(rng, 5), today.starts(rng, 5)
        wrong += any(
            compare(baseline[:n], candidate[:n], noise=models[trial % 10]).p_value
            <= boundaries.level(n, overall=0.05)
            for n in range(2, 6)
        )

    assert wrong / TRIALS <= 0.05


def test_same_data_give_the_same_look() -> None:
    rng = np.random.default_rng(13)
    baseline, candidate = Noise().starts(rng, 4), Noise().starts(rng, 4)
    baseline.setflags(write=False)
    candidate.setflags(write=False)

    assert look(baseline, candidate, plan=PLAN) == look(baseline, candidate, plan=PLAN)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gate": 0.0}, "gate 0.0"),
        ({"alpha": 1.0}, "alpha 1.0"),
        ({"confidence": 95.0}, "confidence is 95.0"),
        ({"starts_min": 1}, "looks after 1"),
        ({"starts_min": 5, "starts_max": 4}, "looks after 5 to 4"),
        ({"starts_max": 1000}, "looks after 2 to 1000"),
    ],
)
def test_plan_that_cannot_be_followed_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        SequentialPlan(**options)


def test_bad_samples_are_refused() -> None:
    with pytest.raises(DataError, match="candidate has no slice"):
        look([[1.0]], [[np.nan]], plan=PLAN)
    with pytest.raises(DataError, match="baseline, start 0, slice 0 is -1"):
        look([[-1.0]], [[1.0]], plan=PLAN)
