"""The chart of seconds: how even two sides ran, second by second.

Two sides of stored runs come in, a Vega-Lite dictionary goes out. It has no more points than a
screen can show; a bucket of several seconds keeps its lowest and highest second.
"""

from __future__ import annotations

import json
from functools import cache
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import altair as alt

from reports.chart_style import BLUE, GREY, finish
from reports.markup import one_line
from results.slice import SliceState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.rows import RunSide

#: Points of each side: more than a phone has pixels for, and few enough to be drawn at once.
POINTS_MAX: Final = 300
_SIDES: Final = ("baseline", "candidate")
_SECONDS: Final = "seconds"


def seconds_of(side: RunSide, workload: str) -> list[list[float]]:
    """Return the throughput of each second by start, in the order they were measured."""
    document, name = side
    starts = [
        [
            value
            for piece in start.slices
            if piece.workload == workload and piece.side is name and piece.state is SliceState.OK
            for value in piece.per_second_ops_s
        ]
        for start in document.starts
    ]
    return [seconds for seconds in starts if seconds]


def seconds_chart(
    baseline: Sequence[Sequence[float]], candidate: Sequence[Sequence[float]], *, workload: str
) -> dict[str, Any]:
    """Return the chart of two sides' seconds; each has at least one start with one.

    The line is the mean over starts, the band spans the lowest and highest second of any start.
    """
    longest = max(len(seconds) for starts in (baseline, candidate) for seconds in starts)
    width = max(1, ceil(longest / POINTS_MAX))
    values = [
        value
        for side, starts in zip(_SIDES, (baseline, candidate), strict=True)
        for value in _buckets(side, starts, width)
    ]
    spec: dict[str, Any] = json.loads(_frame())
    for layer in spec["layer"]:
        layer["encoding"]["y"]["title"] = f"{one_line(workload)}, operations per second"
    said = f"Throughput of {one_line(workload)} by second, baseline and candidate."
    return spec | {"description": said, "datasets": {_SECONDS: values}}


@cache
def _frame() -> str:
    """Return the chart of no seconds as JSON; Altair takes its time to make and check it."""
    chart = alt.Chart(alt.NamedData(name=_SECONDS))
    x = alt.X(
        "second:Q",
        title="second of the workload",
        axis=alt.Axis(format="d", tickMinStep=1),
    )
    title = "operations per second"
    axis = alt.Axis(format="~s")
    colour = alt.Color(
        "side:N",
        scale=alt.Scale(domain=list(_SIDES), range=[GREY, BLUE]),
        # Else the legend is as faint as the band.
        legend=alt.Legend(symbolOpacity=1, title=None),
    )
    band = chart.mark_area(opacity=0.2).encode(
        x=x, y=alt.Y("low:Q", title=title, axis=axis), y2="high:Q", color=colour
    )
    line = chart.mark_line().encode(
        x=x,
        y=alt.Y("ops_s:Q", title=title, axis=axis),
        color=colour,
        strokeDash=alt.StrokeDash(
            "side:N", scale=alt.Scale(domain=list(_SIDES), range=[[4, 3], [1, 0]]), title=None
        ),
    )
    return json.dumps(finish(alt.layer(band, line), description=title))


def _buckets(side: str, starts: Sequence[Sequence[float]], width: int) -> list[dict[str, Any]]:
    """Return a point for every `width` seconds of one side."""
    longest = max(len(seconds) for seconds in starts)
    points = []
    for begin in range(0, longest, width):
        seen = [value for seconds in starts for value in seconds[begin : begin + width]]
        points.append(
            {
                "side": side,
                "second": begin + 1,
                "ops_s": fmean(seen),
                "low": min(seen),
                "high": max(seen),
            }
        )
    return points
