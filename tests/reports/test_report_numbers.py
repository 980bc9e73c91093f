from __future__ import annotations

import math

import pytest

from detectors.change import Interval
from reports import numbers


@pytest.mark.parametrize(
    ("candidate", "baseline", "expected"),
    [(0, 0, "1"), (3, 0, "inf"), (0, 3, "0.00"), (1, 3, "0.33"), (2.345, 1, "2.35")],
)
def test_relative_follows_the_ratio_rule_of_the_field(
    candidate: float, baseline: float, expected: str
) -> None:
    assert numbers.relative(candidate, baseline) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.9494, "slower"),
        (0.95, "slower"),
        # Prints as 0.950, so it is marked like 0.950.
        (0.9504, "slower"),
        (0.951, ""),
        (1.0494, ""),
        (1.0495, "faster"),
        (1.05, "faster"),
        (None, ""),
        (math.nan, ""),
    ],
)
def test_tone_turns_at_the_colours_of_the_field_as_printed(
    value: float | None, expected: str
) -> None:
    assert numbers.tone(value) == expected


def test_marks_say_what_colours_say() -> None:
    assert [numbers.mark(value) for value in (0.9, 1.0, 1.1)] == ["▼", "", "▲"]


def test_bounds_are_rounded_up_so_that_the_claim_stays_true() -> None:
    assert numbers.percent_within(1.21) == "1.3 %"
    assert numbers.percent_within(1.2) == "1.2 %"


def test_a_small_loss_is_never_minus_zero() -> None:
    assert numbers.percent(-0.001) == "0.0 %"


def test_rates_keep_enough_digits_to_compare() -> None:
    assert numbers.rate(62875.4) == "62,875"
    assert numbers.rate(1.994) == "1.99"


def test_an_interval_without_ends_prints_and_does_not_raise() -> None:
    endless = Interval(low=-math.inf, high=math.inf, confidence=0.95)

    assert numbers.ratio_interval(endless) == "0.000 to inf"
    assert numbers.detectable_percent(math.inf) == 100
    assert numbers.percent(numbers.loss_percent(1e6)) == "-any %"
