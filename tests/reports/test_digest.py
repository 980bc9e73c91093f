from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import date

import pytest

from detectors.change import Interval
from reports.digest import (
    AlertItem,
    Digest,
    Drifted,
    HostHealth,
    MachineTime,
    MovedCommit,
    NoisyWorkload,
    Precision,
    Reference,
    Standing,
)
from reports.digest_sections import ITEMS_MAX, headline, sections, span
from reports.digest_text import digest_document, digest_lines, digest_markdown

SHA = "5" * 40


def logs(percent: float) -> float:
    return math.log1p(percent / 100)


def between(low: float, high: float) -> Interval:
    return Interval(low=logs(low), high=logs(high), confidence=0.95)


QUIET = Digest(
    fork="demo",
    branch="main",
    week="2026-W47",
    first_day=date(2026, 11, 16),
    last_day=date(2026, 11, 22),
    zone="UTC",
    commits_seen=12,
    machine_time=MachineTime(single_seconds=11_160, outcomes={"no-change": 11, "unchanged": 1}),
)
SLOW = MovedCommit(
    sha=SHA,
    subject="Check the record format in row_search_mvcc",
    author="Ada",
    sentence="scan is 9.1 % slower (95 %: 8.2 to 10.0) at 55555555",
)
ALERT = AlertItem(
    id="alert-1",
    sha=SHA,
    subject=SLOW.subject,
    author="Ada",
    sentence=SLOW.sentence,
    state="confirmed",
    owner="",
    days=3,
)
DRIFT = Drifted(
    workload="point-query",
    effect=logs(-14.8),
    interval=between(-15.5, -14.1),
    commits=40,
    since="1" * 40,
)
NOISY = NoisyWorkload(
    workload="update-index",
    detectable_effect=-logs(-8.1),
    gate=0.05,
    advice=("hold the purge back", "about 11 starts a run instead of 4"),
)
LOUD = replace(
    QUIET,
    slower=(SLOW,),
    reference=Reference(
        sha="1" * 40,
        subject="Import 10.11.19",
        chosen=False,
        standings=(
            Standing(workload="scan", effect=logs(-9.3), interval=between(-11.4, -7.1)),
            Standing(workload="insert", effect=logs(4.0), interval=between(3.0, 5.0)),
        ),
        same=6,
        absent=1,
    ),
    drifted=(DRIFT,),
    open_alerts=(ALERT, replace(ALERT, id="alert-2", owner="github:ada", state="acknowledged")),
    fixed=(replace(ALERT, id="alert-0", days=1),),
    precision=Precision(true=7, false=1),
    noisy=(NOISY,),
    hosts=(HostHealth(name="bench-1", host_class="small", troubles=("2 of 14 runs unstable",)),),
    machine_time=MachineTime(
        single_seconds=7_200,
        confirm_seconds=3_960,
        wasted_seconds=1_200,
        outcomes={"no-change": 10, "regression": 1, "unstable": 1},
        confirms=3,
        cleared=2,
    ),
)


def items(digest: Digest, title: str) -> list[str]:
    """Return the items of a section as text and detail."""
    (found,) = [section for section in sections(digest) if section.title == title]
    return [f"{item.text}: {item.detail}" if item.detail else item.text for item in found.items]


def test_a_quiet_week_is_one_line_everywhere() -> None:
    said = "demo, week 2026-W47: nothing to say; 12 commits followed in 3.1 machine hours."

    assert digest_markdown(QUIET, page="http://pages/digests/2026-W47") == f"{said}\n"
    assert digest_lines(QUIET, width=20) == [said]
    assert sections(QUIET) == ()


def test_a_week_without_a_commit_says_so() -> None:
    idle = replace(QUIET, commits_seen=0, machine_time=MachineTime(outcomes={}))

    assert headline(idle) == "demo, week 2026-W47: nothing to say; no commit came."


