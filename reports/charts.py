"""Chart specifications: plain Vega-Lite dictionaries, drawn by the browser or as PNG.

Points come in, a dictionary goes out; `png` turns one into an image without a browser. Charts are
as wide as their container and have no background, so that they read in light and dark and on a
phone; shapes say what colours say.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import vl_convert

from reports.chart_style import BLUE, GREY, domain_around, finish, legend_of
from reports.markup import one_line
from reports.numbers import rate
from results.metric import THROUGHPUT

if TYPE_CHECKING:
    from reports.rows import Level
    from results.document import RunDocument

#: Width of a PNG in CSS pixels; a container's width means nothing outside a page.
PNG_WIDTH: Final = 720
PNG_SCALE: Final = 2

_SIDES: Final = ("baseline", "candidate")
#: Datasets of the chart: slices, and where the baseline stands.
_SLICES: Final = "slices"
_BAND: Final = "band"
_LEVEL: Final = "level"


def starts_chart(
    document: RunDocument, workload: str, *, baseline: Level | None = None
) -> dict[str, Any]:
    """Return the chart of one run and workload: every slice by its start, both sides of a pair.

    Args:
        document: The run.
        workload: Which of its workloads.
        baseline: Where the stored baseline stands, for a run that is no pair.
    """
    values: list[dict[str, Any]] = [
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
    seen = [value["ops_s"] for value in values]
    datasets: dict[str, list[dict[str, Any]]] = {_SLICES: values}
    if baseline is not None:
        low, high = baseline.lowest_ops_s, baseline.highest_ops_s
        seen += [low, high]
        datasets[_BAND] = [{"low": low, "high": high}]
        datasets[_LEVEL] = [{"level": baseline.throughput_ops_s}]
    spec: dict[str, Any] = json.loads(_frame(beside_baseline=baseline is not None))
    sides = [side for side in _SIDES if any(value["side"] == side for value in values)]
    for layer in spec["layer"]:
        if seen:
            scale = {"domain": domain_around(seen), "nice": True, "zero": False}
            layer["encoding"]["y"]["scale"] = scale
        for channel in ("color", "shape"):
            if channel in layer["encoding"]:
                layer["encoding"][channel]["legend"]["values"] = sides
    described = f"Throughput of {one_line(workload)} in each server start of this run."
    return spec | {"description": described, "datasets": datasets}


def png(spec: dict[str, Any]) -> bytes:
    """Return a chart as PNG on white, for places that cannot draw.

    Raises:
        ValueError: The chart shows nothing, so that there is nothing to draw.
    """
    fixed = {**spec, "width": PNG_WIDTH, "background": "white"}
    return bytes(vl_convert.vegalite_to_png(fixed, scale=PNG_SCALE))


@cache
def _frame(*, beside_baseline: bool) -> str:
    """Return the chart of no starts as JSON.

    Altair takes some hundredths of a second to put it together and to check it, and the page of a
    commit has one for each of forty workloads.
    """
    scale, known = alt.Scale(zero=False), set(_SIDES)
    slices: alt.Chart = (
        alt.Chart(alt.NamedData(name=_SLICES))
        .mark_point(filled=True, size=60, opacity=0.85)
        .encode(
            x=alt.X("start:O", title="server start", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("side:N", scale=alt.Scale(domain=list(_SIDES))),
            y=alt.Y(
                "ops_s:Q",
                scale=scale,
                title="operations per second",
                axis=alt.Axis(format="~s"),
            ),
            color=alt.Color(
                "side:N",
                scale=alt.Scale(domain=list(_SIDES), range=[GREY, BLUE]),
                legend=legend_of(known, _SIDES),
            ),
            shape=alt.Shape(
                "side:N",
                scale=alt.Scale(domain=list(_SIDES), range=["square", "circle"]),
                legend=legend_of(known, _SIDES),
            ),
            tooltip=[
                alt.Tooltip("side:N"),
                alt.Tooltip("start:O"),
                alt.Tooltip("slice:Q"),
                alt.Tooltip("throughput:N"),
            ],
        )
    )
    layers = [*_baseline_layers(scale), slices] if beside_baseline else [slices]
    return json.dumps(finish(alt.layer(*layers), description="Throughput in each server start."))


def _baseline_layers(scale: alt.Scale) -> list[alt.Chart]:
    """Return the band from the lowest to the highest start of the baseline, and its level."""
    band: alt.Chart = alt.Chart(alt.NamedData(name=_BAND)).mark_rect(opacity=0.18, color=GREY)
    rule: alt.Chart = alt.Chart(alt.NamedData(name=_LEVEL)).mark_rule(color=GREY, strokeDash=[4, 3])
    return [
        band.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        rule.encode(y=alt.Y("level:Q", scale=scale)),
    ]
