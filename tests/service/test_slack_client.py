"""The client of Slack: when it tries again, when it must not, and what its errors say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.channels.slack.client import SlackClient
from service.channels.slack.errors import (
    SlackGoneError,
    SlackLimitedError,
    SlackRefusedError,
    SlackUnavailableError,
)
from tests.fakes.slack_api import (
    BOT,
    CHANNEL,
    LOST,
    TOKEN,
    USER,
    WORKSPACE,
    Reply,
    SlackDouble,
    SlackServer,
    limited,
    refused,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = {"channel": CHANNEL, "text": "words"}


@pytest.fixture(scope="module")
def server() -> Iterator[SlackServer]:
    with SlackServer() as started:
        yield started


@pytest.fixture
def double(server: SlackServer) -> Iterator[SlackDouble]:
    server.double = SlackDouble(server.url)
    yield server.double
    server.double = None


@pytest.fixture
def waited() -> list[float]:
    return []


@pytest.fixture
def client(double: SlackDouble, waited: list[float]) -> SlackClient:
    return SlackClient(TOKEN, api_url=f"{double.url}/api/", sleep=waited.append)


def methods(double: SlackDouble) -> list[str]:
    return [method for method, _ in double.asked]


def test_who_we_are_is_asked_once(client: SlackClient, double: SlackDouble) -> None:
    me = client.identity()

    assert (me.user, me.bot, me.url) == (USER, BOT, WORKSPACE)
    assert client.identity() is me
    assert methods(double) == ["auth.test"]


@pytest.mark.parametrize("trouble", [LOST, refused("internal_error"), Reply(body="not JSON")])
def test_a_read_is_tried_again(
    client: SlackClient, double: SlackDouble, waited: list[float], trouble: Reply
) -> None:
    double.go_wrong("auth.test", trouble, times=2)

    assert client.read("auth.test")["user_id"] == USER
    assert waited == [1.0, 2.0]


def test_a_read_is_given_up_in_the_end(client: SlackClient, double: SlackDouble) -> None:
    double.go_wrong("auth.test", LOST, times=9)

    with pytest.raises(SlackUnavailableError, match=r"auth\.test: no answer from Slack"):
        client.read("auth.test")
    assert methods(double) == ["auth.test"] * 3


@pytest.mark.parametrize("after", [False, True])
def test_a_write_that_may_have_been_done_is_not_repeated(
    client: SlackClient, double: SlackDouble, *, after: bool
) -> None:
    double.go_wrong("chat.postMessage", LOST, after=after)

    with pytest.raises(SlackUnavailableError):
        client.write("chat.postMessage", WORDS)
    assert methods(double) == ["chat.postMessage"]


def test_a_write_waits_as_long_as_slack_says(
    client: SlackClient, double: SlackDouble, waited: list[float]
) -> None:
    double.go_wrong("chat.postMessage", limited(17))

    client.write("chat.postMessage", WORDS)

    assert waited == [17.0]
    assert len(double.first_messages()) == 1


def test_a_long_wait_is_for_the_flow(
    client: SlackClient, double: SlackDouble, waited: list[float]
) -> None:
    double.go_wrong("chat.postMessage", limited(600))

    with pytest.raises(SlackLimitedError) as caught:
        client.write("chat.postMessage", WORDS)

    assert caught.value.retry_after_s == 600
    assert waited == []


def test_being_told_to_wait_without_a_time_is_half_a_minute(
    client: SlackClient, double: SlackDouble, waited: list[float]
) -> None:
    double.go_wrong("chat.postMessage", Reply(status=429, body={"ok": False, "error": "x"}))

    client.write("chat.postMessage", WORDS)

    assert waited == [30.0]


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("channel_not_found", "invite the app into the channel"),
        ("not_in_channel", "invite the app into the channel"),
        ("invalid_auth", "correct FORKWATCH_SLACK_TOKEN"),
    ],
)
def test_a_refusal_says_what_to_do(
    client: SlackClient, double: SlackDouble, word: str, advice: str
) -> None:
    double.go_wrong("chat.postMessage", refused(word))

    with pytest.raises(SlackRefusedError, match=f"{word}; {advice}"):
        client.write("chat.postMessage", WORDS)
    assert methods(double) == ["chat.postMessage"]


def test_a_missing_scope_is_named(client: SlackClient, double: SlackDouble) -> None:
    double.go_wrong("auth.test", refused("missing_scope", needed="files:write"))

    with pytest.raises(SlackRefusedError, match="the app needs files:write"):
        client.read("auth.test")


@pytest.mark.parametrize("word", ["message_not_found", "edit_window_closed"])
def test_a_message_that_is_gone_is_told_apart(
    client: SlackClient, double: SlackDouble, word: str
) -> None:
    double.go_wrong("chat.update", refused(word))

    with pytest.raises(SlackGoneError):
        client.write("chat.update", {**WORDS, "ts": "1.000001"})


def test_nobody_there_is_no_answer(waited: list[float]) -> None:
    client = SlackClient(TOKEN, api_url="http://127.0.0.1:9/api/", sleep=waited.append)

    with pytest.raises(SlackUnavailableError, match="no answer"):
        client.read("auth.test")


def test_errors_and_logs_do_not_quote_the_token(
    client: SlackClient, double: SlackDouble, caplog: pytest.LogCaptureFixture
) -> None:
    page = Reply(status=502, body=f"<html>{TOKEN}</html>")
    double.go_wrong("chat.postMessage", page)

    with caplog.at_level("INFO"), pytest.raises(SlackUnavailableError) as caught:
        client.write("chat.postMessage", WORDS)

    assert TOKEN not in str(caught.value)
    assert TOKEN not in "".join(r.getMessage() for r in caplog.records if "forkwatch" in r.name)


def test_a_list_is_read_to_its_end_or_to_its_bound(
    client: SlackClient, double: SlackDouble
) -> None:
    for number in range(450):
        double.add(CHANNEL, text=str(number))

    every = list(client.items("conversations.history", "messages", pages_max=9, channel=CHANNEL))
    some = list(client.items("conversations.history", "messages", pages_max=2, channel=CHANNEL))

    assert [item["text"] for item in every] == [str(number) for number in range(449, -1, -1)]
    assert len(some) == 400


def test_a_file_goes_into_a_thread(client: SlackClient, double: SlackDouble) -> None:
    ts = str(client.write("chat.postMessage", WORDS)["ts"])

    client.upload(b"\x89PNG", name="a.png", title="A", channel=CHANNEL, thread=ts)

    (shared,) = double.thread()
    assert shared["files"] == [{"id": "F00000001", "name": "a.png", "title": "A"}]
    assert double.uploaded == {"F00000001": b"\x89PNG"}


def test_a_file_whose_upload_fails_is_not_repeated(
    client: SlackClient, double: SlackDouble
) -> None:
    double.go_wrong("files.completeUploadExternal", LOST, after=True)
    ts = str(client.write("chat.postMessage", WORDS)["ts"])

    with pytest.raises(SlackUnavailableError):
        client.upload(b"\x89PNG", name="a.png", title="A", channel=CHANNEL, thread=ts)

    assert len(double.thread()) == 1
