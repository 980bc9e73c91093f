"""Orders in comments: found where people write them, and every word checked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.channels.github.commands import (
    COMMANDS_MAX,
    USAGE,
    Command,
    CommandVerb,
    Misunderstood,
    find_commands,
)

RUN = Command(verb=CommandVerb.RUN)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/forkwatch run", RUN),
        ("/forkwatch  RUN  ", RUN),
        ("/Forkwatch run", RUN),
        ("  /forkwatch run", RUN),
        ("/forkwatch run full", Command(verb=CommandVerb.RUN, name="full")),
        (
            "/forkwatch compare main",
            Command(verb=CommandVerb.COMPARE, revisions=("main",)),
        ),
        (
            "/forkwatch compare v10.11.1~2 feature/fast_scan",
            Command(verb=CommandVerb.COMPARE, revisions=("v10.11.1~2", "feature/fast_scan")),
        ),
        (
            "/forkwatch bisect 3f2c1ab0 HEAD^",
            Command(verb=CommandVerb.BISECT, revisions=("3f2c1ab0", "HEAD^")),
        ),
        (
            "/forkwatch bisect good bad random-points(1000)",
            Command(verb=CommandVerb.BISECT, revisions=("good", "bad"), name="random-points(1000)"),
        ),
        ("/forkwatch explain scan", Command(verb=CommandVerb.EXPLAIN, name="scan")),
        (
            "/forkwatch accept  the checksum   is worth it ",
            Command(verb=CommandVerb.ACCEPT, reason="the checksum is worth it"),
        ),
    ],
)
def test_commands_are_understood(line: str, command: Command) -> None:
    assert find_commands(line) == [command]


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "run",
        "please /forkwatch run",
        "/forkwatchrun",
        "//forkwatch run",
        "`/forkwatch run`",
        "> /forkwatch run",
        "    /forkwatch run",
        "- /forkwatch run",
        "```\n/forkwatch run\n```",
        "~~~~\n```\n/forkwatch run\n~~~\n/forkwatch run\n~~~~",
        "```text\n/forkwatch run",
        "<!-- /forkwatch run -->",
        "<!--\n/forkwatch run\n-->",
        "<!--\n/forkwatch run",
    ],
)
def test_what_is_not_an_order_is_not_taken_for_one(comment: str) -> None:
    assert find_commands(comment) == []


def test_orders_stand_among_other_words() -> None:
    comment = (
        "Looks slow.\r\n\r\n/forkwatch run\r\nThanks!\r\n```\ncode\n```\n/forkwatch run full\n"
    )

    assert find_commands(comment) == [RUN, Command(verb=CommandVerb.RUN, name="full")]


def test_no_more_than_a_handful_is_taken() -> None:
    assert find_commands("/forkwatch run\n" * 50) == [RUN] * COMMANDS_MAX


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/forkwatch", "There are: `/forkwatch run [SUITE]`"),
        ("/forkwatch rnu", "did you mean `/forkwatch run [SUITE]`?"),
        ("/forkwatch dance", "There are: "),
        ("/forkwatch run a b", "`/forkwatch run [SUITE]`: one name at most."),
        ("/forkwatch run --help", "no name of a suite"),
        ("/forkwatch compare", "it takes 1 or 2 arguments"),
        ("/forkwatch bisect good", "it takes 2 or 3 arguments"),
        ("/forkwatch compare --output=/etc/passwd", "no commit, branch or tag"),
        ("/forkwatch compare a..b", "no commit, branch or tag"),
        ("/forkwatch compare main;reboot", "no commit, branch or tag"),
        ("/forkwatch compare $(reboot)", "no commit, branch or tag"),
        ("/forkwatch compare @{u}", "no commit, branch or tag"),
        ("/forkwatch bisect a b ../c", "no name of a workload"),
        ("/forkwatch accept", "say why"),
    ],
)
def test_a_wrong_order_is_told_what_would_be_right(line: str, told: str) -> None:
    (found,) = find_commands(line)

    assert isinstance(found, Misunderstood)
    assert told in found.answer


def test_an_answer_holds_nothing_of_what_was_written() -> None:
    (found,) = find_commands("/forkwatch @everyone <img src=x> [a](https://evil.example)")

    assert isinstance(found, Misunderstood)
    assert "everyone" not in found.answer
    assert "evil" not in found.answer


def test_every_verb_says_how_it_is_used() -> None:
    assert set(USAGE) == set(CommandVerb)
    for verb, usage in USAGE.items():
        assert usage.startswith(f"/forkwatch {verb.value}")


@given(st.text(max_size=300))
def test_whatever_is_written_is_understood_or_answered(text: str) -> None:
    for found in find_commands(f"/forkwatch {text}"):
        if isinstance(found, Command):
            words = [*found.revisions, found.name or "x"]
            assert all(word and word[0] not in "-./@" and " " not in word for word in words)
            assert "\n" not in found.reason
        else:
            assert found.answer
