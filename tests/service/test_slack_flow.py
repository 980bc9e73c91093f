"""Clicks and mornings on real DBOS: once each, in the background, through trouble."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from dbos import DBOS, DBOSConfig

from service.core.model import AlertState
from service.core.slack import FIRST, SlackClick, SlackPost
from service.flows.slack_clicks import SlackSteps
from service.flows.slack_flow import SlackFlow
from tests.fakes.memory_actions import MemoryActions
from tests.fakes.slack_api import CHANNEL, LOST, SlackServer
from tests.fakes.slack_opened import ADA, ALERT, a_slack_like, a_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.fakes.slack_opened import OpenedSlack

#: Nothing below waits on purpose; this only bounds a hang.
PATIENCE_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Running:
    """A flow on a double."""

    slack: OpenedSlack
    actions: MemoryActions
    flow: SlackFlow

    def click(self, *, key: str = "slack:1") -> SlackClick:
        return SlackClick(
            user=ADA,
            channel=CHANNEL,
            ts="1800000001.000001",
            action="acknowledge",
            alert=ALERT,
            key=key,
        )


@pytest.fixture(scope="module")
def server() -> Iterator[SlackServer]:
    with SlackServer() as started:
        yield started


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_template(tmp_path_factory.mktemp("slack"))


@pytest.fixture
def running(server: SlackServer, template: Path, tmp_path: Path) -> Iterator[Running]:
    with a_slack_like(template, server, tmp_path) as slack:
        actions = MemoryActions(slack.alert())
        steps = SlackSteps(
            database=slack.database, settings=slack.settings, slack=slack.channel, actions=actions
        )
        flows = f"sqlite:///{tmp_path / 'flows.sqlite'}"
        DBOS(
            config=DBOSConfig(
                name="forkwatch", system_database_url=flows, console_log_level="WARNING"
            )
        )
        flow = SlackFlow(
            steps, slack.memory, clock=slack.clock, step_pause_seconds=0.01, look_seconds=0.05
        )
        try:
            DBOS.launch()
            yield Running(slack=slack, actions=actions, flow=flow)
        finally:
            flow.stop()
            DBOS.destroy(destroy_registry=True)


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.02)


def an_alert_that_waits(running: Running) -> None:
    due = running.slack.clock.now() + timedelta(hours=1)
    running.slack.memory.keep(SlackPost(alert=ALERT, topic=FIRST, channel=CHANNEL, due_at=due))


def test_a_click_is_carried_out_once_through_trouble(running: Running) -> None:
    running.flow._steps.tell_waiting(ALERT)
    running.slack.double.go_wrong("chat.postMessage", LOST, after=True)
    running.slack.double.go_wrong("chat.update", LOST)

    for _ in range(3):
        running.flow.begin(running.click())
    wait_for(lambda: "somebody looks after it" in str(running.slack.double.first_messages()))

    assert len(running.actions.orders) == 1
    assert running.slack.double.texts() == ["Acknowledged by <@U0ADA>."]


def test_an_alert_that_waited_is_told_in_the_morning(running: Running) -> None:
    an_alert_that_waits(running)
    assert running.flow.look() == []

    running.slack.clock.advance(timedelta(hours=1))
    running.flow.start()
    wait_for(lambda: running.slack.memory.due(running.slack.clock.now()) == [])

    assert len(running.slack.double.first_messages()) == 1


def test_what_was_settled_in_the_meantime_is_not_told(running: Running) -> None:
    an_alert_that_waits(running)
    running.slack.clock.advance(timedelta(hours=1))
    settled(running)

    assert running.flow.look() == [ALERT]
    wait_for(lambda: running.slack.memory.due(running.slack.clock.now()) == [])

    assert running.slack.double.asked == []


def settled(running: Running) -> None:
    with running.slack.database.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alerts SET state = '{AlertState.FIXED.value}'")


def test_a_click_that_cannot_be_carried_out_ends_and_is_logged(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = replace(running.click(), action="explode")

    running.flow.begin(wrong)
    wait_for(lambda: bool(running.slack.double.whispers))

    assert running.actions.orders == []
    assert "carry_out of" in caplog.text
    (said,) = running.slack.double.whispers
    assert (said["user"], said["text"][:18]) == (ADA, "That did not work,")
