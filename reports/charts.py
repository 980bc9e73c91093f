"""Chart specifications: plain Vega-Lite dictionaries, drawn by the browser or as PNG.

Points come in, a dictionary goes out; `png` turns one into an image without a browser. Charts are
as wide as their container and have no background, so that they read in light and dark and on a
phone; shapes say what colours say.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import vl_convert

from reports.markup import one_line
from reports.numbers import FASTER_AT, SLOWER_AT, rate, ratio, short
from results.metric import THROUGHPUT
from results.slice import SideName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from reports.rows import Level
    from results.document import RunDocument

HEIGHT: Final = 240
#: Width of a PNG in CSS pixels; a container's width means nothing outside a page.
PNG_WIDTH: Final = 720
PNG_SCALE: Final = 2

#: Colours with enough contrast on white and on near-black.
RED: Final = "#d1453b"
GREEN: Final = "#2f9e5b"
GREY: Final = "#808080"
BLUE: Final = "#4a86d8"

_DECISIONS: Final = ("regression", "improvement", "no-change", "inconclusive", "not judged")
_DECISION_COLOURS: Final = (RED, GREEN, BLUE, GREY, GREY)
_SIDES: Final = ("baseline", "candidate")
_DECISION_SHAPES: Final = ("triangle-down", "triangle-up", "circle", "diamond", "cross")


@dataclass(frozen=True, kw_only=True)
class TrendPoint:
    """One commit on the chart of a workload; throughput in operations per second."""

    sha: str
    subject: str
    committed_at: datetime
    throughput_ops_s: float
    #: Lowest and highest start.
    lowest_ops_s: float
    highest_ops_s: float
    #: A decision's name, or `not judged`.
    decision: str
    #: Relative throughput as judged.
    ratio: float | None = None
    #: Where a commit without a detectable change would lie: the baseline's level, less and more the
    #: smallest effect that this run would have shown.
    band_low_ops_s: float | None = None
    band_high_ops_s: float | None = None
    #: Page of the commit.
    link: str | None = None


def trend_chart(points: Sequence[TrendPoint], *, workload: str) -> dict[str, Any]:
    """Return the chart of a workload over its commits, oldest first.

    Each commit is a mark at the median of its starts with a line from the lowest to the highest
    start; the band is where a commit without a visible change would lie.
    """
    values = [_trend_value(point) for point in points]
    order = [value["commit"] for value in values]
    chart = alt.Chart(alt.InlineData(values=values))
    x = alt.X(
        "commit:O",
        sort=order,
        title=None,
        axis=alt.Axis(labelAngle=-45, labelOverlap=True, labelFont="monospace"),
    )
    scale = _scale([end for point in points for end in (point.lowest_ops_s, point.highest_ops_s)])
    y_title = f"{one_line(workload)}, operations per second"
    band = chart.mark_area(opacity=0.18, color=GREY, interpolate="step", clip=True).encode(
        x=x,
        y=alt.Y("band_low:Q", scale=scale, title=y_title),
        y2="band_high:Q",
    )
    spread = chart.mark_rule(strokeWidth=2, opacity=0.7).encode(
        x=x,
        y=alt.Y("low:Q", scale=scale, title=y_title),
        y2="high:Q",
        color=_decision_colour(values),
    )
    marks = chart.mark_point(filled=True, size=90, opacity=1).encode(
        x=x,
        y=alt.Y("ops_s:Q", scale=scale, title=y_title, axis=alt.Axis(format="~s")),
        color=_decision_colour(values),
        shape=_decision_shape(values),
        tooltip=[
            alt.Tooltip("commit:O"),
            alt.Tooltip("subject:N"),
            alt.Tooltip("date:N"),
            alt.Tooltip("throughput:N"),
            alt.Tooltip("starts:N"),
            alt.Tooltip("ratio:N"),
            alt.Tooltip("decision:N"),
        ],
        href="link:N",
    )
    description = f"Throughput of {one_line(workload)} for {len(points)} commits, oldest first."
    return _finish(alt.layer(band, spread, marks), description=description)


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
    scale = _scale(seen)
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
    return _finish(alt.layer(*layers), description=description)


def png(spec: dict[str, Any]) -> bytes:
    """Return a chart as PNG on white, for places that cannot draw.

    Raises:
        ValueError: The chart shows nothing, so that there is nothing to draw.
    """
    fixed = {**spec, "width": PNG_WIDTH, "background": "white"}
    return bytes(vl_convert.vegalite_to_png(fixed, scale=PNG_SCALE))


def _trend_value(point: TrendPoint) -> dict[str, Any]:
    """Return a point as the data of a mark: only what is seen."""
    value: dict[str, Any] = {
        "commit": short(point.sha),
        "subject": one_line(point.subject, length_max=80),
        "date": point.committed_at.date().isoformat(),
        "ops_s": point.throughput_ops_s,
        "throughput": f"{rate(point.throughput_ops_s)} o/s",
        "low": point.lowest_ops_s,
        "high": point.highest_ops_s,
        "starts": f"{rate(point.lowest_ops_s)} to {rate(point.highest_ops_s)}",
        "decision": point.decision if point.decision in _DECISIONS else "not judged",
        "ratio": ratio(point.ratio),
        "band_low": point.band_low_ops_s,
        "band_high": point.band_high_ops_s,
    }
    return value if point.link is None else {**value, "link": point.link}


def _scale(known: Sequence[float]) -> alt.Scale:
    """Return a scale that shows every value and never less than 5 % either side of the middle.

    The field's colours begin at 5 %; a closer look would make mountains of ordinary noise.
    """
    if not known:
        return alt.Scale(zero=False)
    middle = median(known)
    low = min(*known, middle * SLOWER_AT)
    high = max(*known, middle * FASTER_AT)
    return alt.Scale(domain=[low, high], nice=True, zero=False)


def _legend(values: Sequence[dict[str, Any]], key: str, known: Sequence[str]) -> alt.Legend:
    """Return a legend of the names that occur; colour and shape share it."""
    found = {value[key] for value in values}
    return alt.Legend(values=[name for name in known if name in found], title=None, columns=3)


def _decision_colour(values: Sequence[dict[str, Any]]) -> alt.Color:
    return alt.Color(
        "decision:N",
        scale=alt.Scale(domain=list(_DECISIONS), range=list(_DECISION_COLOURS)),
        legend=_legend(values, "decision", _DECISIONS),
    )


def _decision_shape(values: Sequence[dict[str, Any]]) -> alt.Shape:
    return alt.Shape(
        "decision:N",
        scale=alt.Scale(domain=list(_DECISIONS), range=list(_DECISION_SHAPES)),
        legend=_legend(values, "decision", _DECISIONS),
    )


def _side_colour(values: Sequence[dict[str, Any]]) -> alt.Color:
    return alt.Color(
        "side:N",
        scale=alt.Scale(domain=list(_SIDES), range=[GREY, BLUE]),
        legend=_legend(values, "side", _SIDES),
    )


def _side_shape(values: Sequence[dict[str, Any]]) -> alt.Shape:
    return alt.Shape(
        "side:N",
        scale=alt.Scale(domain=list(_SIDES), range=["square", "circle"]),
        legend=_legend(values, "side", _SIDES),
    )


def _baseline_band(baseline: Level, scale: alt.Scale) -> alt.Chart:
    data = alt.InlineData(values=[{"low": baseline.lowest_ops_s, "high": baseline.highest_ops_s}])
    band: alt.Chart = alt.Chart(data).mark_rect(opacity=0.18, color=GREY)
    return band.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")


def _baseline_rule(baseline: Level, scale: alt.Scale) -> alt.Chart:
    data = alt.InlineData(values=[{"level": baseline.throughput_ops_s}])
    rule: alt.Chart = alt.Chart(data).mark_rule(color=GREY, strokeDash=[4, 3])
    return rule.encode(y=alt.Y("level:Q", scale=scale))


def _finish(chart: alt.LayerChart | alt.FacetChart, *, description: str) -> dict[str, Any]:
    """Return a chart as a dictionary that Vega-Lite's own schema accepts."""
    finished = chart.properties(
        width="container", height=HEIGHT, background="transparent", description=description
    ).configure(
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=GREY,
            titleColor=GREY,
            gridColor=GREY,
            gridOpacity=0.25,
            domainColor=GREY,
            tickColor=GREY,
            titleFontWeight="normal",
        ),
        legend=alt.LegendConfig(labelColor=GREY, orient="top", title=None),
    )
    spec: dict[str, Any] = finished.to_dict()
    return spec
