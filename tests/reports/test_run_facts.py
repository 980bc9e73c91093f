from __future__ import annotations

from io import StringIO

from rich.console import Console

from reports.exact_text import exact_markdown, exact_sentence
from reports.load_and_start import load_and_start_table
from reports.run_facts import facts_markdown, facts_renderables
from results.exact import CaseDifference, ComparedCase, ExactCounters
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.server_facts import MB, a_life, a_load, exact_counters, with_lives, with_loads

NONE = "\N{EN DASH}"


def a_pair():
    story = a_run().against(sha("a"))
    for side in SideName:
        story = story.with_samples("scan", [[2.0], [2.0]], side=side)
    return with_lives(
        story.build(),
        (
            a_life(SideName.BASELINE, startup_s=0.4),
            a_life(startup_s=0.6),
            # Another data directory, after another workload.
            a_life(leg=1, startup_s=99.0),
        ),
        (a_life(SideName.BASELINE, startup_s=0.6), a_life(startup_s=0.9)),
    )


def cells(document) -> dict[str, tuple[str, ...]]:
    table = load_and_start_table(document)
    assert all(len(line.cells) == len(table.columns) for line in table.lines)
    return {line.cells[0]: line.cells[1:] for line in table.lines}


def shown(document) -> str:
    console = Console(width=120, color_system=None, record=True, file=StringIO())
    for part in facts_renderables(document):
        console.print(part)
    return console.export_text()


def test_servers_are_told_by_their_median_on_the_first_data_directory() -> None:
    assert cells(a_pair()) == {
        "start-up, s": ("0.50", "0.75", "1.50"),
        "shutdown, s": ("0.25", "0.25", "1.00"),
        "peak memory, MB": ("300", "300", "1.00"),
        "data directory, MB": ("150", "150", "1.00"),
    }


def test_a_load_that_is_shared_or_old_stands_in_brackets_and_has_no_ratio() -> None:
    shared = with_loads(a_pair(), baseline=a_load(), candidate=a_load(own=False))
    own = with_loads(a_pair(), baseline=a_load(), candidate=a_load(rows_s=4.0, indexes_s=0.25))

    assert cells(shared)["rows loaded per second"] == ("1,000", "(1,000)", NONE)
    assert cells(own)["rows loaded per second"] == ("1,000", "500", "0.50")
    assert cells(own)["secondary indexes, s"] == ("0.50", "0.25", "0.50")


def test_a_side_without_numbers_says_so() -> None:
    half = with_loads(a_pair(), candidate=a_load(indexes_s=None))

    assert cells(half)["rows loaded per second"] == (NONE, "1,000", NONE)
    assert "secondary indexes, s" not in cells(half)


def test_a_single_run_has_one_column_and_no_ratio() -> None:
    document = with_lives(a_run().with_samples("scan", [[2.0]]).build(), (a_life(),))

    table = load_and_start_table(document)

    assert [column.heading for column in table.columns] == ["what", "candidate"]
    assert cells(document)["start-up, s"] == ("0.50",)


def test_a_document_that_tells_nothing_shows_nothing() -> None:
    document = a_run().with_samples("scan", [[2.0]]).build()

    assert facts_renderables(document) == []
    assert facts_markdown(document) == ""


def test_the_terminal_says_yes_with_counters_and_both_plans() -> None:
    text = shown(a_pair().model_copy(update={"exact": exact_counters()}))

    assert "Exact counters: yes, 1 of 2 cases differ: q19-index-condition" in text
    assert "  q19-index-condition: handler_read_next was 36 and is 2520" in text
    assert "    1 | SIMPLE | lineitem | ref | i_l_partkey | Using index condition" in text
    assert "candidate plan" in text
    assert text.index("Exact counters") < text.index("Load and start")
    assert "Nothing here was judged" in text


def test_no_difference_is_said_as_such_with_how_much_was_compared() -> None:
    _, alike = exact_counters().cases

    assert exact_sentence(ExactCounters(cases=(alike,))) == (
        "Exact counters: no difference in 1 counters of 1 cases"
    )
    assert exact_sentence(ExactCounters(gaps=("candidate: died",))) == (
        "Exact counters: not known, no case was answered on both sides"
    )


def test_gaps_are_told_on_both_writers() -> None:
    exact = exact_counters(gaps=("candidate: the server died",))

    assert "- not compared: candidate: the server died" in exact_markdown(exact)
    assert "not compared: candidate: the server died" in shown(
        a_pair().model_copy(update={"exact": exact})
    )


def test_many_counters_are_counted_and_not_listed() -> None:
    many = tuple(
        CaseDifference(what=f"handler_{number}", baseline="1", candidate="2")
        for number in range(20)
    )
    exact = ExactCounters(cases=(ComparedCase(name="q", statement="", differences=many),))

    assert "- q: 8 more counters differ" in exact_markdown(exact)
    assert "handler\\_11 was" in exact_markdown(exact)
    assert "handler\\_12 was" not in exact_markdown(exact)


def test_what_a_server_says_is_inert() -> None:
    attack = CaseDifference(
        what="answer", baseline="</details><script>x</script> @all", candidate="\x1b[2J[red]"
    )
    plan = CaseDifference(what="plan", baseline="```\n</details>", candidate="[link=http://e]")
    case = ComparedCase(name="[bold]q", statement="", differences=(attack, plan))
    exact = ExactCounters(cases=(case,))

    text = exact_markdown(exact)
    terminal = shown(a_pair().model_copy(update={"exact": exact}))

    assert "<script" not in text
    assert "@all" not in text
    assert "````text\n```\n</details>\n````" in text
    assert "\x1b" not in terminal
    assert "[bold]q" in terminal
    assert "[link=http://e]" in terminal


def test_markdown_has_the_same_tables() -> None:
    text = facts_markdown(a_pair().model_copy(update={"exact": exact_counters()}))

    assert "**Exact counters: yes, 1 of 2 cases differ: q19-index-condition**" in text
    assert "<details><summary>Plans of q19-index-condition</summary>" in text
    assert "| start-up, s | 0.50 | 0.75 | 1.50 |" in text


def test_a_ratio_of_nothing_is_not_a_division_by_zero() -> None:
    lives = (a_life(SideName.BASELINE, shutdown_s=0.0), a_life(shutdown_s=0.5))
    document = with_lives(a_pair(), lives, ())

    assert cells(document)["shutdown, s"] == ("0.00", "0.50", "inf")
    assert cells(document)["data directory, MB"] == ("150", "150", "1.00")
    assert lives[0].disk_bytes == 150 * MB
