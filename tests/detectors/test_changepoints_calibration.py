"""Stated error rates and power of change points, every prefix looked at, with fixed seeds.

A rate is checked inside four binomial standard deviations of TRIALS streams around the one that
docs/statistics.md states.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from detectors.alarms import Scan, scan
from detectors.changepoints import find_changes
from detectors.streaming import ChangeStream
from detectors.synthetic import Autoregressive, Gaussian, Modes, Noise, Spikes, Student, history

TRIALS = 1500
COMMITS = 100
SD = 0.02
PLAIN = Gaussian(sd=SD)


def _band(rate: float, trials: int) -> float:
    return 4 * math.sqrt(rate * (1 - rate) / trials)


def _first_report(values: np.ndarray) -> int | None:
    """Number of commits after which a stream first reported a change."""
    # Only what alarmed is ever reported (test_a_stream_agrees_with_every_prefix).
    if not scan(np.log(values), Scan()).alarms:
        return None
    stream = ChangeStream()
    for end, value in enumerate(values, start=1):
        stream.append(float(value))
        if stream.changes:
            return end
    return None


@pytest.mark.parametrize(
    ("noise", "stated"),
    [
        (PLAIN, 0.009),
        (Autoregressive(rho=0.5, sd=SD), 0.016),
        (Student(df=3, sd=SD), 0.011),
        (PLAIN + Spikes(share=0.03), 0.012),
        (PLAIN + Modes(gap=3 * SD), 0.005),
        (PLAIN + Modes(gap=6 * SD), 0.0015),
        (PLAIN + Modes(gap=4 * SD, share=0.2), 0.019),
        (PLAIN + Modes(gap=-6 * SD, share=0.2), 0.010),
    ],
)
def test_noise_alarms_as_seldom_as_stated(noise: Noise, stated: float) -> None:
    streams = history(np.random.default_rng(100), (TRIALS, COMMITS), noise=noise)

    share = sum(_first_report(stream) is not None for stream in streams) / TRIALS

    assert share == pytest.approx(stated, abs=_band(stated, TRIALS))


def test_a_step_of_two_sd_is_noticed_within_five_commits_as_a_rule() -> None:
    trials = 200
    streams = history(
        np.random.default_rng(101), (trials, COMMITS), noise=PLAIN, steps={60: -2 * SD}
    )

    first = [_first_report(stream) for stream in streams]
    found = [find_changes(stream) for stream in streams]

    delays = [COMMITS if end is None else end - 60 for end in first]
    # The stated chance of five commits or fewer is 0.54.
    assert np.mean(np.array(delays) <= 5) == pytest.approx(0.54, abs=_band(0.54, trials))
    near = [any(abs((change.index or 0) - 60) <= 5 for change in changes) for changes in found]
    assert np.mean(near) >= 0.95
    # The likeliest single place would give 0.93, the best that the likelihood offers is 0.96.
    exact = [any(abs((change.index or 0) - 60) <= 2 for change in changes) for changes in found]
    assert np.mean(exact) == pytest.approx(0.95, abs=_band(0.95, trials))


def test_intervals_cover_the_effect_as_a_rule() -> None:
    trials = 300
    streams = history(
        np.random.default_rng(102), (trials, COMMITS), noise=PLAIN, steps={60: -4 * SD}
    )

    changes = [
        change
        for stream in streams
        for change in find_changes(stream)
        if abs((change.index or 0) - 60) <= 2
    ]

    covered = [c.interval.low <= -4 * SD <= c.interval.high for c in changes]
    assert len(changes) >= 0.95 * trials
    assert np.mean(covered) == pytest.approx(0.95, abs=_band(0.95, len(changes)))


def test_the_scan_never_changes_its_mind_about_the_past() -> None:
    logs = np.log(history(np.random.default_rng(103), 400, noise=PLAIN, steps={90: 0.1, 230: -0.1}))

    whole = scan(logs, Scan())
    state = Scan()
    for end in range(1, logs.size + 1, 7):
        state = scan(logs[:end], state)
        assert state.alarms == whole.alarms[: len(state.alarms)]

    assert scan(logs, state) == whole
    assert len(whole.alarms) >= 2
