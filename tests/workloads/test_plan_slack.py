"""The plan's `[notify.slack]`: what it may say, and that docs/plan.md says so."""

from __future__ import annotations

import re
from datetime import time
from pathlib import Path

import pytest

from workloads.errors import PlanError
from workloads.plan import SlackPlan, parse_plan

PAGE = (Path(__file__).parents[2] / "docs" / "plan.md").read_text(encoding="utf-8")
PLAN = """
[fork]
name = "demo"
engine = "mariadb"

[builds.rel]

[suites.commit]
workloads = ["scan"]

[notify.slack]
"""


def wishes(text: str) -> SlackPlan:
    return parse_plan(f"{PLAN}{text}").notify.slack


def test_a_plan_without_wishes_has_none() -> None:
    plan = wishes("")

    assert (plan.channel, plan.channels, plan.quiet_between) == (None, {}, None)


def test_all_of_it() -> None:
    plan = wishes(
        'channel = "C0FORK"\nquiet_hours = "22:30-07:00"\ntime_zone = "Europe/Berlin"\n'
        'severe_loss = 0.3\nsevere_channel = "C0SEVERE"\n[notify.slack.channels]\n'
        '"random-points*" = "C0POINTS"'
    )

    assert plan.quiet_between == (time(22, 30), time(7, 0))
    assert plan.channels == {"random-points*": "C0POINTS"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('channel = "#perf"', "notify.slack.channel"),
        ('severe_channel = "perf"', "notify.slack.severe_channel"),
        ('channels = {"scan" = "perf"}', "notify.slack.channels"),
        ('quiet_hours = "22-7"', "two times of the day"),
        ('quiet_hours = "25:00-07:00"', "two times of the day"),
        ('quiet_hours = "07:00-07:00"', "begins when it ends"),
        ('time_zone = "Mars/Olympus"', "no time zone known here"),
        ('time_zone = "../../etc/passwd"', "no time zone known here"),
        ("severe_loss = 0", "notify.slack.severe_loss"),
        ('chanel = "C0FORK"', "did you mean 'channel'"),
    ],
)
def test_what_is_wrong_is_named(text: str, told: str) -> None:
    with pytest.raises(PlanError, match=re.escape(told)):
        wishes(text)


def test_every_key_is_documented() -> None:
    section = PAGE.split("## `[notify.slack]`\n", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"(?m)^\| (`[^|]*) \|", section)

    assert {cell.strip("`") for cell in cells} == set(SlackPlan.model_fields)
