from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reports.rows import level_of, level_of_runs, rows_against, rows_of_pair
from results.document import Outcome
from results.slice import SideName, SliceState
from tests.fakes.run_documents import a_run, sha
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from tests.fakes.run_documents import RunStory


def a_pair() -> RunStory:
    return (
        a_run()
        .against(sha("a"))
        .with_samples("scan", [[2.0, 2.2], [1.0, 1.2], [3.0, 3.2]], side=SideName.BASELINE)
        .with_samples("scan", [[1.0, 1.2], [0.5, 0.7], [1.5, 1.7]])
    )


def test_a_level_is_the_median_over_starts_of_the_median_over_slices() -> None:
    level = level_of(a_pair().build(), "scan", SideName.BASELINE)

    assert level.throughput_ops_s == pytest.approx(2.1)
    assert (level.lowest_ops_s, level.highest_ops_s) == (pytest.approx(1.1), pytest.approx(3.1))
    assert level.starts == 3


def test_a_pair_has_both_sides_from_one_document() -> None:
    (row,) = rows_of_pair(a_pair().build(), {})

    assert (row.workload, row.group) == ("scan", "range-1")
    assert row.baseline.throughput_ops_s == pytest.approx(2.1)
    assert row.candidate.throughput_ops_s == pytest.approx(1.1)
    # Nothing was judged, so the ratio is that of the medians: 1.1 / 2.1.
    assert row.ratio == pytest.approx(0.5238, abs=1e-4)


def test_the_ratio_is_the_judged_one_where_there_is_a_verdict() -> None:
    verdict = a_verdict(-9.0, low=-10, high=-8)

    (row,) = rows_of_pair(a_pair().build(), {"scan": verdict})

    assert row.ratio == pytest.approx(0.91)


def test_costs_are_sums_of_counters_over_the_sum_of_operations() -> None:
    # Two slices of ten seconds at 100 and 300 ops/s: 4000 operations; the machine is half busy.
    document = a_run().with_samples("point-query", [[100.0, 300.0]]).build()

    costs = level_of(document, "point-query").efficiency

    # 50 % at (100 + 300) / 2 ops/s is 0.25 percent per operation per second.
    assert costs.machine_cpu_percent_s == pytest.approx(0.25)
    assert costs.server_cpu_us == pytest.approx(12.0)
    assert costs.switches == pytest.approx(2.5)
    assert costs.device_reads == 0
    assert costs.device_write_kib == pytest.approx(0.25)


def test_a_single_run_stands_against_the_median_of_its_baseline_runs() -> None:
    baseline = [
        (a_run().called("run-a").with_samples("scan", [[2.0], [2.0]]).build(), SideName.CANDIDATE),
        (a_run().called("run-b").with_samples("scan", [[4.0], [4.0]]).build(), SideName.CANDIDATE),
        (a_pair().called("run-c").build(), SideName.BASELINE),
    ]

    (row,) = rows_against(a_run().with_samples("scan", [[1.0]]).build(), {"scan": baseline}, {})

    # The medians of the three are 2.0, 4.0 and 2.1.
    assert row.baseline.throughput_ops_s == pytest.approx(2.1)
    assert row.baseline.starts == 7
    assert row.candidate.throughput_ops_s == 1.0


def test_a_scan_has_rows_per_second_of_its_table() -> None:
    story = a_pair().with_samples("point-query", [[9.0]])
    document = story.build()

    # The table has 1000 rows.
    scan = level_of(document, "scan")
    assert scan.throughput_rows_s == pytest.approx(1000 * scan.throughput_ops_s)
    both = level_of_runs([(document, side) for side in SideName], "scan")
    assert both.throughput_rows_s == pytest.approx(1000 * both.throughput_ops_s)
    assert level_of(document, "point-query").throughput_rows_s is None
    bare = document.model_copy(update={"dataset": None})
    assert level_of(bare, "scan").throughput_rows_s is None


def test_a_first_run_has_rows_without_a_baseline() -> None:
    (row,) = rows_against(a_run().with_samples("scan", [[1.0]]).build(), {}, {})

    assert row.baseline is None
    assert row.ratio is None


def test_disturbed_slices_count_nowhere() -> None:
    document = a_run().with_samples("scan", [[1.0, 9.0]]).build()
    (start,) = document.starts
    bad = start.slices[1].model_copy(update={"state": SliceState.DISTURBED})
    start = start.model_copy(update={"slices": (start.slices[0], bad)})
    document = document.model_copy(update={"starts": (start,)})

    level = level_of(document, "scan")

    assert level.throughput_ops_s == 1.0
    assert level.efficiency.machine_cpu_percent_s == pytest.approx(50.0)


def test_a_broken_build_has_no_rows() -> None:
    story = a_run().that(Outcome.BUILD_FAILED, stage="compile", message="no")

    assert rows_against(story.build(), {}, {}) == ()


def test_a_workload_of_another_version_is_kept_under_other() -> None:
    (row,) = rows_against(a_run().with_samples("cold-points", [[1.0]]).build(), {}, {})

    assert row.group == "other"
