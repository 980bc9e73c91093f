"""The double of Slack refuses what Slack refuses: a double that takes everything proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.slack_api import CHANNEL, TOKEN, SlackDouble
from tests.fakes.slack_rules import fault_of

if TYPE_CHECKING:
    from collections.abc import Callable

PARAGRAPH = {"type": "rich_text_section", "elements": [{"type": "text", "text": "words"}]}
BUTTON = {
    "type": "button",
    "action_id": "a",
    "text": {"type": "plain_text", "text": "Press", "emoji": False},
    "value": "v",
}


def header(text: str) -> dict[str, Any]:
    return {"type": "header", "text": {"type": "plain_text", "text": text}}


def rich(*parts: Any) -> dict[str, Any]:
    return {"type": "rich_text", "elements": list(parts)}


def actions(**changes: Any) -> dict[str, Any]:
    return {"type": "actions", "elements": [{**BUTTON, **changes}]}


def said(text: str) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}


def body(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {"channel": CHANNEL, "text": "words", "blocks": list(blocks), **more}


def test_an_ordinary_message_is_taken() -> None:
    dialog = {
        name: {"type": "plain_text", "text": name, "emoji": False}
        for name in ("title", "text", "confirm", "deny")
    }
    listed = {"type": "rich_text_list", "style": "bullet", "elements": [PARAGRAPH]}
    lines = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "a\nb"}]}
    person = {"type": "rich_text_section", "elements": [{"type": "user", "user_id": "U0ADA"}]}
    blocks = [header("h"), rich(PARAGRAPH, listed, lines, person), actions(confirm=dialog)]
    event = {"event_type": "forkwatch_alert", "event_payload": {"alert": "a"}}

    assert fault_of("chat.postMessage", body(*blocks, metadata=event)) == ""


@pytest.mark.parametrize(
    ("block", "word"),
    [
        (header("x" * 151), "invalid_blocks"),
        ({"type": "banner", "text": "x"}, "invalid_blocks"),
        ("words", "invalid_blocks"),
        ({**header("x"), "color": "red"}, "invalid_blocks"),
        (rich(said("x" * 3001)), "invalid_blocks"),
        (rich(said("")), "invalid_blocks"),
        (rich(), "invalid_blocks"),
        (rich({"type": "rich_text_section", "elements": []}), "invalid_blocks"),
        (rich({"type": "mrkdwn", "text": "x"}), "invalid_blocks"),
        (actions(value="x" * 2001), "invalid_blocks"),
        (actions(style="blue"), "invalid_blocks"),
        (actions(action_id="x" * 256), "invalid_blocks"),
        (actions(text={"type": "plain_text", "text": "x" * 76}), "invalid_blocks"),
        (
            actions(confirm={"text": {"type": "plain_text", "text": "x" * 301}}),
            "invalid_blocks",
        ),
    ],
)
def test_a_block_that_slack_does_not_take_is_refused(block: Any, word: str) -> None:
    assert fault_of("chat.postMessage", body(block)) == word


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (body(text=""), "no_text"),
        (body(text="x" * 4001), "msg_too_long"),
        (body(*[header("x")] * 51), "invalid_blocks"),
        (body(*[rich(said("x" * 2900))] * 5), "msg_blocks_too_long"),
        (body(colour="red"), "invalid_arguments"),
        (body(metadata={"event_type": "a b", "event_payload": {}}), "invalid_metadata_format"),
        (body(metadata={"event_type": "a"}), "invalid_metadata_format"),
    ],
)
def test_a_message_that_slack_does_not_take_is_refused(wrong: dict[str, Any], word: str) -> None:
    assert fault_of("chat.postMessage", wrong) == word


def asked(double: SlackDouble, method: str, token: str = TOKEN, **values: Any) -> str:
    answer = double.reply(method, f"Bearer {token}", values).body
    return "" if answer["ok"] else str(answer["error"])


def a_message(double: SlackDouble) -> str:
    return str(double.reply("chat.postMessage", f"Bearer {TOKEN}", body()).body["ts"])


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda d: asked(d, "auth.test", token="stolen"), "invalid_auth"),
        (lambda d: asked(d, "chat.delete"), "unknown_method"),
        (lambda d: asked(d, "chat.postMessage", channel="C0GONE", text="x"), "channel_not_found"),
        (
            lambda d: asked(d, "chat.postMessage", **body(thread_ts="1.000001")),
            "thread_not_found",
        ),
        (lambda d: asked(d, "chat.update", **body(ts="1.000001")), "message_not_found"),
        (
            lambda d: asked(d, "chat.update", **body(ts=d.add(CHANNEL, user="U0EVE")["ts"])),
            "cant_update_message",
        ),
        (
            lambda d: asked(d, "conversations.replies", channel=CHANNEL, ts="1.0"),
            "thread_not_found",
        ),
        (
            lambda d: asked(d, "conversations.history", channel=CHANNEL, limit="201"),
            "invalid_limit",
        ),
        (lambda d: asked(d, "files.getUploadURLExternal", filename="x"), "invalid_arguments"),
        (
            lambda d: asked(
                d, "files.completeUploadExternal", files=[{"id": "F9"}], channel_id=CHANNEL
            ),
            "file_not_found",
        ),
    ],
)
def test_what_cannot_be_is_refused(ask: Callable[[SlackDouble], str], word: str) -> None:
    assert ask(SlackDouble()) == word


def test_metadata_are_shown_only_to_who_asks_for_them_and_lost_by_an_edit_without() -> None:
    double = SlackDouble()
    event = {"event_type": "e", "event_payload": {}}
    ts = double.reply("chat.postMessage", f"Bearer {TOKEN}", body(metadata=event)).body["ts"]

    def shown(**more: str) -> list[dict[str, Any]]:
        values = {"channel": CHANNEL, **more}
        reply = double.reply("conversations.history", f"Bearer {TOKEN}", values)
        messages: list[dict[str, Any]] = reply.body["messages"]
        return messages

    assert "metadata" not in shown()[0]
    assert shown(include_all_metadata="true")[0]["metadata"] == event
    double.reply("chat.update", f"Bearer {TOKEN}", body(ts=ts))
    assert "metadata" not in shown(include_all_metadata="true")[0]


def test_a_history_has_pages_and_no_replies() -> None:
    double = SlackDouble()
    first = a_message(double)
    double.reply("chat.postMessage", f"Bearer {TOKEN}", body(thread_ts=first))
    second = a_message(double)

    page = double.reply(
        "conversations.history", f"Bearer {TOKEN}", {"channel": CHANNEL, "limit": "1"}
    ).body
    assert [message["ts"] for message in page["messages"]] == [second]
    cursor = page["response_metadata"]["next_cursor"]
    rest = double.reply(
        "conversations.history", f"Bearer {TOKEN}", {"channel": CHANNEL, "cursor": cursor}
    ).body
    assert [message["ts"] for message in rest["messages"]] == [first]
    newer = {"channel": CHANNEL, "oldest": first}
    assert [
        message["ts"]
        for message in double.reply("conversations.history", f"Bearer {TOKEN}", newer).body[
            "messages"
        ]
    ] == [second]
