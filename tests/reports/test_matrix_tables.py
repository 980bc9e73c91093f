from __future__ import annotations

import re
from io import StringIO

from rich.console import Console

from reports.matrix import (
    Cell,
    Matrix,
    absolute_table,
    legend_lines,
    matrix_markdown,
    matrix_renderable,
    relative_table,
    summaries,
    summary_table,
    throughput_table,
)
from reports.numbers import NOT_KNOWN
from reports.rows import level_of, rows_of_pair
from results.document import RunDocument
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha

BASE = {"update-index": 1000.0, "scan": 2.0, "point-query": 60_000.0, "points-one": 500.0}


def a_pair(**ratios: float) -> RunDocument:
    """Two starts of one slice a side; workloads by name with `_` for `-`."""
    story = a_run().on(sha("c")).against(sha("c"))
    for key, ratio in ratios.items():
        workload = key.replace("_", "-")
        level = BASE[workload]
        story = story.with_samples(workload, [[level]] * 2, side=SideName.BASELINE)
        story = story.with_samples(workload, [[level * ratio]] * 2)
    return story.build()


def a_matrix() -> Matrix:
    lto = a_pair(update_index=0.954, scan=0.79, point_query=1.0)
    ps0 = a_pair(update_index=1.046, scan=1.0, point_query=0.96)
    return Matrix(
        base="rel/default",
        cells=(
            Cell(
                name="rel_lto/default",
                rows=rows_of_pair(lto, {}),
                significant=frozenset({"scan"}),
            ),
            Cell(name="rel_native/default", gap="c does not build (compile: a | b)"),
            Cell(name="rel/ps0", rows=rows_of_pair(ps0, {}), significant=frozenset()),
        ),
        base_levels={
            name: level for name in BASE if (level := level_of(lto, name, SideName.BASELINE))
        },
    )


def test_the_columns_are_relative_to_the_base_and_a_gap_keeps_its_number():
    lines = legend_lines(a_matrix())

    assert lines == [
        "Relative to: rel/default",
        "col-1 : rel_lto/default",
        "col-2 : rel_native/default (no numbers: c does not build (compile: a | b))",
        "col-3 : rel/ps0",
    ]


def test_ratios_have_two_decimals_and_are_marked_as_they_are_printed():
    table = throughput_table(a_matrix())

    assert [column.heading for column in table.columns] == [
        "workload",
        "col-1",
        "col-2",
        "col-3",
        "group",
    ]
    # By group as the field sorts; .954 prints as .95 and 1.046 as 1.05, so both are marked.
    assert [line.cells for line in table.lines] == [
        ("point-query", "~ 1.00", NOT_KNOWN, "~ 0.96", "point-1"),
        ("scan", "▼ 0.79", NOT_KNOWN, "~ 1.00", "range-1"),
        ("update-index", "~ ▼ 0.95", NOT_KNOWN, "~ ▲ 1.05", "write"),
    ]


def test_a_group_is_summed_up_over_what_has_a_ratio():
    lto = a_pair(point_query=0.9, scan=0.8)
    matrix = Matrix(
        base="rel/default",
        cells=(Cell(name="rel_lto/default", rows=rows_of_pair(lto, {})),),
        base_levels={},
    )
    points = [0.9, 1.0, 1.4]
    rows = [row for ratio in points for row in rows_of_pair(a_pair(point_query=ratio), {})]
    three = Matrix(base="b", cells=(Cell(name="c", rows=rows),), base_levels={})

    (only,) = summaries(three)
    assert (only.workloads, only.group, only.column) == (3, "point-1", "col-1")
    assert (only.lowest, only.highest, only.median) == (0.9, 1.4, 1.0)
    assert round(only.average, 9) == 1.1
    assert [line.cells for line in summary_table(three).lines] == [
        ("point-1", "col-1", "3", "▼ 0.90", "▲ 1.40", "▲ 1.10", "1.00")
    ]
    assert [summary.group for summary in summaries(matrix)] == ["point-1", "range-1"]


