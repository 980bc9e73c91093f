"""The generators have the spread, the dependence and the steps that they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from detectors.synthetic import (
    PLAIN,
    Autoregressive,
    Gaussian,
    Modes,
    Noise,
    Ramp,
    RandomWalk,
    Spikes,
    StickyModes,
    Student,
    history,
)
from detectors.synthetic_runs import Levels, pair, runs, suite

#: Enough series of 100 points that an sd is known to 1 %.
MANY = (4000, 100)
ONE_KIND_EACH = [
    Gaussian(sd=0.02),
    Autoregressive(rho=0.5),
    Student(df=3.0),
    PLAIN + Spikes(),
    PLAIN + Modes(gap=0.08),
    PLAIN + StickyModes(gap=0.08, dwell=5.0),
    PLAIN + Ramp(total=-0.1),
    RandomWalk(step_sd=0.002),
]


def generator() -> np.random.Generator:
    return np.random.default_rng(20260901)


@pytest.mark.parametrize("noise", ONE_KIND_EACH, ids=repr)
def test_the_same_seed_gives_the_same_series_and_another_seed_another(noise: Noise) -> None:
    one = history(generator(), (3, 50), noise=noise)

    assert one.shape == (3, 50)
    assert np.all(one > 0)
    assert np.array_equal(one, history(generator(), (3, 50), noise=noise))
    assert not np.array_equal(one, history(np.random.default_rng(7), (3, 50), noise=noise))


@pytest.mark.parametrize("rho", [0.0, 0.5, -0.4, 0.9])
def test_autocorrelated_noise_keeps_its_marginal_sd_from_the_first_point_on(rho: float) -> None:
    logs = Autoregressive(rho=rho, sd=0.02).draw(generator(), MANY)

    # 4,000 series: the sd of one column is known to 1.1 %; five standard errors.
    assert np.std(logs[:, 0], ddof=1) == pytest.approx(0.02, rel=0.056)
    assert np.std(logs[:, -1], ddof=1) == pytest.approx(0.02, rel=0.056)
    lag = np.mean(logs[:, 1:] * logs[:, :-1]) / 0.02**2
    assert lag == pytest.approx(rho, abs=0.03)


def test_student_noise_has_the_sd_asked_for_and_tails_that_gaussian_noise_lacks() -> None:
    # With 5 degrees of freedom, because the sample variance of t(3) has no variance of its own.
    logs = Student(df=5.0, sd=0.02).draw(generator(), MANY)

    assert np.std(logs, ddof=1) == pytest.approx(0.02, rel=0.02)
    # P(|T| > 4.0 sds) is 0.35 % at 5 degrees of freedom, 0.006 % for a Gaussian.
    assert np.mean(np.abs(logs) > 0.08) == pytest.approx(0.0035, rel=0.15)


def test_spikes_are_as_frequent_and_as_large_as_asked_and_do_not_cluster() -> None:
    spikes = Spikes(share=0.03, size=math.log(0.8)).draw(generator(), MANY)
    hit = spikes != 0.0

    assert set(np.unique(spikes)) == {math.log(0.8), 0.0}
    assert hit.mean() == pytest.approx(0.03, abs=0.0015)
    assert np.mean(hit[:, 1:] & hit[:, :-1]) == pytest.approx(0.0009, abs=0.0003)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_modes_are_independent_and_sticky_modes_stay(share: float) -> None:
    drawn = Modes(gap=0.08, share=share).draw(generator(), MANY) > 0
    sticky = StickyModes(gap=0.08, share=share, dwell=5.0).draw(generator(), MANY) > 0

    assert drawn.mean() == pytest.approx(share, abs=0.01)
    assert sticky.mean() == pytest.approx(share, abs=0.02)
    assert drawn[:, 1:][drawn[:, :-1]].mean() == pytest.approx(share, abs=0.01)
    # A stay of 5 points on average ends at 1 in 5 of them.
    assert sticky[:, 1:][sticky[:, :-1]].mean() == pytest.approx(0.8, abs=0.01)


def test_a_ramp_is_straight_and_a_walk_spreads_with_the_root_of_time() -> None:
    ramp = Ramp(total=-0.1).draw(generator(), 101)
    walk = RandomWalk(step_sd=0.002).draw(generator(), MANY)

    assert ramp == pytest.approx(np.linspace(0.0, -0.1, 101))
    assert np.all(walk[:, 0] == 0.0)
    assert np.std(walk[:, 64], ddof=1) == pytest.approx(0.002 * 8, rel=0.06)


def test_added_noises_are_drawn_independently() -> None:
    twice = (Gaussian(sd=0.02) + Gaussian(sd=0.02)).draw(generator(), MANY)

    assert np.std(twice, ddof=1) == pytest.approx(0.02 * math.sqrt(2.0), rel=0.01)


def test_steps_are_log_ratios_that_last() -> None:
    still = Gaussian(sd=0.0)

    values = history(generator(), 100, noise=still, steps={40: 0.1, 60: -0.04}, level=500.0)

    assert values[:40] == pytest.approx(500.0)
    assert values[40:60] == pytest.approx(500.0 * math.exp(0.1))
    assert values[60:] == pytest.approx(500.0 * math.exp(0.06))


def test_a_step_outside_the_series_is_refused() -> None:
    with pytest.raises(AssertionError, match="inside the series"):
        history(generator(), 100, steps={100: -0.04})


@pytest.mark.parametrize("tails", [None, 6.0])
def test_runs_have_the_sd_of_every_level(tails: float | None) -> None:
    noise = Levels(run_sd=0.03, start_sd=0.02, slice_sd=0.01, tails=tails)

    logs = np.log(runs(generator(), (4000, 3, 4), noise=noise, level=1.0))

    starts = logs.mean(axis=2)
    assert np.mean(logs.var(axis=2, ddof=1)) == pytest.approx(0.01**2, rel=0.06)
    assert np.mean(starts.var(axis=1, ddof=1)) == pytest.approx(0.02**2 + 0.01**2 / 4, rel=0.06)
    of_a_run = 0.03**2 + (0.02**2 + 0.01**2 / 4) / 3
    assert starts.mean(axis=1).var(ddof=1) == pytest.approx(of_a_run, rel=0.12)


def test_runs_take_a_step_as_an_array_of_effects() -> None:
    quiet = Levels(run_sd=0.0, start_sd=0.0, slice_sd=0.0)

    values = runs(generator(), (4, 2, 2), noise=quiet, effects=[0.0, 0.0, -0.1, -0.1])

    assert values[:2] == pytest.approx(np.full((2, 2, 2), 1000.0))
    assert values[2:] == pytest.approx(np.full((2, 2, 2), 1000.0 * math.exp(-0.1)))


def test_both_sides_of_a_pair_share_the_hosts_drift() -> None:
    drifting = Levels(start_sd=0.001, slice_sd=0.001, host_sd=0.05)

    baseline, candidate = pair(generator(), (2000, 2), noise=drifting, effect=-0.1)

    levels = [np.log(side).mean(axis=1) for side in (baseline, candidate)]
    assert np.std(levels[0], ddof=1) == pytest.approx(0.05, rel=0.1)
    assert np.std(levels[1] - levels[0], ddof=1) < 0.003
    assert np.mean(levels[1] - levels[0]) == pytest.approx(-0.1, abs=0.001)


def test_workloads_of_one_start_share_its_noise_when_asked() -> None:
    shared = Levels(start_sd=0.01, slice_sd=0.0, common_start_sd=0.01)
    apart = Levels(start_sd=0.01, slice_sd=0.0)

    correlations = []
    for noise in (shared, apart):
        baseline, candidate = suite(generator(), (2, 4000, 1), noise=noise)
        difference = np.log(candidate / baseline)[:, :, 0]
        correlations.append(np.corrcoef(difference)[0, 1])

    assert correlations[0] == pytest.approx(0.5, abs=0.07)
    assert correlations[1] == pytest.approx(0.0, abs=0.07)


def test_a_suite_takes_one_effect_per_workload() -> None:
    quiet = Levels(start_sd=0.0, slice_sd=0.0)

    baseline, candidate = suite(generator(), (2, 3, 2), noise=quiet, effects=[0.0, -0.01])

    assert np.log(candidate / baseline)[:, 0, 0] == pytest.approx([0.0, -0.01])
