"""Issues: what is slower since when, what to do about it, and how it ended."""

from __future__ import annotations

import math
from typing import Any

from markdown_it import MarkdownIt

from reports.fitting import BODY_BYTES_MAX
from reports.issue import (
    TITLE_LENGTH_MAX,
    accepted_markdown,
    fast_again_markdown,
    issue_markdown,
    issue_title,
    slower_again_markdown,
)
from reports.rows import rows_of_pair
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.verdicts import a_verdict

SLOWER = a_verdict(-9.1, low=-10.0, high=-8.2)
SAME = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
PAGE = "https://perf.example/alerts/7"
HOSTILE = "</details>\n# Owned @all [x](https://evil.example) | `a` <script>x</script>"


def a_reader() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def an_issue(*, parents: tuple[str, ...] = (), count: int = 0, **changes: Any) -> str:
    verdicts = {"scan": SLOWER, "point-query": SAME}
    verdicts |= {f"workload-{number:03}-{'x' * 150}": SLOWER for number in range(count)}
    story = a_run().against(sha("a"))
    for name in verdicts:
        story = story.with_samples(name, [[100.0]] * 2, side=SideName.BASELINE)
        story = story.with_samples(name, [[91.0]] * 2)
    document = story.build()
    bad = document.candidate.commit.model_copy(update={"parents": parents, **changes})
    side = document.candidate.model_copy(update={"commit": bad})
    document = document.model_copy(update={"candidate": side})
    return issue_markdown(
        rows_of_pair(document, verdicts), document=document, good=sha("a"), page=PAGE
    )


def test_an_issue_has_everything_to_act_on() -> None:
    text = an_issue()

    assert text.startswith("**scan is 9.1 % slower (95 %: 8.2 to 10.0) at bbbbbbbb; ")
    for part in (
        "| scan | ▼ 0.909 | 0.900 to 0.918 | regression |",
        "- Culprit: one of (`aaaaaaaa`, `bbbbbbbb`], without the first and with the last commit\n",
        "- Base `aaaaaaaa`, candidate `bbbbbbbb`",
        "- Host: bench-1 (class small)",
        "forkwatch compare aaaaaaaaaaaa bbbbbbbbbbbb --suite commit\n",
        "This alert closes by itself when a later commit is as fast as before again.",
        "`/forkwatch accept REASON`",
        f"[Page of this alert]({PAGE})",
        "<summary>Cost per operation</summary>",
    ):
        assert part in text


def test_a_single_commit_is_the_culprit() -> None:
    text = an_issue(parents=(sha("a"),))

    assert f"- Culprit: `{sha('b')}` Check the record format in row\\_search\\_mvcc by Ada" in text


def test_an_issue_fits_and_says_what_it_lacks() -> None:
    text = an_issue(count=200)

    assert len(text.encode()) <= BODY_BYTES_MAX
    assert "more workloads do not fit here." in text
    assert "Cut here, because the text would be too long" in text


def test_an_issue_is_not_hijacked_by_its_commit() -> None:
    html = a_reader().render(an_issue(subject=HOSTILE, author=HOSTILE, parents=(sha("a"),)))

    assert "<script" not in html
    assert "<h1>" not in html
    assert "@all" not in html
    assert "evil.example</a>" not in html


def test_a_title_names_the_largest_losses() -> None:
    effects = {f"w{number}": math.log1p(-(6 + number) / 100) for number in range(5)}

    title = issue_title(effects, fork="demo", bad=sha("b"))

    assert title == "demo: w4 10.0 %, w3 9.0 %, w2 8.0 % and 2 more slower at bbbbbbbb"


def test_a_title_is_one_short_line() -> None:
    long = {f"{name}\n{'x' * 300}": -0.1 for name in "abc"}
    title = issue_title(long, fork="demo\u202e", bad=sha("b"))

    assert "\n" not in title
    assert "\u202e" not in title
    assert len(title) <= TITLE_LENGTH_MAX
    assert title.endswith("9.5 % slower at bbbbbbbb")
    assert len(issue_title({}, fork="f" * 300, bad=sha("b"))) == TITLE_LENGTH_MAX


def test_how_it_ended_is_said_in_a_sentence() -> None:
    story = a_run().on(sha("c"), subject="Undo *it*").with_samples("scan", [[1.0]])
    commit = story.build().candidate.commit

    fast = fast_again_markdown({"scan": math.log(1.1)}, at=commit, page=PAGE)
    assert fast == (
        "As fast as before again since `cccccccc` Undo \\*it\\* (scan 10.0 % faster than while "
        "this was open). This alert is closed; it opens again if the loss comes back. "
        f"[Page of this alert]({PAGE})"
    )
    slow = slower_again_markdown({"scan": math.log(0.9)}, at=commit)
    assert slow == (
        "Slower again since `cccccccc` Undo \\*it\\*: scan 10.0 %. This alert is open again."
    )


def test_an_acceptance_names_who_and_why_and_obeys_neither() -> None:
    text = accepted_markdown(by="maintainer", reason=HOSTILE)

    assert text.startswith("Accepted as intended by maintainer: &lt;/details&gt;")
    html = a_reader().render(text)
    assert html.count("<p>") == 1
    assert "<a " not in html
    assert "@all" not in html
