"""The bisection: culprits found, broken builds, priors, costs, and what is still to come."""

from __future__ import annotations

import numpy as np
import pytest

from detectors.bisection import Bisection, StopReason
from tests.detectors.searches import recorded, searched


@pytest.mark.parametrize("n_commits", [2, 3, 16, 300])
@pytest.mark.parametrize("shift", [-8.0, 8.0])
def test_a_large_step_is_found(n_commits: int, shift: float) -> None:
    rng = np.random.default_rng(n_commits)
    for culprit in (1, n_commits // 2, n_commits - 1):
        search = searched(rng, n_commits=n_commits, culprit=culprit, shift=shift)

        assert int(np.argmax(search.posterior)) == culprit
        assert search.stopped is StopReason.CULPRIT
        assert not search.inconclusive
        assert search.culprits() == (culprit,)
        assert search.expected_remaining() == 0.0


def test_noise_free_measurements_end_too() -> None:
    search = Bisection(64)
    while not search.done:
        commit = search.select()
        search.record(commit, 5.0 - 0.1 * (commit >= 40))

    assert search.culprits() == (40,)
    assert search.n_measurements < 30


def test_constant_measurements_say_that_nothing_changed() -> None:
    search = Bisection(64)
    while not search.done:
        search.record(search.select(), 5.0)

    assert search.stopped is StopReason.NOTHING_CHANGED


def test_too_small_a_step_ends_at_the_limit_as_inconclusive() -> None:
    search = searched(
        np.random.default_rng(1), n_commits=64, culprit=20, shift=0.3, limit=30, stop=0.999
    )

    assert search.stopped is StopReason.LIMIT
    assert search.inconclusive
    assert search.n_measurements == 30
    assert len(search.culprits(0.9)) > 1


# --- skipped commits ----------------------------------------------------------------------------


def test_a_skipped_commit_is_never_selected_and_the_set_is_honest() -> None:
    broken = {18, 19, 20, 21}
    search = searched(np.random.default_rng(2), n_commits=64, culprit=20, shift=6.0, broken=broken)

    assert search.stopped is StopReason.INDISTINGUISHABLE
    assert not search.inconclusive
    # Good at 17, bad at 22: any commit from 18 to 22 may be the culprit, equally.
    assert set(search.culprits(0.94)) <= {18, 19, 20, 21, 22}
    assert np.ptp(search.posterior[18:23]) == pytest.approx(0.0, abs=1e-12)
    assert search.posterior[18:23].sum() >= 0.95


def test_a_skipped_commit_is_not_offered_again() -> None:
    search = recorded()
    commit = search.select()
    search.skip(commit)

    assert search.select() != commit


def test_broken_ends_move_inwards() -> None:
    search = Bisection(16)
    search.skip(0)
    search.skip(15)

    first = search.select()
    search.record(first, 1.0)

    assert (first, search.select()) == (1, 14)


def test_fewer_than_two_commits_to_measure_is_the_end() -> None:
    search = Bisection(3)
    search.skip(0)
    search.skip(2)

    # Whatever the answer, all that could be measured has one level.
    assert search.done
    assert search.culprits(0.99) == (0, 1, 2)


# --- priors and costs ---------------------------------------------------------------------------


def test_a_prior_moves_posterior_and_choice() -> None:
    weights = np.full(63, 0.01)
    weights[9:12] = 10.0

    search = Bisection(64, prior=weights, nothing=0.05)

    assert search.posterior[0] == pytest.approx(0.05)
    assert search.posterior[10] == pytest.approx(0.95 * 10 / weights.sum())
    for commit, value in ((0, 1.0), (63, 0.9), (0, 1.01), (63, 0.91)):
        search.record(commit, value)
    assert 9 <= search.select() <= 12
    # n weights: the first is that of "nothing changed".
    assert Bisection(4, prior=[2, 1, 1, 0]).posterior == pytest.approx([0.5, 0.25, 0.25, 0])


def test_dear_commits_are_avoided_while_cheap_ones_tell_nearly_as_much() -> None:
    history = ((0, 1.0), (63, 0.9), (0, 1.01), (63, 0.91))
    dear = np.full(64, 30.0)
    dear[[0, 28, 63]] = 1.0
    search = recorded(history, n_commits=64, costs=dear)
    assert search.select() == 28

    # Built by now, so that measuring it costs no more than the others.
    for commit in range(64):
        search.set_cost(commit, 1.0)
    assert search.select() == recorded(history, n_commits=64).select()


def test_history_counts() -> None:
    # What the alert measured at both ends need not be measured again.
    search = Bisection(32)
    for value in (1.0, 1.01, 0.99):
        search.record(0, value)
        search.record(31, value - 0.1)

    assert search.select() not in {0, 31}


def test_what_is_to_come_falls_with_the_noise_and_the_measurements() -> None:
    before = Bisection(32).expected_remaining()
    clear, noisy = Bisection(32), Bisection(32)
    for commit in (0, 31, 8, 24, 12, 20, 14, 18):
        clear.record(commit, 1.0 + 0.1 * (commit >= 15) + 0.01 * (commit % 3))
        noisy.record(commit, 1.0 + 0.1 * (commit >= 15) + 0.10 * (commit % 3))

    assert clear.expected_remaining() < noisy.expected_remaining() < 100
    assert clear.expected_remaining() < before < 100
