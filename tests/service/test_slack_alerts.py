"""Alerts on Slack: one message each, its news in its thread, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from service.channels.slack.errors import SlackRefusedError, SlackUnavailableError
from service.core.model import AlertState
from service.core.slack import FIRST
from tests.fakes.slack_api import (
    BOT,
    CHANNEL,
    LOST,
    OTHER,
    SEVERE,
    WORKSPACE,
    SlackServer,
    refused,
)
from tests.fakes.slack_opened import ALERT, a_slack_like, a_template
from tests.fakes.stored_fork import SHAS
from workloads.plan import Notify
from workloads.plan_slack import SlackPlan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fakes.slack_opened import OpenedSlack

FAST_AGAIN = "As fast as before again since `cccccccc` Undo \\*it\\*."
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def server() -> Iterator[SlackServer]:
    with SlackServer() as started:
        yield started


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is stored is tested on both databases elsewhere."""
    return a_template(tmp_path_factory.mktemp("slack"))


@pytest.fixture
def slack(server: SlackServer, template: Path, tmp_path: Path) -> Iterator[OpenedSlack]:
    with a_slack_like(template, server, tmp_path) as opened:
        yield opened


def raised(slack: OpenedSlack, **wishes: Any) -> str:
    return slack.alerts.raise_alert(slack.alert(), "", Notify(slack=SlackPlan(**wishes)))


def words(message: dict[str, Any]) -> str:
    """Return all words of a message's blocks."""

    def of(part: Any) -> str:
        if isinstance(part, list):
            return " ".join(map(of, part))
        if isinstance(part, dict):
            own = part["text"] if isinstance(part.get("text"), str) else ""
            return " ".join([own, *(of(v) for v in part.values() if isinstance(v, dict | list))])
        return ""

    return " ".join(of(message["blocks"]).split())


def buttons(message: dict[str, Any]) -> list[str]:
    return [
        element["action_id"].removeprefix("forkwatch-")
        for block in message["blocks"]
        if block["type"] == "actions"
        for element in block["elements"]
    ]


def test_an_alert_is_one_message_with_its_picture_in_the_thread(slack: OpenedSlack) -> None:
    where = raised(slack)

    (message,) = slack.double.first_messages()
    assert where == f"{WORKSPACE}archives/{CHANNEL}/p{message['ts'].replace('.', '')}"
    assert message["text"].startswith("demo: scan 9.1 % slower at 55555555. scan is 9.1 %")
    assert buttons(message) == ["acknowledge", "accept", "mute", "false-alarm"]
    assert "http://127.0.0.1:8642/alerts/alert-1" in str(message["blocks"])
    (shared,) = slack.double.thread()
    assert shared["files"][0]["name"] == "forkwatch-alert-1.png"
    assert next(iter(slack.double.uploaded.values())).startswith(PNG_MAGIC)


def test_telling_again_asks_nothing_and_changes_nothing(slack: OpenedSlack) -> None:
    first = raised(slack)
    asked = len(slack.double.asked)

    assert raised(slack) == first
    assert len(slack.double.asked) == asked


@pytest.mark.parametrize("method", ["chat.postMessage", "files.completeUploadExternal"])
def test_a_lost_answer_leaves_one_message_and_one_picture(slack: OpenedSlack, method: str) -> None:
    slack.double.go_wrong(method, LOST, after=True)
    with pytest.raises(SlackUnavailableError):
        raised(slack)

    restarted = slack.connected().alerts
    where = restarted.raise_alert(slack.alert(), "", Notify())

    (message,) = slack.double.first_messages()
    assert where.endswith(message["ts"].replace(".", ""))
    assert len(slack.double.thread()) == 1


def test_a_post_that_was_not_written_down_is_found_among_many(slack: OpenedSlack) -> None:
    raised(slack)
    forget(slack)
    for number in range(450):
        slack.double.add(CHANNEL, text=str(number), user="U0EVE")

    raised(slack)

    assert sum(m.get("bot_id") == BOT for m in slack.double.first_messages()) == 1
    assert len(slack.double.thread()) == 1


def forget(slack: OpenedSlack) -> None:
    """Lose what was written down, as a crash between posting and writing would."""
    with slack.database.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM slack_messages")


def test_a_stranger_cannot_pass_for_our_message(slack: OpenedSlack) -> None:
    raised(slack)
    metadata = slack.double.first_messages()[0]["metadata"]
    slack.double.messages[CHANNEL].clear()
    forget(slack)
    slack.double.add(CHANNEL, text="nothing here", metadata=metadata, user="U0EVE", bot_id="B0EVE")

    raised(slack)

    assert len(slack.double.first_messages()) == 2


