from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from detectors.noise import DEFAULT_PRIOR, NoiseModel, estimate_noise
from detectors.predictive import predict
from detectors.shrinkage import DF_MAX, MODELS_MIN, prior_from
from tests.detectors.noisy_runs import Noise


def _models(
    rng: np.random.Generator, noise: Noise, *, workloads: int, df: float | None, runs: int = 8
) -> list[NoiseModel]:
    """Workloads whose variances scatter about the noise's with so many degrees of freedom."""
    factors = np.ones(workloads) if df is None else np.sqrt(df / rng.chisquare(df, workloads))
    return [estimate_noise(noise.times(float(k)).history(rng, runs, 3, 3)) for k in factors]


def test_prior_finds_noise_and_spread_that_workloads_were_drawn_with() -> None:
    rng = np.random.default_rng(1)
    truth = Noise(run_sd=0.03, start_sd=0.016, slice_sd=0.02)

    prior = prior_from(_models(rng, truth, workloads=200, df=4))

    assert prior.slice_sd == pytest.approx(truth.slice_sd, rel=0.10)
    assert prior.start_sd == pytest.approx(truth.start_sd, rel=0.15)
    assert prior.run_sd == pytest.approx(truth.run_sd, rel=0.15)
    assert prior.df == pytest.approx(4, rel=0.35)


def test_workloads_that_look_alike_make_a_strong_prior() -> None:
    alike = prior_from(_models(np.random.default_rng(2), Noise(), workloads=60, df=None))

    assert alike.df > 10
    assert alike.df <= DF_MAX


def test_few_workloads_leave_the_fallback() -> None:
    models = _models(np.random.default_rng(3), Noise().times(5), workloads=MODELS_MIN - 1, df=None)

    assert prior_from(models) == DEFAULT_PRIOR
    assert prior_from([]) == DEFAULT_PRIOR


def test_levels_that_no_history_replicates_keep_the_fallback() -> None:
    rng = np.random.default_rng(4)
    one_start = [estimate_noise(Noise().times(3).history(rng, 6, 1, 4)) for _ in range(20)]

    prior = prior_from(one_start)

    assert prior.start_sd == pytest.approx(DEFAULT_PRIOR.start_sd)
    assert prior.slice_sd == pytest.approx(0.03, rel=0.2)


def test_moments_of_one_level_are_those_of_the_paper() -> None:
    # Smyth 2004, section 6.2, by hand for slices alone: all workloads have d degrees of freedom, so
    # log s0^2 = mean(log s^2) - digamma(d/2) + log(d/2) + digamma(d0/2) - log(d0/2).
    models = _models(np.random.default_rng(5), Noise(), workloads=80, df=6)
    prior = prior_from(models)
    d = models[0].squares.slices.df
    logs = [math.log(model.squares.slices.sum / d) for model in models]
    half = prior.df / 2

    expected = (
        np.mean(logs) - special.digamma(d / 2) + math.log(d / 2)
        + special.digamma(half) - math.log(half)
    )  # fmt: skip
    assert math.log(prior.slice_sd**2) == pytest.approx(expected)


def test_noisy_host_no_longer_alarms_on_a_short_history() -> None:
    # At four times the default noise and two runs 7 % of new runs are called changed at 5 %; the
    # other workloads of the host know better.
    rng = np.random.default_rng(6)
    loud = Noise(run_sd=0.04)
    prior = prior_from(_models(rng, loud, workloads=30, df=5))
    trials = 400
    alarms = {"default": 0, "fitted": 0}
    for _ in range(trials):
        history, candidate = loud.history(rng, 2, 3, 3), loud.run(rng, 3, 3)
        alarms["default"] += predict(history, candidate).p_value <= 0.05
        alarms["fitted"] += predict(history, candidate, prior=prior).p_value <= 0.05

    assert alarms["fitted"] <= 0.05 * trials
    assert alarms["default"] > 2 * alarms["fitted"]
