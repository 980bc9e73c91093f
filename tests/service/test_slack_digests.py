"""The weekly digest on Slack: one message for each week, one picture, whatever is lost between."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from reports.digest_sections import headline
from reports.digest_text import digest_document, digest_markdown
from service.channels.all_digests import AllDigests
from service.channels.file_digests import FileDigests
from service.channels.slack.digests import TOPIC
from service.channels.slack.errors import SlackRefusedError, SlackUnavailableError
from service.core.digests import StoredDigest
from service.core.errors import ServiceError, TransientError
from service.core.weeks import parse_week
from tests.fakes.slack_api import BOT, CHANNEL, LOST, WORKSPACE, SlackServer, refused
from tests.fakes.slack_opened import NOON, a_slack_like, a_template
from tests.fakes.told_digests import a_loud_week, a_quiet_week

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reports.digest import Digest
    from service.channels.slack.digests import SlackDigests
    from tests.fakes.slack_opened import OpenedSlack


def stored(digest: Digest, *, fork: str = "demo", week: str = "2026-W47") -> StoredDigest:
    return StoredDigest(
        fork=fork,
        week=parse_week(week),
        zone="UTC",
        headline=headline(digest),
        text=digest_markdown(digest),
        document=json.loads(json.dumps(digest_document(digest))),
        created_at=NOON,
    )


LOUD, QUIET = stored(a_loud_week()), stored(a_quiet_week())


@pytest.fixture(scope="module")
def server() -> Iterator[SlackServer]:
    with SlackServer() as started:
        yield started


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_template(tmp_path_factory.mktemp("slack"))


@pytest.fixture
def slack(server: SlackServer, template: Path, tmp_path: Path) -> Iterator[OpenedSlack]:
    with a_slack_like(template, server, tmp_path) as opened:
        yield opened


def digests(slack: OpenedSlack) -> SlackDigests:
    """Return the sink as after a restart, which knows nothing of what it has sent."""
    return slack.connected().digests


def test_a_loud_week_is_one_message_with_one_picture(slack: OpenedSlack) -> None:
    where = digests(slack).send_digest(LOUD)

    (message,) = slack.double.first_messages()
    assert where == f"{WORKSPACE}archives/{CHANNEL}/p{message['ts'].replace('.', '')}"
    assert message["text"] == headline(a_loud_week())
    (shared,) = slack.double.thread()
    assert shared["files"][0]["title"] == "What moved in week 2026-W47"
    assert next(iter(slack.double.uploaded.values())).startswith(b"\x89PNG\r\n\x1a\n")


def test_a_quiet_week_is_one_line_without_a_picture(slack: OpenedSlack) -> None:
    digests(slack).send_digest(QUIET)

    (message,) = slack.double.first_messages()
    assert message["text"].startswith("demo, week 2026-W47: nothing to say")
    assert slack.double.thread() == []


def test_sending_again_after_a_restart_says_nothing_twice(slack: OpenedSlack) -> None:
    first = digests(slack).send_digest(LOUD)

    assert digests(slack).send_digest(LOUD) == first
    assert slack.double.writes()["chat.postMessage"] == 1
    assert len(slack.double.thread()) == 1


@pytest.mark.parametrize("method", ["chat.postMessage", "files.completeUploadExternal"])
def test_a_lost_answer_leaves_one_message_and_one_picture(slack: OpenedSlack, method: str) -> None:
    slack.double.go_wrong(method, LOST, after=True)
    with pytest.raises(SlackUnavailableError):
        digests(slack).send_digest(LOUD)

    where = digests(slack).send_digest(LOUD)

    (message,) = slack.double.first_messages()
    assert where.endswith(message["ts"].replace(".", ""))
    assert len(slack.double.thread()) == 1


def test_weeks_and_forks_have_messages_of_their_own(slack: OpenedSlack) -> None:
    sink = digests(slack)
    for digest in (
        LOUD,
        stored(a_loud_week(), week="2026-W48"),
        stored(a_loud_week(), fork="demo:2026-W47"),
    ):
        sink.send_digest(digest)

    assert len(slack.double.first_messages()) == 3
    assert len(slack.double.thread()) == 3


def test_a_stranger_cannot_pass_for_our_digest(slack: OpenedSlack) -> None:
    digests(slack).send_digest(LOUD)
    metadata = slack.double.first_messages()[0]["metadata"]
    assert metadata["event_payload"]["topic"] == TOPIC
    slack.double.messages[CHANNEL].clear()
    slack.double.add(CHANNEL, text="nothing here", metadata=metadata, user="U0EVE", bot_id="B0EVE")

    digests(slack).send_digest(LOUD)

    assert sum(m.get("bot_id") == BOT for m in slack.double.first_messages()) == 1


def test_a_picture_that_slack_refuses_does_not_hold_the_digest_back(slack: OpenedSlack) -> None:
    slack.double.go_wrong("files.getUploadURLExternal", refused("missing_scope"), times=9)

    digests(slack).send_digest(LOUD)

    assert len(slack.double.first_messages()) == 1
    assert slack.double.thread() == []


def test_a_channel_without_us_is_a_refusal(slack: OpenedSlack) -> None:
    slack.double.go_wrong("conversations.history", refused("channel_not_found"), times=9)

    with pytest.raises(SlackRefusedError, match="invite the app"):
        digests(slack).send_digest(LOUD)


class Sink:
    """A place that fails as it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.weeks: list[str] = []

    def send_digest(self, digest: StoredDigest) -> str:
        if self.error is not None:
            raise self.error
        self.weeks.append(digest.week.name)
        return f"memory:{digest.week.name}"


def test_every_place_gets_it_whatever_becomes_of_the_others(tmp_path: Path) -> None:
    away, there = Sink(TransientError("away")), Sink()
    places = AllDigests({"slack": away, "memory": there, "files": FileDigests(tmp_path)})

    with pytest.raises(TransientError, match="slack failed: away; memory:2026-W47"):
        places.send_digest(LOUD)
    assert there.weeks == ["2026-W47"]

    away.error = None
    assert places.send_digest(LOUD).startswith("memory:2026-W47, memory:2026-W47, ")


def test_a_place_that_refuses_for_good_does_not_hold_the_others_back() -> None:
    refusing, there = Sink(ServiceError("no such channel")), Sink()

    said = AllDigests({"slack": refusing, "files": there}).send_digest(LOUD)

    assert said == "memory:2026-W47, slack failed: no such channel"
    with pytest.raises(ServiceError, match="no such channel"):
        AllDigests({"slack": refusing}).send_digest(LOUD)


def test_a_bug_in_one_place_is_worth_another_round() -> None:
    with pytest.raises(TransientError, match="slack failed: 'oops'"):
        AllDigests({"slack": Sink(KeyError("oops")), "files": Sink()}).send_digest(LOUD)
