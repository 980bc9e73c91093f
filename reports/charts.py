"""Chart specifications: plain Vega-Lite dictionaries, drawn by the browser or as PNG.

Points come in, a dictionary goes out; `png` turns one into an image without a browser. Charts are
as wide as their container and have no background, so that they read in light and dark and on a
phone; shapes say what colours say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import altair as alt
import vl_convert

from reports.chart_style import BLUE, GREY, finish, legend_of, scale_around
from reports.markup import one_line
from reports.numbers import rate
from results.metric import THROUGHPUT
from results.slice import SideName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.rows import Level
    from results.document import RunDocument

#: Width of a PNG in CSS pixels; a container's width means nothing outside a page.
PNG_WIDTH: Final = 720
PNG_SCALE: Final = 2

_SIDES: Final = ("baseline", "candidate")


def starts_chart(
    document: RunDocument, workload: str, *, baseline: Level | None = None
) -> dict[str, Any]:
    """Return the chart of one run and workload: every slice by its start, both sides of a pair.

    Args:
        document: The run.
        workload: Which of its workloads.
        baseline: Where the stored baseline stands, for a run that is no pair.
    """
    values = [
        {
            "start": start.index + 1,
            "side": piece.side.value,
            "ops_s": piece.throughput_ops_s,
            "throughput": f"{rate(piece.throughput_ops_s)} o/s",
            "slice": piece.sequence + 1,
        }
        for start in document.starts
        for piece in start.slices
        if piece.workload == workload and piece.value(THROUGHPUT.name) is not None
    ]
    seen = [end for row in document.samples(workload, THROUGHPUT.name) for end in row]
    seen += [
        end for row in document.samples(workload, THROUGHPUT.name, SideName.BASELINE) for end in row
    ]
    if baseline is not None:
        seen += [baseline.lowest_ops_s, baseline.highest_ops_s]
    chart = alt.Chart(alt.InlineData(values=values))
    scale = scale_around(seen)
    slices = chart.mark_point(filled=True, size=60, opacity=0.85).encode(
        x=alt.X("start:O", title="server start", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("side:N", scale=alt.Scale(domain=list(_SIDES))),
        y=alt.Y(
            "ops_s:Q",
            scale=scale,
            title="operations per second",
            axis=alt.Axis(format="~s"),
        ),
        color=_side_colour(values),
        shape=_side_shape(values),
        tooltip=[
            alt.Tooltip("side:N"),
            alt.Tooltip("start:O"),
            alt.Tooltip("slice:Q"),
            alt.Tooltip("throughput:N"),
        ],
    )
    layers: list[alt.Chart] = [slices]
    if baseline is not None:
        layers.insert(0, _baseline_band(baseline, scale))
        layers.insert(1, _baseline_rule(baseline, scale))
    description = f"Throughput of {one_line(workload)} in each server start of this run."
    return finish(alt.layer(*layers), description=description)


def png(spec: dict[str, Any]) -> bytes:
    """Return a chart as PNG on white, for places that cannot draw.

    Raises:
        ValueError: The chart shows nothing, so that there is nothing to draw.
    """
    fixed = {**spec, "width": PNG_WIDTH, "background": "white"}
    return bytes(vl_convert.vegalite_to_png(fixed, scale=PNG_SCALE))


def _side_colour(values: Sequence[dict[str, Any]]) -> alt.Color:
    return alt.Color(
        "side:N",
        scale=alt.Scale(domain=list(_SIDES), range=[GREY, BLUE]),
        legend=legend_of({value["side"] for value in values}, _SIDES),
    )


def _side_shape(values: Sequence[dict[str, Any]]) -> alt.Shape:
    return alt.Shape(
        "side:N",
        scale=alt.Scale(domain=list(_SIDES), range=["square", "circle"]),
        legend=legend_of({value["side"] for value in values}, _SIDES),
    )


def _baseline_band(baseline: Level, scale: alt.Scale) -> alt.Chart:
    data = alt.InlineData(values=[{"low": baseline.lowest_ops_s, "high": baseline.highest_ops_s}])
    band: alt.Chart = alt.Chart(data).mark_rect(opacity=0.18, color=GREY)
    return band.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")


def _baseline_rule(baseline: Level, scale: alt.Scale) -> alt.Chart:
    data = alt.InlineData(values=[{"level": baseline.throughput_ops_s}])
    rule: alt.Chart = alt.Chart(data).mark_rule(color=GREY, strokeDash=[4, 3])
    return rule.encode(y=alt.Y("level:Q", scale=scale))