def test_news_change_the_message(slack: OpenedSlack) -> None:
    raised(slack)

    acknowledged = slack.alert(state=AlertState.ACKNOWLEDGED)
    slack.alerts.raise_alert(acknowledged, "", Notify())

    (message,) = slack.double.first_messages()
    assert "Acknowledged: somebody looks after it." in words(message)
    assert buttons(message) == ["accept", "mute", "false-alarm"]
    # Without them the message would not be found again.
    assert message["metadata"]["event_payload"] == {"alert": ALERT, "topic": FIRST}


def test_a_fix_is_said_in_the_thread_once_and_in_the_message(slack: OpenedSlack) -> None:
    raised(slack)

    for _ in range(2):
        where = slack.alerts.close_alert(slack.alert(), FAST_AGAIN, key=SHAS[6])

    (message,) = slack.double.first_messages()
    assert where is not None
    assert message["text"].startswith("Resolved: demo: scan 9.1 % slower")
    assert "As fast as before again since cccccccc Undo *it*." in words(message)
    assert buttons(message) == []
    assert slack.double.texts() == ["As fast as before again since cccccccc Undo *it*."]


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update"])
@pytest.mark.parametrize("after", [False, True])
def test_closing_interrupted_anywhere_is_completed_and_not_repeated(
    slack: OpenedSlack, method: str, *, after: bool
) -> None:
    raised(slack)
    slack.double.go_wrong(method, LOST, after=after)

    with pytest.raises(SlackUnavailableError):
        slack.alerts.close_alert(slack.alert(), FAST_AGAIN, key="k")
    slack.connected().alerts.close_alert(slack.alert(), FAST_AGAIN, key="k")

    (message,) = slack.double.first_messages()
    assert message["text"].startswith("Resolved: ")
    assert len(slack.double.texts()) == 1


def test_the_same_loss_opens_it_again_once(slack: OpenedSlack) -> None:
    raised(slack)
    slack.alerts.close_alert(slack.alert(), FAST_AGAIN, key="c")

    slack.alerts.reopen_alert(slack.alert(), "Slower again.", key="d")
    assert slack.double.first_messages()[0]["text"].startswith("demo: ")

    slack.alerts.close_alert(slack.alert(), "Accepted.", key="e")
    slack.alerts.reopen_alert(slack.alert(), "Slower again.", key="d")
    assert slack.double.first_messages()[0]["text"].startswith("Resolved: ")
    assert slack.double.texts()[1:] == ["Slower again.", "Accepted."]


def test_what_was_never_told_is_not_closed_or_reopened(slack: OpenedSlack) -> None:
    assert slack.alerts.close_alert(slack.alert(), "text", key="k") is None
    assert slack.alerts.reopen_alert(slack.alert(), "text", key="k") is None
    assert slack.double.asked == []


def test_an_alert_that_closed_itself_is_resolved_when_it_is_told_again(slack: OpenedSlack) -> None:
    raised(slack)
    slack.alerts.raise_alert(slack.alert(state=AlertState.FIXED), "", Notify())

    (message,) = slack.double.first_messages()
    assert message["text"].startswith("Resolved: ")
    assert buttons(message) == []


def test_who_removes_the_message_has_the_last_word(slack: OpenedSlack) -> None:
    raised(slack)
    slack.double.messages[CHANNEL].clear()

    slack.alerts.raise_alert(slack.alert(state=AlertState.ACKNOWLEDGED), "", Notify())
    for _ in range(2):
        slack.alerts.close_alert(slack.alert(), FAST_AGAIN, key="c")

    assert slack.double.messages[CHANNEL] == []


def test_a_message_that_may_no_longer_be_edited_stays_as_it_is(slack: OpenedSlack) -> None:
    raised(slack)
    slack.double.go_wrong("chat.update", refused("edit_window_closed"), times=9)

    slack.alerts.close_alert(slack.alert(), FAST_AGAIN, key="c")

    assert slack.double.first_messages()[0]["text"].startswith("demo: ")
    assert len(slack.double.texts()) == 1


def test_a_deed_is_said_once_with_a_name(slack: OpenedSlack) -> None:
    raised(slack)
    alert = slack.alert(state=AlertState.ACKNOWLEDGED)

    for _ in range(2):
        slack.alerts.tell_deed(alert, "Acknowledged", user="U0ADA", key="slack:1", note="<!here>")

    (reply,) = [m for m in slack.double.thread() if not m.get("files")]
    assert reply["text"] == "Acknowledged by <@U0ADA>: &lt;!here&gt;"
    assert {"type": "user", "user_id": "U0ADA"} in reply["blocks"][0]["elements"][0]["elements"]
    assert "somebody looks after it" in words(slack.double.first_messages()[0])


