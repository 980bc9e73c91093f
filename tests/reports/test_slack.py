"""Messages for Slack: what is slower, how sure, and nothing that a commit could make of it."""

from __future__ import annotations

from typing import Any

import pytest

from reports.numbers import NOT_KNOWN
from reports.rows import rows_of_pair
from reports.slack import (
    BUTTONS,
    SlackMessage,
    Standing,
    alert_message,
    answer_message,
    deed_message,
    news_message,
)
from reports.slack_table import WIDTH, left_out, narrow_table
from reports.slack_text import BLOCKS_MAX, TEXT_LENGTH_MAX, from_markdown, mrkdwn, words_of
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.slack_rules import fault_of
from tests.fakes.verdicts import a_verdict

SLOWER = a_verdict(-9.1, low=-10.0, high=-8.2)
SAME = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
PAGE = "https://perf.example/alerts/7"
HOSTILE = "<!here> <@U0ADA> @all *b* `c` [x](https://evil.example) https://evil.example \u202e"


def a_message(
    *,
    standing: Standing | None = None,
    names: tuple[str, ...] = ("scan",),
    warnings: tuple[str, ...] = (),
    parents: tuple[str, ...] = (),
    **changes: Any,
) -> SlackMessage:
    verdicts = dict.fromkeys(names, SLOWER) | {"point-query": SAME}
    story = a_run().against(sha("a"))
    for name in verdicts:
        story = story.with_samples(name, [[100.0]] * 2, side=SideName.BASELINE)
        story = story.with_samples(name, [[91.0]] * 2)
    document = story.build()
    bad = document.candidate.commit.model_copy(update={"parents": parents, **changes})
    side = document.candidate.model_copy(update={"commit": bad})
    host = document.host.model_copy(update={"warnings": warnings})
    document = document.model_copy(update={"candidate": side, "host": host})
    return alert_message(
        rows_of_pair(document, verdicts),
        document=document,
        good=sha("a"),
        alert="alert-1",
        page=PAGE,
        standing=standing or Standing(actions=tuple(BUTTONS)),
    )


def pieces(part: Any) -> list[dict[str, Any]]:
    """Return every part of a message that has a type."""
    if isinstance(part, list | tuple):
        return [found for item in part for found in pieces(item)]
    if isinstance(part, dict):
        own = [part] if "type" in part else []
        return own + [found for value in part.values() for found in pieces(value)]
    return []


def words(message: SlackMessage) -> str:
    return "\n".join(words_of([piece]) for piece in pieces(message.blocks) if "text" in piece)


def refused(message: SlackMessage) -> str:
    """Return why Slack would not take a message, or nothing."""
    body = {"channel": "C0", "text": message.text, "blocks": list(message.blocks)}
    return fault_of("chat.postMessage", body)


def test_a_message_has_everything_to_act_on() -> None:
    message = a_message()

    assert refused(message) == ""
    assert message.text == (
        "demo: scan 9.1 % slower at bbbbbbbb. scan is 9.1 % slower (95 %: 8.2 to 10.0) at "
        "bbbbbbbb; point-query unchanged within 1.2 %"
    )
    assert message.blocks[0]["text"]["text"] == "demo: scan 9.1 % slower at bbbbbbbb"
    said = words(message)
    for part in (
        "workload       ratio   95 % interval\nscan          ▼0.909  0.900 to 0.918\n",
        "Smallest loss that this run would have shown, four times out of five: 2.0 %",
        "Culprit: one of ",
        "(aaaaaaaa, bbbbbbbb]",
        "Host: bench-1 (class small)",
        "Host state: nothing unusual",
        "forkwatch compare aaaaaaaaaaaa bbbbbbbbbbbb --suite commit",
        "Page of this alert",
    ):
        assert part in said
    (link,) = [piece for piece in pieces(message.blocks) if piece["type"] == "link"]
    assert link["url"] == PAGE


