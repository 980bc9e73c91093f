"""The digest on Slack and its picture: what is said, how it fits, and that words stay words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reports.charts import png
from reports.digest import Digest
from reports.digest_chart import ROWS_MAX, digest_chart
from reports.digest_sections import headline, sections
from reports.digest_text import digest_document
from reports.slack import SlackMessage
from reports.slack_digest import ITEMS_MAX, digest_message
from tests.fakes.slack_rules import fault_of
from tests.fakes.told_digests import a_loud_week, a_quiet_week, a_standing

BASE = "http://fw"


def stored(digest: Digest) -> dict[str, Any]:
    """Return the document as it comes back from a database."""
    return json.loads(json.dumps(digest_document(digest), allow_nan=False))


def message(digest: Digest) -> SlackMessage:
    return digest_message(stored(digest), base_url=BASE)


def words(part: Any) -> str:
    """Return all words of a message's blocks in the order in which they are read."""
    if isinstance(part, list | tuple):
        return " ".join(map(words, part))
    if isinstance(part, dict):
        own = part["text"] if isinstance(part.get("text"), str) else ""
        inner = [words(value) for value in part.values() if isinstance(value, dict | list)]
        return " ".join([own, *inner])
    return ""


def items(digest: Digest, title: str) -> list[str]:
    (found,) = [section for section in sections(digest) if section.title == title]
    return [f"{item.text}: {item.detail}" if item.detail else item.text for item in found.items]


def refused(found: SlackMessage) -> str:
    body = {"channel": "C0", "text": found.text, "blocks": list(found.blocks)}
    return fault_of("chat.postMessage", body)


def test_nothing_to_say_is_one_line() -> None:
    found = message(a_quiet_week())

    said = "demo, week 2026-W47: nothing to say; 12 commits followed in 3.1 machine hours."
    assert words(found.blocks).split() == said.split()
    assert len(found.blocks) == 1
    assert refused(found) == ""


def test_a_loud_week_is_read_from_the_top_and_slack_takes_it() -> None:
    found = message(a_loud_week())

    said = " ".join(words(found.blocks).split())
    assert found.blocks[0]["text"]["text"] == "demo, week 2026-W47"
    assert said.startswith("demo, week 2026-W47 1 commit slower, 1 commit faster, 1 drift")
    titles = [section.title for section in sections(a_loud_week())]
    places = [said.index(f" {title} ") for title in titles]
    assert places == sorted(places)
    assert found.text == headline(a_loud_week())
    assert refused(found) == ""


def test_what_somebody_has_to_look_at_can_be_opened() -> None:
    text = json.dumps(message(a_loud_week()).blocks)

    for path in ("/alerts/alert-1", "/bisects/bisect-1", "/digests/2026-W47"):
        assert f'"url": "{BASE}{path}"' in text


def test_a_week_of_too_much_fits_and_says_what_it_lacks() -> None:
    week = a_loud_week()
    (slow,) = week.slower
    many = replace(
        week,
        slower=(replace(slow, subject="x" * 900, sentence="y" * 900),) * 30,
        faster=week.faster * 30,
        open_alerts=tuple(
            replace(week.open_alerts[0], id=f"alert-{number}", sha="7" * 40, sentence="z" * 900)
            for number in range(40)
        ),
        fixed=week.fixed * 40,
        noisy=tuple(
            replace(week.noisy[0], workload=f"w{number}", advice=(f"a{number}" * 90,))
            for number in range(30)
        ),
    )

    found = message(many)

    assert refused(found) == ""
    # What a section has is counted by itself, the rest by the message.
    assert f"and {10 + 1 - ITEMS_MAX} more on the page of this week" in words(found.blocks)


HOSTILE = "<!channel> </p><script>x()</script> @all [a](http://evil) *b*\n# Owned\u202e"


def test_hostile_words_stay_words() -> None:
    week = a_loud_week()
    (slow,) = week.slower
    evil = replace(
        week,
        fork=HOSTILE,
        slower=(replace(slow, subject=HOSTILE, author=HOSTILE, sentence=HOSTILE),),
        open_alerts=(replace(week.open_alerts[0], id="../x?", owner=HOSTILE, sentence=HOSTILE),),
        bisects=(replace(week.bisects[0], said=HOSTILE, workload=HOSTILE),),
    )

    found = message(evil)

    assert refused(found) == ""
    assert "<!channel>" not in found.text
    assert "\u202e" not in words(found.blocks)
    assert f"{BASE}/alerts/..%2Fx%3F" in json.dumps(found.blocks)
    spec = digest_chart(stored(evil)["facts"])
    assert spec is not None
    assert "\u202e" not in json.dumps(spec, ensure_ascii=False)


def test_what_a_week_bought_is_said_to_the_end() -> None:
    week = a_loud_week()
    outcomes = dict.fromkeys(("regression", "no-change", "inconclusive", "unchanged"), 140)
    outcomes |= dict.fromkeys(("improvement", "build-failed", "unstable", "failed"), 120)
    busy = replace(week.machine_time, outcomes=outcomes, confirms=125, cleared=120)
    week = replace(week, machine_time=busy)

    (said,) = [one for one in items(week, "Machine time") if "It bought" in one]
    shown = " ".join(words(message(week).blocks).replace(" : ", ": ").split())

    assert len(said) > 240
    assert said in shown


