from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from detectors.errors import DataError
from detectors.noise import estimate_noise
from detectors.pairwise import compare
from detectors.predictive import predict
from detectors.replication import (
    Replication,
    pair_detects,
    run_detects,
    slices_per_start,
    starts_for_pair,
    starts_for_run,
)
from tests.detectors.noisy_runs import Noise

MODEL = estimate_noise(Noise().history(np.random.default_rng(1), 10, 3))


def test_starts_of_a_pair_are_those_of_a_power_calculation() -> None:
    # R: power.t.test(delta = 0.5, sd = 1, power = 0.8, type = "one.sample") gives n = 33.36713, so
    # 34 pairs whose difference has a sd of 2 % see 1 %, and 33 do not.
    noise = replace(MODEL, start_sd=0.02 / math.sqrt(2), slice_sd=1e-9)

    assert starts_for_pair(-0.01, noise, slices=5) == 34
    assert starts_for_pair(0.01, noise, slices=5) == 34


def test_more_slices_save_starts_until_starts_are_all_the_noise() -> None:
    noise = replace(MODEL, start_sd=0.01, slice_sd=0.03)

    starts = [starts_for_pair(0.03, noise, slices=slices) for slices in (1, 4, 100, 10_000)]

    assert None not in starts
    assert starts[0] > starts[1] > starts[2] == starts[3]


def test_fewest_starts_see_the_effect_and_one_less_does_not() -> None:
    for effect in (0.01, 0.03, 0.10):
        starts = starts_for_pair(effect, MODEL, slices=5)

        assert starts is not None
        assert pair_detects(MODEL, Replication(starts=starts, slices=5)) <= effect
        assert pair_detects(MODEL, Replication(starts=starts - 1, slices=5)) > effect


def test_starts_of_one_run_cannot_see_past_the_noise_between_runs() -> None:
    noise = replace(MODEL, run_sd=0.02, start_sd=0.02, slice_sd=0.01)
    limit = min(run_detects(noise, Replication(starts=n, slices=5)) for n in range(1, 201))

    assert limit > 0.02 * stats.norm.isf(0.025)
    assert starts_for_run(0.99 * limit, noise, slices=5) is None
    assert starts_for_pair(0.99 * limit, noise, slices=5) is not None
    assert (starts_for_run(1.05 * limit, noise, slices=5) or 0) > 1


def test_planned_effects_are_those_that_changes_report() -> None:
    # Same noise, same design: what is planned and what is found afterwards are one formula.
    rng = np.random.default_rng(2)
    history = Noise().history(rng, 10, 3)
    noise = estimate_noise(history)

    change = predict(history, Noise().run(rng, 4, 6))

    assert run_detects(noise, Replication(starts=4, slices=6)) == pytest.approx(
        change.detectable_effect
    )


def test_planned_power_is_the_power_that_comes() -> None:
    rng = np.random.default_rng(3)
    truth = replace(MODEL, start_sd=Noise().start_sd, slice_sd=Noise().slice_sd)
    effect = pair_detects(truth, Replication(starts=4, slices=5), power=0.8)

    found = [
        compare(Noise().starts(rng, 4), Noise().starts(rng, 4, shift=effect)).p_value <= 0.05
        for _ in range(800)
    ]

    assert np.mean(found) == pytest.approx(0.8, abs=4 * math.sqrt(0.8 * 0.2 / 800))


def test_one_start_of_a_pair_sees_nothing() -> None:
    assert pair_detects(MODEL, Replication(starts=1, slices=100)) == math.inf


def test_dear_starts_get_more_slices() -> None:
    # Cochran: sqrt(c1 / c2) * slice sd / start sd = sqrt(90 / 10) * 1.
    noise = replace(MODEL, start_sd=0.01, slice_sd=0.01)

    assert slices_per_start(noise, start_cost=90, slice_cost=10) == 3
    assert slices_per_start(noise, start_cost=1, slice_cost=100) == 1


def test_bad_questions_are_refused() -> None:
    with pytest.raises(DataError, match="the effect is 0"):
        starts_for_pair(0.0, MODEL, slices=5)
    with pytest.raises(DataError, match="the effect is nan"):
        starts_for_run(math.nan, MODEL, slices=5)
    with pytest.raises(DataError, match="measure nothing"):
        starts_for_pair(0.1, MODEL, slices=0)
    with pytest.raises(DataError, match="confidence is 2"):
        starts_for_pair(0.1, MODEL, slices=5, confidence=2)
    with pytest.raises(DataError, match="power is 1"):
        starts_for_pair(0.1, MODEL, slices=5, power=1)
    with pytest.raises(DataError, match="costs"):
        slices_per_start(MODEL, start_cost=0, slice_cost=1)
