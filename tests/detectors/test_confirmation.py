from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from detectors.confirmation import Action, ConfirmationPolicy, Watch, simulate, watch
from detectors.errors import DataError
from tests.detectors.noisy_runs import Noise

POLICY = ConfirmationPolicy()
RUN_SD = math.sqrt(0.01**2 + 0.008**2 / 3 + 0.01**2 / 15)


def _watch_commits(
    rng: np.random.Generator, *, shift: float, commits: int, noise: Noise
) -> tuple[list[Watch], list[int]]:
    """Follow the policy over commits, re-running when it says so, until its alert."""
    history = noise.history(rng, 60, 3)
    runs: list[Any] = []
    numbers: list[int] = []
    seen: list[Watch] = []
    for commit in range(commits):
        while True:
            runs.append(noise.run(rng, 3, shift=shift))
            numbers.append(commit)
            seen.append(watch(history, runs, numbers, policy=POLICY))
            if seen[-1].action is not Action.RERUN:
                break
        if seen[-1].action is Action.ALERT:
            break
    return seen, numbers


@pytest.mark.parametrize("shift", [-0.04, 0.04])
def test_step_is_rerun_and_then_alerted(shift: float) -> None:
    seen, numbers = _watch_commits(np.random.default_rng(1), shift=shift, commits=20, noise=Noise())

    assert seen[-1].action is Action.ALERT
    assert len(seen) <= 6
    assert numbers.count(numbers[-1]) >= 2
    assert seen[-1].effect == pytest.approx(shift, abs=0.02)
    assert seen[-1].since == 0


def test_noise_alone_is_watched_in_peace() -> None:
    seen, numbers = _watch_commits(np.random.default_rng(2), shift=0.0, commits=60, noise=Noise())

    assert seen[-1].action is Action.WAIT
    assert numbers[-1] == 59
    assert len(seen) < 1.4 * 60


@pytest.mark.parametrize("size", [0.8, 0.1, 1e-6, 1e6])
def test_one_odd_run_is_never_an_alert_however_odd(size: float) -> None:
    rng = np.random.default_rng(3)
    history = Noise().history(rng, 60, 3)
    runs = [Noise().run(rng, 3), size * Noise().run(rng, 3), *Noise().history(rng, 10, 3)]

    actions = [
        watch(history, runs[:n], [0] + [1] * (n - 1), policy=POLICY).action for n in range(2, 13)
    ]

    assert actions[0] is Action.RERUN
    assert Action.ALERT not in actions
    assert actions[-1] is Action.WAIT


def test_small_shift_adds_up_over_commits() -> None:
    # One sd is invisible in any single run; the sum over commits sees it.
    seen, _ = _watch_commits(np.random.default_rng(4), shift=-RUN_SD, commits=80, noise=Noise())

    assert seen[-1].action is Action.ALERT


def test_reruns_of_one_commit_end() -> None:
    rng = np.random.default_rng(5)
    history = Noise().history(rng, 60, 3)
    policy = ConfirmationPolicy(commits_per_false_alert=1e12, runs_max=4)
    runs = [Noise().run(rng, 3, shift=-0.03) for _ in range(4)]

    actions = [watch(history, runs[:n], [7] * n, policy=policy).action for n in range(1, 5)]

    assert actions[-1] is Action.WAIT
    assert Action.RERUN in actions


def test_only_the_order_of_commits_counts_and_scale_does_not() -> None:
    rng = np.random.default_rng(6)
    history, runs = Noise().history(rng, 20, 3), Noise().history(rng, 6, 3)
    plain = watch(history, runs, [1, 2, 2, 2, 3, 3], policy=POLICY)

    other = watch(
        [5 * run for run in history], [5 * run for run in runs], [9, 4, 4, 4, 8, 8], policy=POLICY
    )

    assert other.action is plain.action
    assert other.evidence == pytest.approx(plain.evidence)
    assert other.effect == pytest.approx(plain.effect)


def test_false_alerts_are_as_rare_as_stated() -> None:
    # At one in 100 commits, where 400 streams tell quickly: each stream's time to its alert is
    # about exponential, so their mean is good to 1 / sqrt(400).
    policy = ConfirmationPolicy(commits_per_false_alert=100)

    streams = simulate(policy, np.random.default_rng(7), streams=400, runs_max=2000)

    assert streams.commits_per_alert >= 100 * (1 - 4 / math.sqrt(400))
    assert 0.05 <= streams.extra_runs <= 0.25


def test_delay_is_within_half_of_the_lorden_bound_above_it() -> None:
    # ln(1000) / (2^2 / 2) = 3.45 runs at a shift of 2 sd; docs/statistics.md states 1.42 times it.
    streams = simulate(POLICY, np.random.default_rng(8), streams=2000, shift=2.0, runs_max=300)

    assert np.all(streams.alerted)
    assert np.mean(streams.runs) <= 1.5 * math.log(1000) / 2
    assert np.mean(streams.commits) <= 2.5


def test_simulation_decides_as_the_watch_does() -> None:
    # One stream of the simulation, its own numbers replayed as runs of one sample.
    policy = ConfirmationPolicy(commits_per_false_alert=50)
    streams = simulate(policy, np.random.default_rng(9), streams=1, baseline_runs=200, shift=1.0)
    rng = np.random.default_rng(9)
    scale = 0.1
    history = np.exp(scale * rng.standard_normal((1, 200)))[0].reshape(200, 1, 1)
    runs: list[Any] = []
    commits: list[int] = [0]
    while True:
        runs.append([[math.exp(scale * (float(rng.standard_normal(1)[0]) + 1.0))]])
        found = watch(history, runs, commits, policy=policy)
        if found.action is Action.ALERT or len(runs) > 200:
            break
        commits.append(commits[-1] + (found.action is Action.WAIT))

    assert len(runs) == streams.runs[0]
    assert len(set(commits)) == streams.commits[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"commits_per_false_alert": 1.0}, "at least 20"),
        ({"runs_max": 1}, "at least 2"),
        ({"suspicion": math.nan}, "suspicion is nan"),
    ],
)
def test_policy_without_meaning_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        ConfirmationPolicy(**options)


def test_runs_without_their_commits_are_refused() -> None:
    with pytest.raises(DataError, match="one commit for each run"):
        watch([[[1.0]]], [[[1.0]]], [1, 2], policy=POLICY)
    with pytest.raises(DataError, match="one commit for each run"):
        watch([[[1.0]]], [], [], policy=POLICY)
    with pytest.raises(DataError, match="run 1 has no slice"):
        watch([[[1.0]]], [[[1.0]], [[np.nan]]], [1, 2], policy=POLICY)
