"""Commits in texts for a forge: linked where they stand in backticks, and nowhere else."""

from __future__ import annotations

import pytest

from reports.commit_links import with_commit_links
from reports.markup import markdown, markdown_block

COMMITS = "https://github.example/acme/fork/commit"
WHOLE = "3f2c1ab0" * 5


def linked(text: str, *, known: tuple[str, ...] = (), bytes_max: int = 65_000) -> str:
    return with_commit_links(text, commits=COMMITS, known=known, bytes_max=bytes_max)


def test_a_commit_in_backticks_becomes_a_link_that_reads_the_same() -> None:
    assert linked("- Base `aaaaaaaa`, candidate `3f2c1ab0` Tidy") == (
        f"- Base [`aaaaaaaa`]({COMMITS}/aaaaaaaa), candidate [`3f2c1ab0`]({COMMITS}/3f2c1ab0) Tidy"
    )
    assert linked(f"`{WHOLE}`") == f"[`{WHOLE}`]({COMMITS}/{WHOLE})"


def test_both_ends_of_a_range_are_links() -> None:
    assert linked("one of (`aaaaaaaa`, `bbbbbbbb`], with") == (
        f"one of ([`aaaaaaaa`]({COMMITS}/aaaaaaaa), [`bbbbbbbb`]({COMMITS}/bbbbbbbb)], with"
    )


def test_a_whole_hash_that_is_known_is_the_address_of_a_short_one() -> None:
    assert linked("`3f2c1ab0` and `aaaaaaaa`", known=(WHOLE,)) == (
        f"[`3f2c1ab0`]({COMMITS}/{WHOLE}) and [`aaaaaaaa`]({COMMITS}/aaaaaaaa)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "`/forkwatch run`",
        "`scan`",
        "3f2c1ab0",
        "`3F2C1AB0`",
        "`3f2c1ab`",
        "``3f2c1ab0``",
        "[`3f2c1ab0`](https://elsewhere.example)",
        "```\nforkwatch compare `aaaaaaaa` `bbbbbbbb`\n```",
        markdown_block("`3f2c1ab0`\n```\n`3f2c1ab0`"),
        markdown("`3f2c1ab0`"),
    ],
)
def test_nothing_else_is_touched(text: str) -> None:
    assert linked(text) == text


def test_what_follows_a_block_is_linked_again() -> None:
    text = linked("````text\n```\n`aaaaaaaa`\n````\n`bbbbbbbb`")

    assert text == f"````text\n```\n`aaaaaaaa`\n````\n[`bbbbbbbb`]({COMMITS}/bbbbbbbb)"


def test_a_text_grows_no_longer_than_it_may() -> None:
    text = "`aaaaaaaa` `bbbbbbbb` `cccccccc`"
    one = f"[`aaaaaaaa`]({COMMITS}/aaaaaaaa) `bbbbbbbb` `cccccccc`"

    assert linked(text, bytes_max=len(one.encode()) + 3) == one
    assert linked(text, bytes_max=10) == text
