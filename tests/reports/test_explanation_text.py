from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from reports.explanation import (
    callers_table,
    count,
    explanation_sentence,
    instructions_table,
    own_table,
    signed,
)
from reports.explanation_text import explanation_markdown, explanation_renderable
from results.explanation import (
    Explanation,
    FunctionCost,
    Instructions,
    Profile,
    WorkloadExplanation,
)

WITHIN = 0.005


def cost(name: str, baseline: float, candidate: float, *, more: float = 0.0) -> FunctionCost:
    """A function whose callees take `more` on both sides."""
    return FunctionCost(
        function=name,
        baseline=baseline,
        candidate=candidate,
        baseline_with_callees=baseline + more,
        candidate_with_callees=candidate + more,
    )


def scan(*own: FunctionCost, candidate: float = 1_123_000.0, **chosen) -> WorkloadExplanation:
    facts = {"baseline": 1_000_000.0, "candidate": candidate, "repeats_within": WITHIN}
    found = Instructions(operations=2, own=own, with_callees=own, **{**facts, **chosen})
    return WorkloadExplanation(workload="scan", instructions=found)


CHECK = cost("check_copy", 0.0, 100_000.0)
LOOP = cost("row_search_mvcc", 400_000.0, 420_000.0, more=50_000.0)
PROFILE = Profile(
    file="explained/01-scan.svg",
    event="cpu-clock",
    seconds=10,
    baseline_samples=1990,
    candidate_samples=1985,
    baseline_cpu_us_per_op=10.5,
    candidate_cpu_us_per_op=12.25,
)


def test_a_sentence_names_what_makes_up_the_difference():
    assert explanation_sentence(scan(CHECK, LOOP)) == (
        "scan needs 12.3 % more instructions per operation (1,000,000 to 1,123,000), most of them "
        "in check_copy (+100,000) and row_search_mvcc (+20,000)"
    )
    fewer = scan(cost("hash", 200_000.0, 140_000.0), candidate=900_000.0)
    assert explanation_sentence(fewer) == (
        "scan needs 10.0 % fewer instructions per operation (1,000,000 to 900,000), most of them "
        "in hash (-60,000)"
    )
    some = scan(cost("hash", 0.0, 20_000.0))
    assert explanation_sentence(some).endswith(", a part of them in hash (+20,000)")
    small = scan(cost("hash", 0.0, 5_000.0))
    assert explanation_sentence(small).endswith(", spread over many functions")


def test_as_many_instructions_point_elsewhere_and_writing_says_little():
    assert "as many instructions per operation as before" in explanation_sentence(
        scan(candidate=1_004_000.0)
    )
    assert "says little" in explanation_sentence(scan(CHECK, repeats_within=None))


def test_what_was_not_counted_says_why():
    gap = WorkloadExplanation(workload="scan", gaps=("no profile: perf died", "no room"))

    assert explanation_sentence(gap) == "scan: no profile: perf died; no room"
    assert explanation_sentence(WorkloadExplanation(workload="scan")) == (
        "scan: instructions were not counted"
    )


def test_tables_show_counts_changes_and_how_well_they_repeat():
    found = scan(CHECK, LOOP)
    writes = scan(CHECK, repeats_within=None).model_copy(update={"workload": "update-index"})
    both = Explanation(workloads=(found, writes, WorkloadExplanation(workload="insert")))

    lines = instructions_table(both).lines
    assert [line.cells for line in lines] == [
        ("scan", "1.123", "1,000,000", "1,123,000", "within 0.5 %"),
        ("update-index", "1.123", "1,000,000", "1,123,000", "not well"),
    ]
    assert [line.tone for line in lines] == ["slower", ""]
    assert own_table(found).lines[0].cells == ("check_copy", "+100,000", "0.0", "100,000")
    assert callers_table(found).lines[1].cells == (
        "row_search_mvcc",
        "+20,000",
        "450,000",
        "470,000",
    )
    assert len(own_table(found, most=1).lines) == 1


@pytest.mark.parametrize(
    ("value", "shown", "with_sign"),
    [(99.94, "99.9", "+99.9"), (100.0, "100", "+100"), (-1234.5, "-1,234", "-1,234")],
)
def test_small_counts_keep_a_decimal(value, shown, with_sign):
    assert (count(value), signed(value)) == (shown, with_sign)


def test_a_long_signature_is_cut():
    name = "std::vector<" + "x" * 150 + ">"

    assert own_table(scan(cost(name, 0, 1))).lines[0].cells[0].endswith("x…")


def shown(explanation: Explanation, folder: Path | None = None) -> str:
    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        console.print(explanation_renderable(explanation, folder=folder))
    return captured.get()


def test_a_report_has_the_graph_its_cost_and_every_reason_once():
    pair = Explanation(
        workloads=(
            scan(CHECK, LOOP).model_copy(update={"profile": PROFILE}),
            scan(candidate=1_000_100.0).model_copy(update={"gaps": ("no profile: no room",)}),
        ),
        missing=("no counters of the processor: this is a virtual machine",),
    )

    text = explanation_markdown(pair, addresses={PROFILE.file: "https://forkwatch.example/1.svg"})
    plain = explanation_markdown(pair)
    terminal = shown(pair, Path("/jobs/own-1"))

    assert "[Flame graph](https://forkwatch.example/1.svg); 10.50 to 12.25 CPU micro" in text
    assert "Flame graph: `explained/01-scan.svg`; 10.50" in plain
    assert "flame graph /jobs/own-1/explained/01-scan.svg" in terminal
    for form in (text, plain, terminal):
        assert form.count("no profile: no room") == 1
        assert form.count("this is a virtual machine") == 1
        assert "1990 and 1985 samples of cpu-clock in 10 s each" in form
        # Only where there is something to explain.
        assert form.count("check") > 1
    assert text.count("<details>") == text.count("</details>") == 1
    assert explanation_markdown(Explanation()) == "Nothing was explained."


def test_names_from_a_hostile_binary_stay_text():
    evil = "</summary><script>@everyone [x](javascript:1) | \x1b]0;title\x07 #1"
    pair = Explanation(workloads=(scan(cost(evil, 0.0, 123_000.0)),), missing=("no profiles: <b>",))

    text = explanation_markdown(pair)

    assert "<script>" not in text
    assert "@everyone" not in text
    # As an independent reader of what forges speak has it.
    assert "<a " not in MarkdownIt("commonmark").enable("table").render(text)
    assert "<b>" not in text
    assert "\x1b" not in text + shown(pair)
    rows = [line for line in text.splitlines() if "script" in line and line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {5}