def test_a_commit_that_is_known_takes_the_place_of_its_range() -> None:
    named = a_message(standing=Standing(said="slower since cccccccc", searched=True))

    assert "slower since cccccccc" in words(named)
    assert "Culprit: one of " not in words(named)


def test_buttons_hand_the_alert_back_and_ask_where_it_matters() -> None:
    (actions,) = [block for block in a_message().blocks if block["type"] == "actions"]

    ids = [button["action_id"] for button in actions["elements"]]
    assert ids == [
        "forkwatch-acknowledge",
        "forkwatch-accept",
        "forkwatch-bisect",
        "forkwatch-mute",
        "forkwatch-false-alarm",
    ]
    assert {button["value"] for button in actions["elements"]} == {"alert-1"}
    asking = [b["action_id"] for b in actions["elements"] if "confirm" in b]
    assert asking == ["forkwatch-accept", "forkwatch-mute", "forkwatch-false-alarm"]


def test_a_single_commit_is_the_culprit() -> None:
    said = words(a_message(parents=(sha("a"),)))

    assert "Culprit: " in said
    assert "one of" not in said


def test_a_resolved_alert_says_how_and_has_no_buttons() -> None:
    gone = Standing(said="As fast as before again since `cccccccc`.", resolved=True)
    message = a_message(standing=gone)

    assert refused(message) == ""
    assert message.text == (
        "Resolved: demo: scan 9.1 % slower at bbbbbbbb. As fast as before again since cccccccc."
    )
    assert "What was found: scan is 9.1 % slower" in words(message)
    assert "As fast as before again since " in words(message)
    assert [block["type"] for block in message.blocks] == [
        "header",
        "rich_text",
        "rich_text",
        "rich_text",
    ]


def test_the_digest_tells_messages_apart() -> None:
    assert a_message().digest == a_message().digest
    assert a_message().digest != a_message(standing=Standing(said="Muted.")).digest


def test_a_commit_cannot_mention_link_or_format() -> None:
    message = a_message(subject=HOSTILE, author=HOSTILE, parents=(sha("a"),), warnings=(HOSTILE,))

    assert refused(message) == ""
    kinds = {piece["type"] for piece in pieces(message.blocks)}
    assert not kinds & {"user", "broadcast", "usergroup", "channel", "mrkdwn", "emoji"}
    links = [piece["url"] for piece in pieces(message.blocks) if piece["type"] == "link"]
    assert links == [PAGE]
    # The words are there as they were written, without what reorders them.
    assert "<!here> <@U0ADA> @all *b* `c` [x](https://evil.example)" in words(message)
    assert "\u202e" not in words(message)


def test_workloads_of_any_name_are_safe_in_the_fallback() -> None:
    message = a_message(names=("<!channel>", "a@here", "<https://evil.example|x>"))

    assert refused(message) == ""
    assert "<" not in message.text
    assert "@here" not in message.text
    assert "://e" not in message.text


def test_a_long_message_fits_and_says_what_it_lacks() -> None:
    names = tuple(f"workload-{number:03}-{'x' * 150}" for number in range(200))
    message = a_message(names=names, subject="s" * 5_000, warnings=("w" * 5_000,) * 50)

    assert refused(message) == ""
    assert len(message.blocks) <= BLOCKS_MAX
    said = words(message)
    assert "and 189 more workloads that do not fit here: 188 regression, 1 no-change." in said
    assert "more that do not fit here" in said
    assert len(message.blocks[0]["text"]["text"]) == 150


def test_the_table_fits_a_phone() -> None:
    names = ("scan", "random-points(1000)", "x" * 99)
    document = a_run().against(sha("a"))
    for name in names:
        document = document.with_samples(name, [[1.0]], side=SideName.BASELINE)
        document = document.with_samples(name, [[0.9]])
    rows = rows_of_pair(document.build(), dict.fromkeys(names[:2], SLOWER))

    table = narrow_table(rows)

    assert max(map(len, table.splitlines())) <= WIDTH
    assert "random-points(1000)\n              ▼0.909  0.900 to 0.918" in table
    unjudged = f"{NOT_KNOWN:>14}"
    assert f"{'x' * 35}…\n              ▼0.900  {unjudged}" in table
    assert left_out(rows) == ""
    assert left_out(rows, lines_max=1) == (
        "and 2 more workloads that do not fit here: 1 regression, 1 not judged"
    )


