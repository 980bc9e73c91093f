from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import altair as alt
import pytest

from reports.charts import TrendPoint, png, starts_chart, trend_chart
from reports.rows import level_of
from results.slice import SideName
from tests.fakes.run_documents import AT, a_run, sha

if TYPE_CHECKING:
    from results.document import RunDocument

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def a_point(
    digit: str, throughput: float, *, decision: str = "no-change", **more: Any
) -> TrendPoint:
    return TrendPoint(
        sha=sha(digit),
        subject="A change",
        committed_at=AT,
        throughput_ops_s=throughput,
        lowest_ops_s=throughput * 0.99,
        highest_ops_s=throughput * 1.01,
        decision=decision,
        **more,
    )


def a_trend(points: list[TrendPoint] | None = None) -> dict[str, Any]:
    return trend_chart(
        points
        or [
            a_point("1", 2.0, decision="not judged"),
            a_point("2", 2.01, band_low_ops_s=1.94, band_high_ops_s=2.06, ratio=1.0),
            a_point("3", 1.82, decision="regression", ratio=0.909),
        ],
        workload="scan",
    )


def a_pair() -> RunDocument:
    return (
        a_run()
        .against(sha("a"))
        .with_samples("scan", [[2.0, 2.02], [2.01, 2.0]], side=SideName.BASELINE)
        .with_samples("scan", [[1.82, 1.81], [1.83, 1.81]])
        .build()
    )


def spec_values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [value for values in spec["datasets"].values() for value in values]


@pytest.mark.parametrize("spec", [a_trend(), starts_chart(a_pair(), "scan")])
def test_a_chart_is_valid_vega_lite_of_plain_json_and_as_wide_as_its_container(
    spec: dict[str, Any],
) -> None:
    alt.Chart.from_dict(spec, validate=True)
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert spec["width"] == "container"
    assert spec["background"] == "transparent"


@pytest.mark.parametrize("spec", [a_trend(), starts_chart(a_pair(), "scan")])
def test_a_chart_can_be_drawn_as_png(spec: dict[str, Any]) -> None:
    assert png(spec).startswith(PNG_MAGIC)


def test_the_trend_marks_the_regression_and_keeps_the_order_of_commits() -> None:
    values = spec_values(a_trend())

    assert [value["commit"] for value in values[:3]] == ["11111111", "22222222", "33333333"]
    assert [value["decision"] for value in values[:3]] == ["not judged", "no-change", "regression"]
    assert (values[1]["band_low"], values[1]["band_high"]) == (1.94, 2.06)


def test_noise_is_not_blown_up_to_fill_the_chart() -> None:
    spec = a_trend([a_point("1", 100.0), a_point("2", 100.1)])

    (low, high) = spec["layer"][2]["encoding"]["y"]["scale"]["domain"]
    assert low <= 95.1
    assert high >= 105


def test_a_decision_unknown_here_is_drawn_as_not_judged() -> None:
    (value, *_rest) = spec_values(a_trend([a_point("1", 1.0, decision="<script>")]))

    assert value["decision"] == "not judged"


def test_a_single_run_is_drawn_beside_its_baseline() -> None:
    baseline = level_of(a_pair(), "scan", SideName.BASELINE)
    document = a_run().with_samples("scan", [[1.8], [1.9]]).build()

    spec = starts_chart(document, "scan", baseline=baseline)

    alt.Chart.from_dict(spec, validate=True)
    assert {"low": baseline.lowest_ops_s, "high": baseline.highest_ops_s} in spec_values(spec)
    assert {value["side"] for value in spec_values(spec) if "side" in value} == {"candidate"}


def test_a_chart_of_a_workload_that_was_not_measured_is_empty_and_still_valid() -> None:
    spec = starts_chart(a_run().with_samples("scan", [[1.0]]).build(), "insert")

    alt.Chart.from_dict(spec, validate=True)
    with pytest.raises(ValueError, match="invalid size"):
        png(spec)
