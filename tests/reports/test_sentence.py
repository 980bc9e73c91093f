from __future__ import annotations

import math

import pytest

from detectors.change import Change, Interval
from detectors.verdict import decide
from reports.sentence import outcome_sentence, sentence
from results.document import Failure, Outcome
from tests.fakes.verdicts import a_verdict

AT = "3f2c1ab0" + "0" * 32

SLOWER = a_verdict(-9.1, low=-10.0, high=-8.2)
FASTER = a_verdict(7.3, low=6.1, high=8.4)
SAME = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
UNSURE = a_verdict(-4.0, low=-9.0, high=1.0, p_value=0.1, detectable=6.0)


def test_a_regression_is_said_with_its_interval_and_the_rest_with_its_bound() -> None:
    assert sentence({"point-query": SAME, "scan": SLOWER}, at=AT) == (
        "scan is 9.1 % slower (95 %: 8.2 to 10.0) at 3f2c1ab0; point-query unchanged within 1.2 %"
    )


def test_a_suspicion_only_looks_slower() -> None:
    assert sentence({"scan": SLOWER}, at=AT, confirmed=False) == (
        "scan looks 9.1 % slower (95 %: 8.2 to 10.0) at 3f2c1ab0"
    )


def test_an_improvement_is_faster() -> None:
    assert sentence({"scan": FASTER}, at=AT) == (
        "scan is 7.3 % faster (95 %: 6.1 to 8.4) at 3f2c1ab0"
    )


def test_regressions_come_before_improvements_and_the_largest_first() -> None:
    verdicts = {
        "insert": FASTER,
        "delete": a_verdict(-6.0, low=-7, high=-5.5),
        "scan": SLOWER,
    }

    assert sentence(verdicts, at=AT) == (
        "scan is 9.1 % slower (95 %: 8.2 to 10.0), delete is 6.0 % slower (95 %: 5.5 to 7.0) "
        "at 3f2c1ab0; insert is 7.3 % faster (95 %: 6.1 to 8.4)"
    )


def test_no_change_names_what_was_shown_and_the_widest_bound() -> None:
    wider = a_verdict(0.5, low=-1.0, high=1.9, p_value=0.5)

    assert sentence({"scan": wider, "insert": SAME, "point-query": SAME}, at=AT) == (
        "insert, point-query and scan unchanged within 1.9 % at 3f2c1ab0"
    )


def test_an_inconclusive_verdict_says_what_would_have_shown() -> None:
    text = sentence({"scan": UNSURE}, at=AT)

    assert text == (
        "scan is inconclusive at 3f2c1ab0, 4.0 % slower (95 %: -1.0 to 9.0): "
        "only a loss above 6.0 % would have shown"
    )


def test_several_inconclusive_verdicts_share_the_bound_of_the_noisiest() -> None:
    noisier = a_verdict(-4.0, low=-19.0, high=11.0, p_value=0.6, detectable=16.0)

    text = sentence({"scan": UNSURE, "insert": noisier}, at=AT)

    assert text == (
        "insert and scan are inconclusive at 3f2c1ab0: only a loss above 16.0 % would have shown"
    )


def test_many_workloads_are_counted_and_not_listed() -> None:
    verdicts = {f"w{number}": SLOWER for number in range(5)} | {
        f"same{number}": SAME for number in range(37)
    }

    text = sentence(verdicts, at=AT)

    assert text.count("slower") == 3
    assert "and 2 more at 3f2c1ab0; 37 workloads unchanged within 1.2 %" in text


def test_nothing_judged_is_said_too() -> None:
    assert sentence({}, at=AT) == "no workload was judged at 3f2c1ab0"


def test_a_cost_that_grew_is_higher_and_not_slower() -> None:
    cost = a_verdict(12.0, low=11.0, high=13.0, direction=-1)

    assert sentence({"scan": cost}, at=AT) == (
        "scan is 12.0 % higher (95 %: 11.0 to 13.0) at 3f2c1ab0"
    )


def test_an_interval_without_ends_is_not_printed_as_numbers() -> None:
    change = Change(
        effect=math.log(0.9),
        interval=Interval(low=-math.inf, high=math.inf, confidence=0.95),
        p_value=1.0,
        detectable_effect=math.inf,
        n_baseline=1,
        n_candidate=1,
        method="test 1",
    )
    verdict = decide(change, direction=1, gate=0.05, alpha=0.001)

    assert sentence({"scan": verdict}, at=AT).startswith(
        "scan is inconclusive at 3f2c1ab0, 10.0 % slower (no interval yet): "
    )


@pytest.mark.parametrize(
    ("outcome", "failure", "expected"),
    [
        (
            Outcome.BUILD_FAILED,
            Failure(stage="build", message="ninja: build stopped\nmore"),
            "3f2c1ab0 does not build (build: ninja: build stopped)",
        ),
        (
            Outcome.FAILED,
            Failure(stage="start", message=""),
            "3f2c1ab0 could not be measured (start: no reason given)",
        ),
        (
            Outcome.UNCHANGED,
            None,
            "3f2c1ab0 installs the same files as the commit before; not measured again",
        ),
        (
            Outcome.UNSTABLE,
            None,
            "3f2c1ab0 was measured on an unstable host; its numbers are kept and not judged",
        ),
        (Outcome.MEASURED, None, "3f2c1ab0 was measured; nothing is judged yet"),
    ],
)
def test_a_run_without_verdicts_has_its_sentence(
    outcome: Outcome, failure: Failure | None, expected: str
) -> None:
    assert outcome_sentence(outcome, at=AT, failure=failure) == expected