def test_the_headline_counts_what_is_below_it() -> None:
    assert headline(LOUD) == (
        "demo, week 2026-W47: 1 commit slower, 1 drift that no gate saw, 2 alerts open, 1 fixed, "
        "1 workload too noisy, 1 host in trouble"
    )


def test_what_is_urgent_comes_first() -> None:
    assert [section.title for section in sections(LOUD)] == [
        "Slower",
        "Since 11111111, the first commit measured",
        "Drift that no gate saw",
        "Open alerts",
        "Fixed",
        "Precision",
        "Too noisy to gate",
        "Machine time",
        "Hosts",
    ]


def test_each_section_says_how_much_and_since_when() -> None:
    assert items(LOUD, "Slower") == [
        (
            "scan is 9.1 % slower (95 %: 8.2 to 10.0) at 55555555: "
            "Check the record format in row_search_mvcc, by Ada"
        )
    ]
    assert items(LOUD, "Since 11111111, the first commit measured") == [
        "That is: Import 10.11.19",
        "scan is 9.3 % slower (95 %: 7.1 to 11.4)",
        "insert is 4.0 % faster (95 %: 3.0 to 5.0)",
        "6 workloads: no difference shown",
        "1 workload: not measured then, or not under the same conditions",
    ]
    assert items(LOUD, "Drift that no gate saw") == [
        (
            "point-query lost 14.8 % (95 %: 14.1 to 15.5) over 40 commits since 11111111: "
            "0.40 % a commit"
        )
    ]
    assert items(LOUD, "Precision") == [
        "Of 8 alerts that people judged so far, 7 were real",
    ]


def test_open_alerts_have_an_age_and_an_owner() -> None:
    nobodys, adas = items(LOUD, "Open alerts")

    assert nobodys.startswith("3 days, nobody's: scan is 9.1 % slower")
    assert adas.startswith("3 days, github:ada, acknowledged: scan is 9.1 % slower")


def test_noise_comes_with_what_would_help() -> None:
    assert items(LOUD, "Too noisy to gate") == [
        (
            "update-index shows losses from 8.1 % on, its gate is 5.0 %: "
            "hold the purge back; about 11 starts a run instead of 4"
        )
    ]


def test_workloads_that_the_same_would_help_are_told_together() -> None:
    names = ("delete", "insert", "update-one", "update-zipf", "write-only")
    many = [
        replace(NOISY, workload=name, detectable_effect=-logs(-6.0 - place))
        for place, name in enumerate(names)
    ]
    alone = replace(NOISY, workload="scan", advice=("a quieter host",))

    assert items(replace(QUIET, noisy=(*many, alone)), "Too noisy to gate") == [
        (
            "delete, insert, update-one and 2 more show losses from 6.0 to 10.0 % on, "
            "their gate is 5.0 %: hold the purge back; about 11 starts a run instead of 4"
        ),
        "scan shows losses from 8.1 % on, its gate is 5.0 %: a quieter host",
    ]


def test_machine_time_says_what_it_bought() -> None:
    assert items(LOUD, "Machine time") == [
        (
            "3.1 hours: 2.0 hours on single commits, 1.1 hours on pairs, "
            "20 minutes of it in runs that could not be judged"
        ),
        (
            "It bought: 12 commits followed, 1 regression, 10 shown unchanged, "
            "1 on an unstable host, 3 suspicions measured again, 2 of them cleared"
        ),
    ]


def test_a_step_says_where_it_is() -> None:
    step = replace(DRIFT, step_at=SHA, effect=logs(-2.1), interval=between(-2.8, -1.4))

    assert items(replace(QUIET, drifted=(step,)), "Drift that no gate saw") == [
        (
            "point-query lost 2.1 % (95 %: 1.4 to 2.8) at 55555555: "
            "a step that no verdict named, seen over 40 commits since 11111111"
        )
    ]


def test_false_alarms_are_listed_with_the_precision() -> None:
    week = replace(LOUD, false_alarms=(ALERT,))

    listed, precision = items(week, "False alarms")
    assert listed.startswith("scan is 9.1 % slower (95 %: 8.2 to 10.0) at 55555555, after 3 days")
    assert precision.startswith("Of 8 alerts")


