"""The benchmark scores as it says: matching, delays, the port of Perfherder's rule, the table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.detection.perfherder import find_alerts
from benchmarks.detection.planted_steps import lorden, score
from benchmarks.detection.row import Row, markdown, share
from benchmarks.detection.sap_hana import matches
from benchmarks.peers import looking


@pytest.mark.parametrize(
    ("reported", "true", "matched"),
    [
        ([], [50], 0),
        ([55], [50], 1),
        ([56], [50], 0),
        # One report cannot stand for two changes, nor one change for two reports.
        ([50], [48, 52], 1),
        ([48, 52], [50], 1),
        ([48, 58], [50, 56], 2),
    ],
)
def test_events_are_matched_one_to_one_within_five_builds(reported, true, matched):
    assert matches(reported, true) == matched


def test_every_growing_prefix_is_looked_at_and_only_news_is_kept():
    seen = []

    def two_at_five(values: list[float]) -> list[int]:
        seen.append(len(values))
        return [2] if len(values) >= 5 else []

    assert looking.looks(two_at_five, [1.0] * 8, first=2, until_alarm=False) == [(5, [2])]
    assert seen == [2, 3, 4, 5, 6, 7, 8]
    assert looking.looks(two_at_five, [1.0] * 8, first=2, until_alarm=True) == [(5, [2])]
    assert len(seen) == 7 + 4


def test_delay_power_and_early_alarms_are_told_apart():
    prompt = [(63, [60])]
    late_and_off = [(70, [54]), (80, [56])]
    early = [(30, [10]), (62, [10, 61])]
    never: list[looking.Look] = []

    found = score([prompt, late_and_off, early, never], at=60)

    assert (found.trials, found.found, found.early) == (4, 2, 1)
    assert found.delays == (3, 10, math.inf)


def test_lordens_bound_for_two_sigma_at_one_percent_of_streams_of_100():
    # 2 ln(10,000) / 4, as the issue states it.
    assert lorden(2.0) == pytest.approx(4.6, abs=0.01)


def test_the_port_of_perfherders_rule_needs_twelve_points_after_a_clear_step():
    rng = np.random.default_rng(3)
    values = rng.normal(1000.0, 10.0, 60)
    values[30:] *= 0.9

    assert find_alerts(values.tolist()) == [30]
    assert find_alerts(values[:42].tolist()) == [30]
    assert find_alerts(values[:36].tolist()) == []


def test_the_port_of_perfherders_rule_leaves_noise_small_steps_and_short_series_alone():
    rng = np.random.default_rng(4)
    quiet = rng.normal(1000.0, 1.0, 60)
    quiet[30:] *= 0.985

    # 15 sds, but less than 2 %.
    assert find_alerts(quiet.tolist()) == []
    assert find_alerts(rng.normal(1000.0, 20.0, 200).tolist()) == []
    assert find_alerts([1.0] * 20) == []


def test_a_share_carries_its_exact_interval():
    # 0 of 100: 1 - 0.025 ** (1 / 100) is 3.6 %.
    assert share(0, 100) == "0.0 % [0.0, 3.6]"


def test_the_table_puts_peers_beside_ours():
    row = Row(what="w", aim="a", ours="1", peers={"Otava": "2", "SPA": "3"}, trials="9")

    lines = markdown([row.cells]).splitlines()

    cells = [cell.strip() for cell in lines[-1].split("|")[1:-1]]
    assert cells == ["w", "a", "1", "2", "-", "-", "SPA: 3", "9", "0"]
    assert len({len(line) for line in lines}) == 1
