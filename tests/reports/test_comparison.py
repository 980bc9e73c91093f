"""Rows, tables and charts of two sides; no store."""

from __future__ import annotations

from typing import Any

import pytest

from reports.comparison import (
    counters_between,
    counters_table,
    group_table,
    latency_table,
    percentiles_of,
    rows_between,
)
from reports.comparison_chart import POINTS_MAX, seconds_chart, seconds_of
from results.document import RunDocument
from results.slice import Latency, SideName, SliceState
from tests.fakes.given_documents import with_slices
from tests.fakes.run_documents import a_run, sha

CANDIDATE = SideName.CANDIDATE


def a_document(**throughputs: float) -> RunDocument:
    """Two starts of one slice; workloads by name with `_` for `-`."""
    story = a_run().on(sha("c"))
    for key, value in throughputs.items():
        story = story.with_samples(key.replace("_", "-"), [[value], [value * 1.02]])
    return story.build()


OLD = a_document(scan=2.0, point_query=1000.0, insert=50.0)
NEW = a_document(scan=1.8, point_query=1000.0, update_index=80.0)
SIDES = (OLD, CANDIDATE), (NEW, CANDIDATE)


def counted(document: RunDocument, **engine: float) -> RunDocument:
    found = document.starts[0].slices[0].counters
    assert found is not None
    return with_slices(document, counters=found.model_copy(update={"engine": engine}))


def test_rows_are_the_candidates_then_those_that_it_lacks() -> None:
    rows = rows_between(*SIDES, {})

    assert [row.workload for row in rows] == ["scan", "point-query", "update-index", "insert"]
    assert [row.ratio for row in rows] == [pytest.approx(0.9), pytest.approx(1.0), None, None]
    assert (rows[2].baseline, rows[3].candidate) == (None, None)
    assert rows[0].baseline is not None
    assert (rows[0].baseline.lowest_ops_s, rows[0].baseline.highest_ops_s) == (2.0, 2.04)


def test_groups_have_no_column_of_cells() -> None:
    table = group_table(rows_between(*SIDES, {}))

    assert [column.heading for column in table.columns] == [
        "group",
        "workloads",
        "min",
        "max",
        "avg",
        "median",
    ]
    assert [line.cells[:2] for line in table.lines] == [("point-1", "1"), ("range-1", "1")]


def test_latency_is_the_median_start_of_both_sides() -> None:
    slow = with_slices(
        NEW, latency_ms=Latency(average=1, minimum=1, maximum=9, p50=1, p95=4, p99=1234.5)
    )
    sides = (SIDES[0], (slow, CANDIDATE))
    table = latency_table(*sides, ["scan", "insert"])

    assert [line.cells for line in table.lines] == [
        ("scan", "1", "1", "2", "4", "3", "1,234", "2.00")
    ]
    assert len(table.columns) == len(table.lines[0].cells)
    assert percentiles_of((with_slices(NEW, latency_ms=None), CANDIDATE), "scan") is None


def test_counters_are_per_operation_and_the_loudest_first() -> None:
    sides = (
        (counted(OLD, Handler_read=20.0, Rare=0.001), CANDIDATE),
        (counted(NEW, Handler_read=90.0, Rare=0.002, New=40.0), CANDIDATE),
    )
    found = counters_between(*sides, "scan")

    # Of 20 and 20 operations before, 18 and 18 after; New is new, Rare is too rare to matter.
    assert (found[0].name, found[0].baseline, found[0].candidate) == (
        "New",
        0.0,
        pytest.approx(80 / 36),
    )
    assert found[1].name == "Handler_read"
    assert found[1].baseline == pytest.approx(40 / 40)
    assert next(one for one in found if one.name == "Rare").distance == 0
    assert counters_between(SIDES[0], (with_slices(NEW, counters=None), CANDIDATE), "scan") == ()


def test_the_table_of_counters_leaves_out_what_explains_nothing() -> None:
    sides = (
        (counted(OLD, Handler_read=20.0, Same=300.0), CANDIDATE),
        (counted(OLD, Handler_read=90.0, Same=301.0), CANDIDATE),
    )
    table = counters_table(*sides, ["point-query"])

    # A thousand operations a second: twenty reads in ten seconds are next to none, 90 as well.
    assert table.lines == ()
    names = [line.cells[1] for line in counters_table(*sides, ["scan"]).lines]
    assert names == ["Handler_read"]


def test_disturbed_slices_count_for_nothing() -> None:
    disturbed = with_slices(NEW, state=SliceState.DISTURBED, per_second_ops_s=(1.0,))

    assert percentiles_of((disturbed, CANDIDATE), "scan") is None
    assert seconds_of((disturbed, CANDIDATE), "scan") == []


def values_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    (values,) = spec["datasets"].values()
    return values


def test_seconds_keep_their_extremes_however_many_there_are() -> None:
    calm, stalled = [100.0] * 7_200, [100.0] * 7_200
    stalled[5_000] = 1.0
    spec = seconds_chart([calm, calm], [stalled, calm[:100]], workload="scan")

    values = values_of(spec)
    assert len(values) == 2 * POINTS_MAX
    assert min(value["low"] for value in values if value["side"] == "candidate") == 1.0
    assert min(value["low"] for value in values if value["side"] == "baseline") == 100.0


def test_few_seconds_are_all_there() -> None:
    values = values_of(seconds_chart([[1.0, 3.0], [2.0]], [[4.0]], workload="scan"))

    assert values == [
        {"side": "baseline", "second": 1, "ops_s": 1.5, "low": 1.0, "high": 2.0},
        {"side": "baseline", "second": 2, "ops_s": 3.0, "low": 3.0, "high": 3.0},
        {"side": "candidate", "second": 1, "ops_s": 4.0, "low": 4.0, "high": 4.0},
    ]


def test_a_name_cannot_break_the_chart() -> None:
    spec = seconds_chart([[1.0]], [[1.0]], workload="a\u202eb\n<script>")

    assert spec["description"].startswith("Throughput of ab <script> by second")