def test_the_costs_name_the_base_and_every_measured_cell():
    table = absolute_table(a_matrix())

    assert [column.heading for column in table.columns][:3] == ["workload", "cell", "cpu/o"]
    assert [line.cells[:2] for line in table.lines][:3] == [
        ("point-query", "base"),
        ("point-query", "col-1"),
        ("point-query", "col-3"),
    ]
    o_s = [column.heading for column in table.columns].index("o/s")
    scan = {line.cells[1]: line.cells[o_s] for line in table.lines if line.cells[0] == "scan"}
    assert scan == {"base": "2.00", "col-1": "1.58", "col-3": "2.00"}


def test_the_relative_costs_are_those_of_the_same_pair():
    table = relative_table(a_matrix())

    headings = [column.heading for column in table.columns]
    scan = next(line for line in table.lines if line.cells[:2] == ("scan", "col-1"))
    # Half of the machine for fewer operations; no device reads on either side.
    assert scan.cells[headings.index("cpu/o")] == "1.25"
    assert scan.cells[headings.index("r/o")] == "1"
    assert scan.cells[headings.index("wKB/o")] == "inf"
    assert scan.cells[headings.index("o/s")] == "0.79"
    assert {line.cells[1] for line in table.lines} == {"col-1", "col-3"}


def test_the_markdown_has_every_table_and_lets_no_gap_break_out_of_its_line():
    text = matrix_markdown(a_matrix())

    assert "Relative to: rel/default" in text
    assert "(compile: a \\| b)" in text
    assert f"| scan | ▼ 0.79 | {NOT_KNOWN} | \\~ 1.00 | range-1 |" in text
    for title in ("Relative throughput by group", "Cost per operation, absolute", "relative"):
        assert f"{title}**" in text


def test_the_terminal_is_red_and_green_by_the_bounds_of_the_field():
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=120, color_system="standard")
    console.print(matrix_renderable(a_matrix()))
    shown = written.getvalue()

    assert re.search(r"\x1b\[31m *▼ 0.79", shown)
    assert re.search(r"\x1b\[32m *~ ▲ 1.05", shown)
    assert re.search(r"\x1b\[90m *~ 0.96", shown)
    assert not re.search(r"\x1b\[3[12]m *(write|3)", shown)


def test_a_matrix_of_gaps_alone_is_still_told():
    matrix = Matrix(base="b", cells=(Cell(name="c", gap="it rained"),), base_levels={})

    assert "col-1 : c (no numbers: it rained)" in matrix_markdown(matrix)
    written = StringIO()
    console = Console(file=written, width=100)
    console.print(matrix_renderable(matrix))
    assert "it rained" in written.getvalue()


def test_groups_come_in_the_order_of_the_field_and_others_last():
    names = ("insert", "read-only(10)", "cold-points", "scan", "random-points(10)", "hot-points(1)")
    story = a_run().on(sha("c")).against(sha("c"))
    for name in names:
        story = story.with_samples(name, [[100.0]] * 2, side=SideName.BASELINE)
        story = story.with_samples(name, [[90.0]] * 2)
    rows = rows_of_pair(story.build(), {})

    found = summaries(Matrix(base="b", cells=(Cell(name="c", rows=rows),), base_levels={}))

    order = ["point-1", "point-2", "range-1", "range-2", "write", "other"]
    assert [summary.group for summary in found] == order


def test_scans_are_told_in_rows_per_second_too():
    table = absolute_table(a_matrix())
    pair = a_pair(point_query=1.0)
    without = absolute_table(
        Matrix(base="b", cells=(Cell(name="c", rows=rows_of_pair(pair, {})),), base_levels={})
    )

    assert table.columns[-1].heading == "rows/s"
    last = {line.cells[:2]: line.cells[-1] for line in table.lines}
    # Two scans a second of a table of 1000 rows.
    assert last["scan", "base"] == "2,000"
    assert last["scan", "col-1"] == "1,580"
    assert last["point-query", "base"] == NOT_KNOWN
    assert without.columns[-1].heading != "rows/s"