def test_a_list_that_is_too_long_ends_after_a_part_and_says_so() -> None:
    week = a_loud_week()
    advice = tuple(f"advice number {number} about this machine" for number in range(40))
    noisy = (replace(week.noisy[0], advice=advice),)

    shown = " ".join(words(message(replace(week, noisy=noisy)).blocks).split())

    assert "advice number 9 about this machine; " in shown
    assert "about this machine, and more" in shown
    assert "advice number 39" not in shown


def test_an_item_without_words_does_not_stop_the_message() -> None:
    week = a_loud_week()
    (slow,) = week.slower

    assert refused(message(replace(week, slower=(replace(slow, sentence="", subject=""),)))) == ""


def drawn(digest: Digest) -> list[dict[str, Any]]:
    """Return the rows of a picture from top to bottom."""
    spec = digest_chart(stored(digest)["facts"])
    assert spec is not None
    (rows,) = [values for values in spec["datasets"].values() if "what" in values[0]]
    return list(rows)


def test_the_picture_has_what_moved_with_its_interval() -> None:
    rows = drawn(a_loud_week())

    assert [row["what"] for row in rows] == [
        "scan at 55555555",
        "insert at 66666666",
        "scan since 11111111",
        "point-query, drift",
    ]
    assert rows[0]["said"] == "-9.1 % (-10.0 to -8.2)"
    assert [row["word"] for row in rows] == ["slower", "faster", "slower", "slower"]


def test_a_week_without_a_move_has_no_picture() -> None:
    assert digest_chart(stored(a_quiet_week())["facts"]) is None
    # A week that was written before its facts had moves.
    assert digest_chart({"slower": [{"sha": "5" * 40}], "drifted": []}) is None


def test_a_picture_of_many_rows_has_as_many_as_are_read() -> None:
    week = a_loud_week()
    (slow,) = week.slower
    moves = tuple(a_standing(f"w{place}", -5.0, low=-6.0, high=-4.0) for place in range(40))
    assert week.reference is not None
    crowded = replace(
        week,
        slower=(replace(slow, moves=moves),),
        reference=replace(week.reference, standings=moves),
    )

    rows = drawn(crowded)

    assert len(rows) == ROWS_MAX
    assert rows[-1]["what"].endswith("since 11111111")


def test_the_picture_is_a_picture() -> None:
    spec = digest_chart(stored(a_loud_week())["facts"])

    assert spec is not None
    assert png(spec).startswith(b"\x89PNG")


def test_bisects_say_what_they_found_and_where() -> None:
    week = a_loud_week()
    (over,) = week.bisects
    ended = replace(week, bisects=(over, replace(over, state="cancelled", said="")))

    assert items(ended, "Bisects") == [
        (
            'scan is 9.1 % slower (95 %: 8.2 to 10.0) since 55555555 "Check" (97 %): '
            "scan in (11111111, 55555555], 16 commits"
        ),
        "cancelled: no answer: scan in (11111111, 55555555], 16 commits",
    ]
    assert ", 2 bisects ended, " in headline(ended)
    assert not replace(a_quiet_week(), bisects=week.bisects).quiet


def test_machine_time_is_of_all_kinds_and_says_what_it_bought() -> None:
    assert items(a_loud_week(), "Machine time") == [
        (
            "5.2 hours: 2.0 hours on single commits, 1.0 hours on pairs, "
            "1.5 hours on pull requests, 45 minutes on bisects"
        ),
        (
            "It bought: 12 commits followed, 1 regression, 1 improvement, 10 shown unchanged, "
            "2 suspicions measured again, none of them cleared, "
            "3 pull requests judged, 1 of them slower, 1 commit named by a bisect"
        ),
    ]


@pytest.mark.parametrize(
    ("seconds", "pulls", "said"),
    [
        (0, 0, "nothing to say; 12 commits followed in 3.1 machine hours."),
        (3_600, 2, "nothing to say; 12 commits followed and 2 pull requests judged in 4.1 machine"),
    ],
)
def test_a_quiet_week_counts_pull_requests_too(seconds: int, pulls: int, said: str) -> None:
    week = a_quiet_week()
    used = replace(week.machine_time, pull_seconds=seconds, pulls=pulls)

    assert said in headline(replace(week, machine_time=used))


def test_an_open_alert_has_its_owner_and_its_day() -> None:
    nobodys, late = items(a_loud_week(), "Open alerts")

    assert nobodys.startswith("3 days, nobody's: scan is 9.1 % slower")
    assert late.startswith("3 days, github:ada, acknowledged, was due 2026-11-20: scan is")


def test_nobodys_address_is_printed() -> None:
    week = a_loud_week()
    (slow,) = week.slower
    named = replace(week, slower=(replace(slow, author="Ada <ada@example.org>"),))

    assert items(named, "Slower")[0].endswith("row_search_mvcc, by Ada")
    assert "example.org" not in words(message(named).blocks)


def test_series_that_begin_anew_are_news() -> None:
    week = replace(a_quiet_week(), began_anew=a_loud_week().began_anew)

    assert headline(week) == "demo, week 2026-W47: series begin anew"
    assert items(week, "Series that begin anew") == list(week.began_anew)