def test_a_long_list_is_counted() -> None:
    week = replace(QUIET, slower=(SLOW,) * (ITEMS_MAX + 5))

    (section, _) = sections(week)
    assert len(section.items) == ITEMS_MAX + 1
    assert section.items[-1].text == "and 5 more"
    assert "15 commits slower" in headline(week)


def test_what_only_compares_with_long_ago_is_no_news() -> None:
    assert replace(QUIET, reference=LOUD.reference, precision=LOUD.precision).quiet


HOSTILE = "</p><script>x()</script> @all #1 [a](http://evil) | `b`\n# Owned\u202e"


@pytest.fixture
def hostile() -> Digest:
    """A week in which every word that is not ours is an attack."""
    commit = replace(SLOW, subject=HOSTILE, author=HOSTILE, sentence=HOSTILE)
    alert = replace(ALERT, subject=HOSTILE, author=HOSTILE, sentence=HOSTILE, owner=HOSTILE)
    return replace(
        LOUD,
        fork=HOSTILE,
        branch=HOSTILE,
        slower=(commit,),
        open_alerts=(alert,),
        drifted=(replace(DRIFT, workload=HOSTILE, setting=HOSTILE),),
        reference=replace(LOUD.reference, subject=HOSTILE),
        hosts=(HostHealth(name=HOSTILE, host_class=HOSTILE, troubles=(HOSTILE,)),),
    )


def test_hostile_words_stay_words_in_markdown(hostile: Digest) -> None:
    text = digest_markdown(hostile)

    assert "<script" not in text
    assert "@all" not in text
    assert re.search(r"(?<!\\)\]\(", text) is None
    assert "\u202e" not in text
    assert [line for line in text.splitlines() if line.startswith("# ")] == text.splitlines()[:1]
    assert "x()" in text


def test_hostile_words_stay_on_their_lines_in_a_terminal(hostile: Digest) -> None:
    for line in digest_lines(hostile):
        assert line.isprintable()
        assert line != "# Owned"


def test_lines_fit_a_terminal() -> None:
    lines = digest_lines(LOUD)

    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("demo, week 2026-W47: 1 commit slower")
    assert "Slower" in lines
    assert max(map(len, digest_lines(LOUD, width=50))) <= 50


def test_the_document_is_data_and_the_same_words() -> None:
    document = json.loads(json.dumps(digest_document(LOUD), allow_nan=False))

    assert document["format"] == "forkwatch.digest"
    assert document["quiet"] is False
    assert document["headline"] == headline(LOUD)
    assert document["facts"]["first_day"] == "2026-11-16"
    assert document["facts"]["drifted"][0]["commits"] == 40
    assert [section["title"] for section in document["sections"]] == [
        section.title for section in sections(LOUD)
    ]
    assert document["sections"][0]["items"][0]["commit"] == SHA


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (date(2026, 11, 16), date(2026, 11, 22), "16 to 22 November 2026 (UTC)"),
        (date(2026, 11, 30), date(2026, 12, 6), "30 November to 6 December 2026 (UTC)"),
        (date(2026, 12, 28), date(2027, 1, 3), "28 December 2026 to 3 January 2027 (UTC)"),
    ],
)
def test_the_span_names_days_once(first: date, last: date, said: str) -> None:
    week = replace(QUIET, first_day=first, last_day=last, commits_seen=1)

    assert span(week) == f"{said}; 1 commit came to main."


def test_a_running_week_says_so() -> None:
    assert headline(replace(QUIET, so_far=True)).startswith("demo, week 2026-W47 so far: nothing")


def test_the_page_is_named_where_there_is_more_than_a_line() -> None:
    page = "http://127.0.0.1:8642/digests/2026-W47"

    assert digest_markdown(LOUD, page=page).endswith(f"Page of this week: <{page}>\n")
