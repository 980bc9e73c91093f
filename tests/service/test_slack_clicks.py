"""What a button does: for whom, once, and what the person is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from service.channels.slack.errors import SlackUnavailableError
from service.core.alert_actions import AlertAction
from service.core.model import AlertState
from service.core.slack import SlackClick
from service.flows.alert_actions import StoredAlertActions
from service.flows.slack_clicks import SlackSteps
from tests.fakes.memory_actions import MemoryActions
from tests.fakes.slack_api import CHANNEL, LOST, SlackServer
from tests.fakes.slack_opened import (
    ADA,
    ALERT,
    EVE,
    a_slack,
    a_slack_like,
    a_template,
    with_an_alert,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.store.database import Database
    from tests.fakes.slack_opened import OpenedSlack


class Pressed:
    """The steps on a double, with an alert that was told."""

    def __init__(self, slack: OpenedSlack, *, stored: bool = False) -> None:
        self.slack = slack
        self.actions = MemoryActions(slack.alert())
        carried_out = StoredAlertActions(slack.database, slack.clock) if stored else self.actions
        self.bisected: list[tuple[str, str]] = []
        self.steps = SlackSteps(
            database=slack.database,
            settings=slack.settings,
            slack=slack.channel,
            actions=carried_out,
        )
        self.steps.tell_waiting(ALERT)

    def press(self, action: str, *, user: str = ADA, alert: str = ALERT) -> SlackClick:
        click = SlackClick(
            user=user,
            channel=CHANNEL,
            ts=self.slack.double.first_messages()[0]["ts"],
            action=action,
            alert=alert,
            key=f"slack:{action}",
        )
        self.steps.carry_out(click)
        return click

    def whispered(self) -> list[tuple[str, str]]:
        return [(said["user"], said["text"]) for said in self.slack.double.whispers]


@pytest.fixture(scope="module")
def server() -> Iterator[SlackServer]:
    with SlackServer() as started:
        yield started


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_template(tmp_path_factory.mktemp("slack"))


@pytest.fixture
def pressed(server: SlackServer, template: Path, tmp_path: Path) -> Iterator[Pressed]:
    with a_slack_like(template, server, tmp_path) as slack:
        yield Pressed(slack)


def test_a_writer_gives_an_order_and_the_thread_says_who(pressed: Pressed) -> None:
    click = pressed.press("acknowledge")

    (order,) = pressed.actions.orders
    assert (order.alert, order.action, order.actor, order.via, order.key) == (
        ALERT,
        AlertAction.ACKNOWLEDGE,
        "slack:U0ADA",
        "slack",
        click.key,
    )
    assert pressed.slack.double.texts() == ["Acknowledged by <@U0ADA>."]
    assert pressed.whispered() == []


@pytest.mark.parametrize(
    ("action", "state", "said"),
    [
        ("accept", AlertState.ACCEPTED, "Accepted as intended by <@U0ADA>."),
        ("false-alarm", AlertState.FALSE, "Called a false alarm by <@U0ADA>."),
    ],
)
def test_an_order_that_settles_the_alert_resolves_its_message(
    pressed: Pressed, action: str, state: AlertState, said: str
) -> None:
    pressed.press(action)

    assert pressed.actions.alert.state is state
    (message,) = pressed.slack.double.first_messages()
    assert message["text"].startswith("Resolved: ")
    assert pressed.slack.double.texts() == [said]


def test_a_mute_leaves_the_message_open(pressed: Pressed) -> None:
    pressed.press("mute")

    assert pressed.slack.double.texts() == ["Muted for a week by <@U0ADA>."]
    assert pressed.slack.double.first_messages()[0]["text"].startswith("demo: ")


def test_whoever_is_not_listed_is_told_so_alone(pressed: Pressed) -> None:
    pressed.press("accept", user=EVE)

    assert pressed.actions.orders == []
    assert pressed.slack.double.texts() == []
    ((user, text),) = pressed.whispered()
    assert user == EVE
    assert "U0EVE, to FORKWATCH_SLACK_WRITERS" in text


def test_an_order_that_is_not_possible_is_explained_to_whoever_gave_it(pressed: Pressed) -> None:
    pressed.press("accept")
    pressed.press("mute")

    ((user, text),) = pressed.whispered()
    assert user == ADA
    assert text.startswith("That was not done: an alert that is accepted cannot take 'mute'")


def test_an_alert_that_is_gone_is_explained(pressed: Pressed) -> None:
    pressed.press("accept", alert="alert-9")

    assert pressed.whispered()[0][1] == "That was not done: there is no alert alert-9"


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update"])
@pytest.mark.parametrize("after", [False, True])
def test_a_click_interrupted_anywhere_is_completed_and_not_repeated(
    pressed: Pressed, method: str, *, after: bool
) -> None:
    pressed.slack.double.go_wrong(method, LOST, after=after)

    with pytest.raises(SlackUnavailableError):
        pressed.press("acknowledge")
    pressed.press("acknowledge")

    assert len(pressed.actions.orders) == 1
    assert pressed.slack.double.texts() == ["Acknowledged by <@U0ADA>."]
    assert "somebody looks after it" in str(pressed.slack.double.first_messages()[0]["blocks"])


def test_a_bisect_is_begun_where_somebody_can(pressed: Pressed) -> None:
    pressed.press("bisect")
    assert pressed.whispered()[-1][1] == "This service cannot bisect."

    def begin(alert: str, actor: str) -> None:
        pressed.bisected.append((alert, actor))

    pressed.steps = replace(pressed.steps, bisect=begin)
    pressed.press("bisect")
    assert pressed.bisected == [(ALERT, "slack:U0ADA")]
    assert "begun" in pressed.whispered()[-1][1]


def test_an_alert_nobody_knows_any_more_is_not_told(pressed: Pressed) -> None:
    before = len(pressed.slack.double.asked)

    pressed.steps.tell_waiting("alert-9")

    assert len(pressed.slack.double.asked) == before


def test_an_order_changes_the_stored_alert_once(server: SlackServer, database: Database) -> None:
    with_an_alert(database)
    with a_slack(server, database) as slack:
        pressed = Pressed(slack, stored=True)
        pressed.press("acknowledge")
        pressed.press("false-alarm")
        pressed.press("acknowledge")

        assert slack.alert().state is AlertState.FALSE
        (message,) = slack.double.first_messages()
        assert message["text"].startswith("Resolved: ")
        assert slack.double.texts() == [
            "Acknowledged by <@U0ADA>.",
            "Called a false alarm by <@U0ADA>.",
        ]
        assert pressed.whispered() == []
