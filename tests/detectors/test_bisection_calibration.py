"""The bisection's stated probabilities, in whole simulated searches within binomial bands."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from detectors.bisection import Bisection, StopReason
from tests.detectors.searches import searched


@pytest.mark.parametrize(
    ("shift", "trials", "options"),
    [(1.0, 50, {}), (2.0, 60, {}), (3.0, 80, {}), (5.0, 80, {}), (3.0, 40, {"student_df": 4})],
)
def test_a_stated_95_percent_is_right_as_often(shift, trials, options) -> None:
    rng = np.random.default_rng(int(shift))
    right = 0
    for _ in range(trials):
        culprit = int(rng.integers(1, 64))
        search = searched(rng, n_commits=64, culprit=culprit, shift=shift, **options)
        right += int(np.argmax(search.posterior)) == culprit

    # The 1 % quantile of what 95 % would give.
    assert right >= stats.binom.ppf(0.01, trials, 0.95)


def test_a_range_without_a_change_says_so() -> None:
    rng = np.random.default_rng(8)
    ends = [
        searched(rng, n_commits=32, culprit=0, shift=0.0, nothing=0.5).stopped for _ in range(25)
    ]

    right = sum(end is StopReason.NOTHING_CHANGED for end in ends)
    assert right >= stats.binom.ppf(0.01, 25, 0.95)


def test_what_is_to_come_is_right_within_a_factor_of_two() -> None:
    rng = np.random.default_rng(5)
    told, came = [], []
    for _ in range(25):
        culprit = int(rng.integers(1, 64))
        search = Bisection(64)
        while not search.done:
            if search.n_measurements == 10:
                told.append(search.expected_remaining())
            commit = search.select()
            search.record(commit, 2.0 * (commit >= culprit) + rng.normal())
        came.append(search.n_measurements - 10)

    assert np.mean(came) / 2 < np.mean(told) < 2 * np.mean(came)


@pytest.mark.parametrize("student_df", [None, 3.0])
def test_the_interval_of_the_step_covers_it_under_its_own_noise(student_df) -> None:
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(250):
        noise = rng.normal(size=16) if student_df is None else rng.standard_t(student_df, size=16)
        search = Bisection(2, student_df=student_df)
        for i, value in enumerate(noise):
            search.record(i % 2, 5.0 * (i % 2) + value)
        interval = search.effect().interval
        covered += interval.low <= 5.0 <= interval.high

    assert stats.binom.ppf(0.01, 250, 0.95) <= covered <= stats.binom.ppf(0.995, 250, 0.95)
