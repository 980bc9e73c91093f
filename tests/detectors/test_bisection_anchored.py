"""A bisection beside the good end, whose level is known; equal artifacts rule commits out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from detectors.bisection import Bisection, StopReason
from detectors.errors import DataError


def searched(rng, *, n_commits, culprit, shift, sd=0.02, broken=(), **options) -> Bisection:
    """A whole search among log ratios to the good end; culprit 0 for no change at all."""
    search = Bisection(n_commits, anchored=True, **options)
    while not search.done:
        commit = search.select()
        if commit in broken:
            search.skip(commit)
            continue
        search.record(commit, sd * (shift * (0 < culprit <= commit) + rng.normal()))
    return search


@pytest.mark.parametrize("n_commits", [2, 3, 16, 300])
@pytest.mark.parametrize("shift", [-8.0, 8.0])
def test_a_large_step_is_found(n_commits: int, shift: float) -> None:
    rng = np.random.default_rng(n_commits)
    for culprit in (1, n_commits // 2, n_commits - 1):
        if not culprit:
            continue
        search = searched(rng, n_commits=n_commits, culprit=culprit, shift=shift)

        assert search.culprits() == (culprit,)
        assert search.stopped is StopReason.CULPRIT


def test_the_good_end_is_never_chosen_and_the_bad_one_first() -> None:
    search = Bisection(16, anchored=True)
    chosen = []
    while not search.done:
        chosen.append(search.select())
        search.record(chosen[-1], -0.1 * (chosen[-1] >= 6) + 0.001 * (len(chosen) % 3))

    assert chosen[:2] == [15, 15]
    assert 0 not in chosen
    assert search.culprits() == (6,)


@pytest.mark.parametrize(("shift", "trials"), [(1.0, 50), (2.0, 80), (3.0, 80), (5.0, 80)])
def test_a_stated_95_percent_is_right_as_often(shift: float, trials: int) -> None:
    rng = np.random.default_rng(40 + int(shift))
    right = 0
    for _ in range(trials):
        culprit = int(rng.integers(1, 64))
        search = searched(rng, n_commits=64, culprit=culprit, shift=shift)
        right += int(np.argmax(search.posterior)) == culprit

    # The 1 % quantile of what 95 % would give.
    assert right >= stats.binom.ppf(0.01, trials, 0.95)


def test_a_known_level_saves_measurements() -> None:
    # Above the steps' noise and far from the limit; means of 40 searches each.
    def mean(*, anchored: bool) -> float:
        rng = np.random.default_rng(3)
        counts = []
        for _ in range(40):
            culprit = int(rng.integers(1, 64))
            search = Bisection(64, anchored=anchored)
            while not search.done:
                commit = search.select()
                search.record(commit, 1.5 * (commit >= culprit) + rng.normal())
            counts.append(search.n_measurements)
        return float(np.mean(counts))

    assert mean(anchored=True) < mean(anchored=False)


def test_a_range_without_a_change_says_so() -> None:
    rng = np.random.default_rng(8)
    ends = [searched(rng, n_commits=32, culprit=0, shift=0.0).stopped for _ in range(25)]

    right = sum(end is StopReason.NOTHING_CHANGED for end in ends)
    assert right >= stats.binom.ppf(0.01, 25, 0.95)


def test_a_step_in_a_broken_build_gives_the_honest_set() -> None:
    broken = {18, 19, 20, 21}
    search = searched(np.random.default_rng(2), n_commits=64, culprit=20, shift=6.0, broken=broken)

    assert search.stopped is StopReason.INDISTINGUISHABLE
    assert search.posterior[18:23].sum() >= 0.95
    assert set(search.culprits(0.94)) <= {18, 19, 20, 21, 22}


def test_commits_up_to_an_equal_artifact_are_no_culprits() -> None:
    search = Bisection(16, anchored=True)
    search.exclude(1, 9)
    for value in (-0.1, -0.101, -0.099):
        search.record(15, value)

    assert search.posterior[1:10] == pytest.approx(np.zeros(9))
    assert search.posterior.sum() == pytest.approx(1.0)
    # Commits that are ruled out say nothing that the known level does not say.
    assert search.select() > 9


def test_the_interval_of_the_step_covers_it() -> None:
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(250):
        search = Bisection(2, anchored=True)
        for value in rng.normal(size=8):
            search.record(1, 5.0 + value)
        interval = search.effect().interval
        covered += interval.low <= 5.0 <= interval.high

    assert stats.binom.ppf(0.01, 250, 0.95) <= covered <= stats.binom.ppf(0.995, 250, 0.95)


def test_what_belongs_to_no_answer_is_refused() -> None:
    search = Bisection(4, anchored=True)
    with pytest.raises(DataError, match="anchor"):
        search.record(0, 0.0)
    with pytest.raises(DataError, match="anchor"):
        search.skip(0)
    with pytest.raises(DataError, match="no part"):
        search.exclude(0, 2)
    with pytest.raises(DataError, match="no part"):
        search.exclude(3, 2)
    with pytest.raises(DataError, match="no commit"):
        search.exclude(1, 4)
    with pytest.raises(DataError, match="no answer left"):
        Bisection(4, prior=[0, 1, 1, 1]).exclude(1, 3)
