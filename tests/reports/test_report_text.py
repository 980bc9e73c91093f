from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from reports.alert import alert_markdown, alert_title
from reports.markdown import efficiency_markdown, report_markdown, throughput_markdown
from reports.markup import markdown, markdown_block, one_line
from reports.rows import rows_against, rows_of_pair
from reports.terminal import report_renderable, throughput_renderable
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from reports.rows import Row
    from tests.fakes.run_documents import RunStory

VERDICTS = {
    "scan": a_verdict(-9.1, low=-10.0, high=-8.2),
    "point-query": a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6),
}
ZERO_WIDTH_SPACE = "\u200b"


def a_reader() -> MarkdownIt:
    """Return an independent reader of the Markdown that forges speak."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def a_pair() -> RunStory:
    return (
        a_run()
        .against(sha("a"))
        .with_samples("scan", [[2.0, 2.02], [2.0, 2.02], [2.0, 2.02]], side=SideName.BASELINE)
        .with_samples("scan", [[1.82, 1.84], [1.82, 1.84], [1.82, 1.84]])
        .with_samples("point-query", [[63000.0], [63000.0]], side=SideName.BASELINE)
        .with_samples("point-query", [[62875.0], [62875.0]])
    )


def rows() -> tuple[Row, ...]:
    return rows_of_pair(a_pair().build(), VERDICTS)


def test_the_throughput_table_in_markdown() -> None:
    assert throughput_markdown(rows()) == (
        "| workload | ratio | 95 % interval | verdict | could show | baseline o/s "
        "| candidate o/s | group |\n"
        "| :--- | ---: | ---: | :--- | ---: | ---: | ---: | :--- |\n"
        "| scan | ▼ 0.909 | 0.900 to 0.918 | regression | 2.0 % | 2.01 | 1.83 | range-1 |\n"
        "| point-query | 0.999 | 0.988 to 1.009 | no-change | 2.0 % | 63,000 | 62,875 | point-1 |\n"
        "\n"
        "▼ 0.95 or less, ▲ 1.05 or more; below 1 is slower."
    )


def test_the_cost_tables_in_markdown_follow_the_ratio_rule() -> None:
    assert efficiency_markdown(rows()) == (
        "**Cost per operation, absolute**\n"
        "\n"
        "| workload | version | cpu/o | cs/o | r/o | rKB/o | wKB/o | o/s | server us/o |\n"
        "| :--- | :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| scan | baseline | 25.000 | 2.500 | 0 | 0 | 0 | 2.01 | 12.00 |\n"
        "| scan | candidate | 27.778 | 2.500 | 0 | 0 | 0.250 | 1.83 | 12.00 |\n"
        "| point-query | baseline | 0.000794 | 2.500 | 0 | 0 | 0 | 63,000 | 12.00 |\n"
        "| point-query | candidate | 0.000795 | 2.500 | 0 | 0 | 0.250 | 62,875 | 12.00 |\n"
        "\n"
        "**Cost per operation, relative**\n"
        "\n"
        "| workload | cpu/o | cs/o | r/o | rKB/o | wKB/o | o/s | server us/o |\n"
        "| :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| scan | 1.11 | 1.00 | 1 | 1 | inf | 0.91 | 1.00 |\n"
        "| point-query | 1.00 | 1.00 | 1 | 1 | inf | 1.00 | 1.00 |"
    )


def test_a_first_run_has_a_table_without_ratios() -> None:
    table = throughput_markdown(rows_against(a_run().with_samples("scan", [[2.0]]).build(), {}, {}))

    none = "\N{EN DASH}"
    assert f"| scan | {none} | {none} | not judged | {none} | {none} | 2.00 | range-1 |" in table


def test_no_rows_are_said_in_words() -> None:
    assert throughput_markdown(()).startswith("Nothing was measured.")


def test_a_report_begins_with_its_sentence_and_is_well_formed_html_when_rendered() -> None:
    text = report_markdown(rows(), sentence="scan is 9.1 % slower")

    assert text.startswith("**scan is 9.1 % slower**\n")
    html = a_reader().render(text)
    assert html.count("<table>") == 3
    assert "<details>" in html


def test_the_terminal_shows_the_same_cells_and_marks_without_colour() -> None:
    console = Console(width=120, color_system=None, record=True, file=StringIO())

    console.print(throughput_renderable(rows()))

    lines = [line.split() for line in console.export_text().splitlines()]
    assert lines[2][:3] == ["scan", "▼", "0.909"]
    assert lines[2][-3:] == ["2.01", "1.83", "range-1"]
    assert "no-change" in lines[3]


def test_the_terminal_colours_slower_red_faster_green_and_the_rest_grey() -> None:
    verdicts = {
        "scan": a_verdict(-9, low=-10, high=-8),
        "point-query": a_verdict(8, low=7, high=9),
    }
    console = Console(
        width=120, color_system="standard", force_terminal=True, record=True, file=StringIO()
    )

    console.print(throughput_renderable(rows_of_pair(a_pair().build(), verdicts)))

    text = console.export_text(styles=True)
    assert "\x1b[31m▼ 0.910" in text
    assert "\x1b[32m▲ 1.080" in text


def test_rich_markup_in_names_is_printed_and_not_obeyed() -> None:
    story = a_run().with_samples("[red]scan[/red]", [[2.0]])
    table = rows_against(story.build(), {}, {})
    console = Console(width=160, color_system=None, record=True, file=StringIO())

    console.print(report_renderable(table, sentence="[bold]x[/] [link=http://e]y[/link]"))

    text = console.export_text()
    assert "[red]scan[/red]" in text
    assert "[bold]x[/] [link=http://e]y[/link]" in text


def test_escape_sequences_never_reach_the_terminal() -> None:
    story = a_run().with_samples("scan\x1b[2J\x07", [[2.0]])
    console = Console(width=160, color_system=None, record=True, file=StringIO())

    console.print(report_renderable(rows_against(story.build(), {}, {}), sentence="a\x1b]0;b\x07"))

    text = console.export_text()
    assert "\x1b" not in text
    assert "\x07" not in text


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a | b | c",
    "`code` ``more`` `",
    "[click](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "https://evil.example and www.evil.example",
    "line one\nline two\r\n# heading\n| a | b |\n|---|---|",
    "*bold* _it_ ~~gone~~ $x$ \\",
    "<!-- comment",
    "</details>",
    "&lt;b&gt; &amp;",
    "# heading",
    "- item",
    "1. item",
    "> quote",
    "=====",
    "---",
    "<https://evil.example>",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_untrusted_text_renders_as_the_same_words_and_nothing_else(attack: str) -> None:
    # An independent CommonMark reader is the judge: one paragraph, holding one text.
    tokens = a_reader().parse(markdown(attack))

    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    kinds = {child.type for child in tokens[1].children}
    assert kinds <= {"text", "text_special"}
    shown = "".join(child.content for child in tokens[1].children)
    assert shown.replace(ZERO_WIDTH_SPACE, "") == one_line(attack)


@pytest.mark.parametrize("attack", ATTACKS)
def test_untrusted_text_cannot_leave_its_cell(attack: str) -> None:
    table = f"| a | b |\n| --- | --- |\n| {markdown(attack)} | end |"

    html = a_reader().render(table)

    assert html.count("<td>") == 2
    assert "<td>end</td>" in html
    assert "<a " not in html
    assert "<script" not in html
    assert "<img" not in html


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        ("@everyone", f"@{ZERO_WIDTH_SPACE}everyone"),
        ("fixes #12", f"fixes #{ZERO_WIDTH_SPACE}12"),
        ("see GH-12", f"see GH-{ZERO_WIDTH_SPACE}12"),
        ("https://evil.example", f"https://{ZERO_WIDTH_SPACE}evil.example"),
        ("www.evil.example", f"www{ZERO_WIDTH_SPACE}.evil.example"),
    ],
)
def test_mentions_and_references_are_broken(text: str, inert: str) -> None:
    assert markdown(text) == inert


def test_invisible_and_reordering_characters_are_dropped() -> None:
    assert one_line("a\u202eb\u2066c\u200bd\x00e\x1bf\u2028g") == "abcdef g"


def test_long_text_is_cut() -> None:
    assert len(one_line("x" * 1000)) == 200


def test_a_log_cannot_close_its_block() -> None:
    text = "before\n```\n</details> @all\n````\nafter\x1b[31m"

    (token,) = a_reader().parse(markdown_block(text))

    assert token.type == "fence"
    assert token.content == "before\n```\n</details> @all\n````\nafter[31m\n"


def test_a_long_log_keeps_its_end() -> None:
    block = markdown_block("\n".join(str(number) for number in range(100)), lines_max=3)

    assert block == "```text\n97\n98\n99\n```"


def an_alert(**changes: Any) -> str:
    document = a_pair().build()
    bad = document.candidate.commit.model_copy(update=changes)
    side = document.candidate.model_copy(update={"commit": bad})
    document = document.model_copy(update={"candidate": side})
    page = "http://127.0.0.1:8000/alerts/7"
    return alert_markdown(rows(), document=document, good=sha("a"), page=page)


def test_an_alert_has_everything_to_act_on() -> None:
    text = an_alert()

    assert text.startswith("# demo/main: scan 9.1 % slower at bbbbbbbb\n")
    for part in (
        "scan is 9.1 % slower (95 %: 8.2 to 10.0) at bbbbbbbb; point-query unchanged within 1.2 %",
        "| scan | ▼ 0.909 | 0.900 to 0.918 | regression |",
        "- Culprit: one of (`aaaaaaaa`, `bbbbbbbb`], without the first and with the last commit\n",
        "candidate `bbbbbbbb` Check the record format in row\\_search\\_mvcc by Ada Lovelace\n",
        "- Host: bench-1 (class small), Xeon 2.3 GHz, 2 CPUs; ",
        "placement shared-core, server on CPU 1, client on CPU 1\n",
        "3 server starts per side, in alternation on one host\n",
        "Smallest loss that this run would have shown, four times out of five: 2.0 % on every",
        "forkwatch compare aaaaaaaaaaaa bbbbbbbbbbbb --suite commit\n",
        "[Page of this alert](http://127.0.0.1:8000/alerts/7)",
    ):
        assert part in text


def test_an_alert_is_not_hijacked_by_its_commit() -> None:
    text = an_alert(subject="</details><script>x</script>\n# Owned @all", author="`|<b>")

    html = a_reader().render(text)
    assert "<script" not in html
    assert "<b>" not in html
    assert html.count("<h1>") == 1
    assert "@all" not in html


def test_the_title_counts_what_it_does_not_name() -> None:
    many = {f"w{number}": a_verdict(-6 - number, low=-20, high=-5.5) for number in range(5)}
    story = a_run().against(sha("a"))
    for name in many:
        story = story.with_samples(name, [[1.0]])
    title = alert_title(rows_of_pair(story.build(), many), fork="demo", branch="main", bad=sha("b"))

    assert title == "demo/main: w4 10.0 %, w3 9.0 %, w2 8.0 % and 2 more slower at bbbbbbbb"
