from __future__ import annotations

import pytest

from reports.insert_benchmark import (
    NOT_COMPARED,
    StepRate,
    Version,
    absolute_table,
    insert_benchmark_markdown,
    insert_rate_table,
    relative_table,
    response_table,
    step_rate,
    step_seconds_table,
)
from reports.numbers import NOT_KNOWN
from reports.seconds import seconds_table
from workloads.insert_benchmark_output import Role, StepResult


def a_rate(step="l.i0", rate=1000.0, *, inserted=None, target=None, comparable=True) -> StepRate:
    return StepRate(
        step=step, rate=rate, inserted_rows_s=inserted, target_rows_s=target,
        is_comparable=comparable,
    )  # fmt: skip


def versions(**rates: float) -> list[Version]:
    return [Version(name=name, steps=(a_rate(rate=rate),)) for name, rate in rates.items()]


def cells(table, column: int) -> list[str]:
    return [line.cells[column] for line in table.lines]


def a_role(name="query", rows=300, per_second=(100.0, 150.0, 50.0)) -> Role:
    return Role(
        name=name, clients=1, seconds=3.0, statements=rows, rows=rows, retries=0, total_us=600_000,
        max_us=70_600, per_second=per_second, buckets=(0, 290, 9, 0, 0, 1, 0, 0, 0, 0),
        fine=((79, 290), (95, 9), (128, 1)),
    )  # fmt: skip


def a_result(inserted=300, **chosen) -> StepResult:
    return StepResult(
        step="qr100", measured=a_role(**chosen), target_rows_s=100,
        others=(a_role("insert", inserted), a_role("delete", inserted)),
    )  # fmt: skip


def test_the_lowest_quarter_is_marked_and_the_highest():
    table = absolute_table(versions(v1=1000.0, v2=700.0, v3=1001.0, v4=1300.0))

    assert cells(table, 1) == ["1,000", "▼ 700", "1,001", "▲ 1,300"]


def test_nothing_is_low_where_all_are_close():
    assert cells(absolute_table(versions(v1=1000.0, v2=800.0)), 1) == ["▲ 1,000", "800"]
    assert cells(absolute_table(versions(v1=1000.0, v2=799.0)), 1) == ["▲ 1,000", "▼ 799"]
    assert cells(absolute_table(versions(v1=1000.0, v2=1000.0)), 1) == ["1,000", "1,000"]


def test_the_first_version_is_the_base():
    table = relative_table(versions(v1=1000.0, v2=950.0, v3=954.0, v4=1055.0))

    assert cells(table, 1) == ["1.00", "▼ 0.95", "▼ 0.95", "▲ 1.05"]


def test_a_step_that_did_not_hold_its_rate_is_shown_and_not_compared():
    held = a_rate("qr100", 500.0, inserted=100.0, target=100)
    failed = a_rate("qr100", 900.0, inserted=80.0, target=100, comparable=False)
    both = [Version(name="v1", steps=(held,)), Version(name="v2", steps=(failed,))]

    assert cells(absolute_table(both), 1) == ["500", "(900)"]
    assert cells(relative_table(both), 1) == ["1.00", NOT_COMPARED]
    assert cells(relative_table(both[::-1]), 1) == [NOT_COMPARED, NOT_COMPARED]
    assert cells(insert_rate_table(both), 1) == ["100", "▼ 80.00", "100"]
    assert "v2" in insert_benchmark_markdown(both)
    assert "not compared" in insert_benchmark_markdown(both)


def test_a_step_that_was_not_measured_is_a_gap():
    both = [Version(name="v1", steps=(a_rate(),)), Version(name="v2", steps=(a_rate("l.x"),))]

    assert cells(absolute_table(both), 2) == [NOT_KNOWN, "1,000"]
    assert cells(relative_table(both), 1) == ["1.00", NOT_KNOWN]


def test_steps_without_a_rate_are_not_in_the_third_table():
    assert insert_rate_table(versions(v1=1.0)).lines == ()
    assert "Insert rate" not in insert_benchmark_markdown(versions(v1=1.0))


def test_starts_are_their_median_and_all_must_have_held():
    rate = step_rate([a_result(rows=300), a_result(rows=330), a_result(rows=3000)])

    assert rate.rate == pytest.approx(110)
    assert rate.is_comparable
    assert not step_rate([a_result(), a_result(inserted=200)]).is_comparable


def test_response_times_have_a_line_for_each_role():
    table = response_table([a_result()])

    assert [line.cells[1] for line in table.lines] == ["query", "insert", "delete"]
    assert table.lines[0].cells[2:] == ("0", "290", "9", "0", "0", "1", "0", "0", "0", "0", "0.071")
    assert len(table.columns) == len(table.lines[0].cells)


def test_seconds_say_how_even_they_were():
    # A step of one long statement has no seconds to speak of.
    results = [a_result(per_second=(100.0, 150.0, 40.0, 110.0)), a_result(per_second=())]
    (line,) = step_seconds_table(results).lines

    assert line.cells == ("qr100", "4", "100", "45.5%", "105", "40.00", "1", "1")


def test_series_without_seconds_have_no_line():
    table = seconds_table([("scan", ()), ("oltp-read-write(t4)", (100.0, 100.0))])

    assert [line.cells for line in table.lines] == [
        ("oltp-read-write(t4)", "2", "100", "0.0%", "100", "100", "0", "0")
    ]
    assert table.columns[0].heading == "workload"