def test_news_are_said_in_the_thread_once_and_not_while_it_is_muted(slack: OpenedSlack) -> None:
    assert slack.alerts.tell_news(slack.alert(), "Too early.", "", key="k") is None
    raised(slack)
    busy = slack.alert(state=AlertState.BISECTING)

    for _ in range(2):
        where = slack.alerts.tell_news(busy, "A bisect has begun.", "long", key="b:begun")
    quiet = replace(busy, muted_until=slack.clock.now() + timedelta(days=1))
    slack.alerts.tell_news(quiet, "Nobody hears this.", "long", key="b:ended")

    assert where is not None
    assert slack.double.texts() == ["A bisect has begun."]
    assert "commits of its range are being measured" in words(slack.double.first_messages()[0])


def test_a_long_key_is_a_topic_all_the_same(slack: OpenedSlack) -> None:
    raised(slack)
    for _ in range(2):
        slack.alerts.close_alert(slack.alert(), "Over.", key="k" * 5_000)

    assert slack.double.texts() == ["Over."]


def test_a_picture_that_slack_refuses_does_not_hold_the_alert_back(slack: OpenedSlack) -> None:
    slack.double.go_wrong("files.getUploadURLExternal", refused("missing_scope"), times=9)

    raised(slack)
    raised(slack)

    assert len(slack.double.first_messages()) == 1
    assert [method for method, _ in slack.double.asked].count("files.getUploadURLExternal") == 1


def test_a_channel_without_us_is_a_refusal(slack: OpenedSlack) -> None:
    with pytest.raises(SlackRefusedError, match="channel_not_found; invite the app"):
        raised(slack, channel="C0ELSEWHERE")


@pytest.mark.parametrize(
    ("wishes", "channel"),
    [
        ({"channels": {"sc*": OTHER}}, OTHER),
        ({"channels": {"point*": OTHER}, "channel": SEVERE}, SEVERE),
        ({"channels": {"sc*": OTHER}, "severe_channel": SEVERE, "severe_loss": 0.09}, SEVERE),
        ({"channels": {"sc*": OTHER}, "severe_channel": SEVERE}, OTHER),
    ],
)
def test_the_plan_says_who_hears_of_it(
    slack: OpenedSlack, wishes: dict[str, Any], channel: str
) -> None:
    raised(slack, **wishes)

    assert len(slack.double.first_messages(channel)) == 1
    assert len(slack.double.thread(channel)) == 1
    # News go where the alert is, whatever the plan says by then.
    raised(slack)
    assert slack.double.first_messages() == []


NIGHT = {"quiet_hours": "22:00-07:00", "time_zone": "Europe/Berlin"}
MIDNIGHT = datetime(2026, 11, 3, 23, 0, tzinfo=UTC)


def at_night(slack: OpenedSlack) -> None:
    slack.clock.advance(MIDNIGHT - slack.clock.now())


def test_an_alert_of_the_night_waits_for_the_morning(slack: OpenedSlack) -> None:
    at_night(slack)

    assert raised(slack, **NIGHT) == "on Slack after the quiet hours, at 2026-11-04 06:00 UTC"
    assert slack.double.asked == []
    assert slack.memory.due(slack.clock.now()) == []

    slack.clock.advance(timedelta(hours=7))
    assert slack.memory.due(slack.clock.now()) == [ALERT]
    raised(slack, **NIGHT)
    assert len(slack.double.first_messages()) == 1
    assert slack.memory.due(slack.clock.now()) == []


def test_a_severe_loss_does_not_wait(slack: OpenedSlack) -> None:
    at_night(slack)

    raised(slack, **NIGHT, severe_loss=0.05)

    assert len(slack.double.first_messages()) == 1


def test_what_is_over_before_the_morning_is_never_told(slack: OpenedSlack) -> None:
    at_night(slack)
    raised(slack, **NIGHT)

    assert slack.alerts.close_alert(slack.alert(), FAST_AGAIN, key="c") is None
    slack.clock.advance(timedelta(hours=9))

    assert slack.memory.due(slack.clock.now()) == []
    assert slack.double.asked == []


def test_what_comes_back_before_the_morning_is_told_after_all(slack: OpenedSlack) -> None:
    at_night(slack)
    raised(slack, **NIGHT)
    slack.alerts.close_alert(slack.alert(), FAST_AGAIN, key="c")

    assert slack.alerts.reopen_alert(slack.alert(), "Slower again.", key="d") is None

    assert slack.memory.due(slack.clock.now()) == [ALERT]


def test_a_bisect_is_offered_where_somebody_can_do_it(slack: OpenedSlack) -> None:
    able = slack.connected(bisects=True).alerts
    able.raise_alert(slack.alert(), "", Notify())
    assert "bisect" in buttons(slack.double.first_messages()[0])

    able.raise_alert(slack.alert(state=AlertState.BISECTING), "", Notify())
    assert "bisect" not in buttons(slack.double.first_messages()[0])
