"""The button that orders a bisect: begun once, or explained to whoever pressed it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from service.core.slack import SlackClick
from service.flows.slack_clicks import SlackSteps
from service.store import bisects
from tests.fakes.memory_actions import MemoryActions
from tests.fakes.slack_api import CHANNEL, SlackServer
from tests.fakes.slack_opened import ADA, ALERT, a_slack_like, a_template
from tests.fakes.stored_bisects import BisectCaller
from tests.fakes.stored_fork import SHAS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fakes.slack_opened import OpenedSlack


@pytest.fixture
def slack(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedSlack]:
    template = a_template(tmp_path_factory.mktemp("template"))
    with SlackServer() as server, a_slack_like(template, server, tmp_path) as opened:
        yield opened


def press(slack: OpenedSlack, caller: BisectCaller) -> str:
    """Press the button twice, as Slack may send it; return what was said to the person."""
    steps = SlackSteps(
        database=slack.database,
        settings=slack.settings,
        slack=slack.channel,
        actions=MemoryActions(slack.alert()),
        bisect=caller.asks.press,
    )
    steps.tell_waiting(ALERT)
    click = SlackClick(
        user=ADA,
        channel=CHANNEL,
        ts=slack.double.first_messages()[0]["ts"],
        action="bisect",
        alert=ALERT,
        key="slack:bisect",
    )
    steps.carry_out(click)
    steps.carry_out(click)
    return str(slack.double.whispers[-1]["text"])


def test_a_press_begins_the_bisect_of_the_alert_once(slack: OpenedSlack) -> None:
    caller = BisectCaller(slack.database)
    for subject in ("Tidy up", "Quiet", "Check the record format"):
        caller.fork.push(subject)
    first, middle, last = caller.fork.commits
    caller.fork.commits[:] = [
        replace(first, sha=SHAS[3]),
        middle,
        replace(last, sha=SHAS[4]),
    ]

    assert "The bisect has begun" in press(slack, caller)
    with slack.database.reading() as session:
        [bisect] = bisects.newest(session)
    assert (bisect.alert, bisect.asked_by, bisect.via) == (ALERT, f"slack:{ADA}", "slack")
    assert bisect.question.workload == "scan"
    assert set(caller.flow.begun) == {bisect.id}


def test_what_cannot_be_searched_is_explained(slack: OpenedSlack) -> None:
    caller = BisectCaller(slack.database)
    caller.fork.push("Import")

    said = press(slack, caller)
    assert said.startswith("That was not done: the good end names no commit here")
    assert caller.flow.begun == []
