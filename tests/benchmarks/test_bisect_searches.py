"""The bisect benchmark counts as it says: what is known of commits, builds ahead, the aims."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.bisect import ahead
from benchmarks.bisect.__main__ import AIMED, HEADINGS, _aims, _line, _met, _run, _searches, kinds
from benchmarks.bisect.histories import BUILD_MINUTES, OUTSIDE, Kind, Told, draw

BLIND = Kind(commits=64, size=3.0, cached=False)


def test_rows_have_names_of_their_own() -> None:
    words = [kind.words for kind in kinds()]

    assert len(set(words)) == len(words)
    assert any("prior from build" in one for one in words)


@pytest.mark.parametrize(("told", "known"), [("nothing", 0.0), ("files", 0.6), ("build", OUTSIDE)])
def test_what_is_told_is_a_part_of_what_is_true(told: str, known: float) -> None:
    kind = Kind(commits=4_001, size=3.0, told=Told(told))
    history = draw(kind, np.random.default_rng(3))

    assert np.mean(history.weights < 1) == pytest.approx(known, abs=0.03)
    assert history.weights[history.culprit - 1] == 1.0


def test_a_search_that_knows_more_builds_less() -> None:
    ends = {
        told: _run(
            _searches()["forkwatch"],
            Kind(commits=64, size=3.0, cached=False, told=told),
            20,
            [7, 1],
        )
        for told in Told
    }
    builds = {told: np.mean([found.builds for found, _ in of]) for told, of in ends.items()}

    assert builds[Told.BUILD] < builds[Told.FILES] < builds[Told.NOTHING]


def test_the_probability_that_is_said_is_that_of_the_answer() -> None:
    ends = _run(_searches()[AIMED], Kind(commits=16, size=3.0), 8, [7, 2])
    line = _line(Kind(commits=16, size=3.0), AIMED, ends)

    assert all(0.95 <= found.said <= 1 for found, _ in ends)
    assert line[HEADINGS.index("said")].endswith(" %")
    assert line[HEADINGS.index("aims")] == "yes"


@pytest.mark.parametrize(
    ("ratio", "right", "met"),
    [
        (1.6, 100, "yes"),
        (1.61, 100, "NO"),
        (1.0, 93, "yes"),
        (1.0, 85, "NO"),
        (math.nan, 99, "yes"),
    ],
)
def test_an_aim_is_missed_where_the_bound_or_the_share_is(ratio, right, met) -> None:
    assert _met(ratio, right, 100) == met


def test_missed_aims_are_named() -> None:
    line = ["-"] * len(HEADINGS)
    met, missed = list(line), list(line)
    met[HEADINGS.index("aims")], missed[HEADINGS.index("aims")] = "yes", "NO"
    missed[0] = "64 commits, 1 sd"

    assert "1 of 2 kinds of history; missed in: 64 commits, 1 sd" in _aims(
        [tuple(met), tuple(missed), tuple(line)]
    )


def test_a_host_that_builds_ahead_saves_minutes_and_changes_no_answer() -> None:
    minutes = {0: 0.0, 1: 0.0}
    for seed in range(6):
        history = draw(BLIND, np.random.default_rng([seed, 1]))
        for helpers in minutes:
            rng = np.random.default_rng([seed, 2])
            hosts, search = ahead.searched(history, rng, helpers=helpers)
            minutes[helpers] += hosts.now
            assert search.document().culprits == (history.culprit,)

    assert minutes[1] < 0.9 * minutes[0]


def test_one_host_builds_the_good_end_and_what_it_measures_one_after_the_other() -> None:
    history = draw(BLIND, np.random.default_rng(5))
    hosts = ahead.Hosts(history=history, helpers=1)

    assert hosts.build(63) == BUILD_MINUTES
    assert hosts.build(63) == 0.0
    hosts.ahead([7, 8])
    assert hosts.ready == {63: BUILD_MINUTES, 7: 2 * BUILD_MINUTES}
    hosts.now += 4.0
    assert hosts.build(7) == BUILD_MINUTES - 4.0
    assert hosts.build(8) == BUILD_MINUTES