@pytest.mark.parametrize(
    "text",
    ["", "As fast as before.", "x" * 9_000, HOSTILE, "**bold** and `code`", "a\nb"],
)
def test_news_are_always_a_message(text: str) -> None:
    news = news_message(text)

    assert refused(SlackMessage(text=news.text or "-", blocks=news.blocks)) == ""


def test_a_deed_names_the_person_and_quotes_no_more() -> None:
    message = deed_message("Acknowledged", user="U0ADA", note=HOSTILE)

    assert refused(message) == ""
    assert message.text.startswith("Acknowledged by <@U0ADA>: &lt;!here&gt; &lt;@\u200bU0ADA&gt;")
    (section,) = message.blocks[0]["elements"]
    assert [piece["type"] for piece in section["elements"]] == ["text", "user", "text"]
    assert deed_message("Muted", user="U0ADA").text == "Muted by <@U0ADA>."


def test_an_answer_is_plain() -> None:
    message = answer_message(f"That was not done: {HOSTILE}")

    assert refused(message) == ""
    assert {piece["type"] for piece in pieces(message.blocks)} <= {
        "rich_text",
        "rich_text_section",
        "text",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", [("plain", {})]),
        ("`code` here", [("code", {"code": True}), (" here", {})]),
        ("**scan is 9.1 % \\_slow\\_**", [("scan is 9.1 % _slow_", {"bold": True})]),
        (r"\*not bold\* \`not code\`", [("*not bold* `not code`", {})]),
        (r"\[x\](https:/evil)", [("[x](https:/evil)", {})]),
        ("a &lt;b&gt; &amp;lt;", [("a <b> &lt;", {})]),
        ("zero\u200bwidth", [("zerowidth", {})]),
    ],
)
def test_markdown_of_ours_becomes_pieces(text: str, expected: list[tuple[str, Any]]) -> None:
    found = [(piece["text"], piece.get("style", {})) for piece in from_markdown(text)]

    assert found == expected


def test_links_of_ours_stay_links() -> None:
    text = f"Closed. [Page of this alert]({PAGE}) <{PAGE}>"

    assert from_markdown(text) == [
        {"type": "text", "text": "Closed. "},
        {"type": "link", "url": PAGE, "text": "Page of this alert"},
        {"type": "text", "text": " "},
        {"type": "link", "url": PAGE, "text": PAGE},
    ]


def test_a_cut_is_said() -> None:
    cut = from_markdown("x" * 9_000)

    assert len(words_of(cut)) == TEXT_LENGTH_MAX
    assert words_of(cut).endswith(" … (cut: too long for Slack)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
        ("@here", "@\u200bhere"),
        ("#general", "#\u200bgeneral"),
        ("see https://evil.example", "see https://\u200bevil.example"),
        ("two\nlines\u202e", "two lines"),
    ],
)
def test_a_fallback_is_inert(text: str, expected: str) -> None:
    assert mrkdwn(text) == expected


def test_a_loss_of_nearly_everything_can_be_sent() -> None:
    total = a_verdict(-99.9, low=-99.95, high=-99.0)
    story = a_run().against(sha("a"))
    story = story.with_samples("scan", [[100.0]], side=SideName.BASELINE)
    document = story.with_samples("scan", [[0.1]]).build()
    rows = rows_of_pair(document, {"scan": total})

    message = alert_message(rows, document=document, good=sha("a"), alert="alert-1")

    assert refused(message) == ""
    assert "0.001" in words(message)
