"""Routing: which channel, and whether it is night there."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from service.channels.slack.routing import channel_of, is_severe, quiet_until
from service.core.model import Alert, AlertState, AlertWorkload
from tests.fakes.run_documents import AT, sha
from workloads.plan_slack import SlackPlan

NIGHT = SlackPlan(quiet_hours="22:00-07:00", time_zone="Europe/Berlin")


def an_alert(**losses: float) -> Alert:
    """Return an alert about workloads that lost so many percent."""
    return Alert(
        id="alert-1",
        fork="demo",
        sha=sha("b"),
        subject="",
        author="",
        baseline_sha=sha("a"),
        state=AlertState.CONFIRMED,
        workloads=tuple(
            AlertWorkload(
                workload=name,
                effect=math.log1p(-loss / 100),
                low=0.0,
                high=0.0,
                p_value=0.0,
                gate=0.05,
            )
            for name, loss in losses.items()
        ),
        run="run-1",
        opened_at=AT,
    )


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("loss", "severe"), [(19.9, False), (20.0, True), (60.0, True)])
def test_severe_is_what_the_plan_says(loss: float, *, severe: bool) -> None:
    assert is_severe(an_alert(scan=loss), SlackPlan(severe_loss=0.2)) is severe


def test_the_largest_loss_decides_and_the_first_rule_that_fits() -> None:
    plan = SlackPlan(channels={"sc*": "C0SCANS", "*": "C0REST"})

    assert channel_of(an_alert(point=9.0, scan=8.0), plan, usual="C0US") == "C0REST"
    assert channel_of(an_alert(point=7.0, scan=8.0), plan, usual="C0US") == "C0SCANS"


def test_without_a_rule_it_is_the_forks_channel_or_ours() -> None:
    alert = an_alert(scan=9.0)

    assert channel_of(alert, SlackPlan(channel="C0FORK"), usual="C0US") == "C0FORK"
    assert channel_of(alert, SlackPlan(channels={"point*": "C0X"}), usual="C0US") == "C0US"
    assert channel_of(an_alert(), SlackPlan(severe_channel="C0X"), usual="C0US") == "C0US"


@pytest.mark.parametrize(
    ("now", "until"),
    [
        # Berlin is an hour ahead in winter, two in summer.
        ("2026-11-03T20:59", None),
        ("2026-11-03T21:00", "2026-11-04T06:00"),
        ("2026-11-04T05:59", "2026-11-04T06:00"),
        ("2026-11-04T06:00", None),
        ("2026-07-03T20:00", "2026-07-04T05:00"),
        ("2026-07-04T05:00", None),
    ],
)
def test_a_night_over_midnight(now: str, until: str | None) -> None:
    found = quiet_until(an_alert(scan=9.0), NIGHT, now=at(now))

    assert found == (at(until) if until else None)


@pytest.mark.parametrize(
    ("now", "until"), [("2026-11-03T12:30", "2026-11-03T13:00"), ("2026-11-03T13:00", None)]
)
def test_a_quiet_noon(now: str, until: str | None) -> None:
    plan = SlackPlan(quiet_hours="12:00-13:00")

    assert quiet_until(an_alert(scan=9.0), plan, now=at(now)) == (at(until) if until else None)


def test_the_hour_that_comes_twice_is_quiet_twice() -> None:
    plan = SlackPlan(quiet_hours="22:00-02:30", time_zone="Europe/Berlin")

    # In 2026 clocks go back on 25 October at 01:00 UTC; 02:10 is at 00:10 and again at 01:10.
    first = quiet_until(an_alert(scan=9.0), plan, now=at("2026-10-25T00:10"))
    second = quiet_until(an_alert(scan=9.0), plan, now=at("2026-10-25T01:10"))

    assert first == at("2026-10-25T00:30")
    assert second == at("2026-10-25T01:30")


def test_severe_losses_and_plans_without_quiet_hours_never_wait() -> None:
    now = at("2026-11-03T23:00")

    assert quiet_until(an_alert(scan=30.0), NIGHT, now=now) is None
    assert quiet_until(an_alert(scan=9.0), SlackPlan(), now=now) is None
