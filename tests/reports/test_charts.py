from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import altair as alt
import pytest

from reports.charts import png, starts_chart
from reports.rows import level_of
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha

if TYPE_CHECKING:
    from results.document import RunDocument

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


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


@pytest.mark.parametrize("spec", [starts_chart(a_pair(), "scan")])
def test_a_chart_is_valid_vega_lite_of_plain_json_and_as_wide_as_its_container(
    spec: dict[str, Any],
) -> None:
    alt.Chart.from_dict(spec, validate=True)
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert spec["width"] == "container"
    assert spec["background"] == "transparent"


@pytest.mark.parametrize("spec", [starts_chart(a_pair(), "scan")])
def test_a_chart_can_be_drawn_as_png(spec: dict[str, Any]) -> None:
    assert png(spec).startswith(PNG_MAGIC)


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
