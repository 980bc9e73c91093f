"""The chart of a workload over its commits: intervals, levels, change points, alerts, hosts.

Points come in, a plain Vega-Lite dictionary goes out. Which points are drawn was decided before
(`reports.thinning`); shapes and words say what colours say.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import altair as alt

from reports.chart_style import BLUE, GREEN, GREY, HEIGHT, RED, domain_around, finish, legend_of
from reports.markup import one_line
from reports.numbers import rate, ratio, short

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

#: The layer of the commits' marks; charts.js looks for it.
COMMITS: Final = "commits"
_DATA: Final = "points"
_NAMES: Final = "names"
#: Names on the axis: so many fit a desktop, and a phone leaves out those that overlap.
_TICKS: Final = 12
#: Above this many, marks are small: they would cover each other.
_DENSE: Final = 200
_SUBJECT_LENGTH_MAX: Final = 80

_DECISIONS: Final = ("regression", "improvement", "no-change", "inconclusive", "not judged")
_DECISION_COLOURS: Final = (RED, GREEN, BLUE, GREY, GREY)
_DECISION_SHAPES: Final = ("triangle-down", "triangle-up", "circle", "diamond", "cross")
#: What a commit tells when it is pointed at.
_TOLD: Final = ("commit", "subject", "date", "throughput", "starts", "ratio", "decision")


@dataclass(frozen=True, kw_only=True)
class TrendPoint:
    """One commit on the chart of a workload; throughput in operations per second."""

    #: Which of all commits of the page it is, from 0 on; where it lies on the axis.
    place: int
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
    #: Which stretch between two change points it belongs to, and the median of that.
    stretch: int = 0
    level_ops_s: float | None = None
    #: It belongs to the newest stretch: the next commit is compared with it.
    baseline: bool = False
    #: A new level begins here.
    begins: bool = False
    #: What happened to the host since the point before; empty where nothing did.
    host: str = ""
    #: State of the alert that was raised here, and its page.
    alert: str = ""
    alert_link: str | None = None
    #: Page of the commit.
    link: str | None = None


def trend_chart(points: Sequence[TrendPoint], *, workload: str) -> dict[str, Any]:
    """Return the chart of a workload over its commits, oldest first.

    Each commit is a mark at the median of its starts with a line from the lowest to the highest
    start. The band is where a commit without a visible change would lie; the dashed line is the
    median of a stretch, blue where it is the baseline of the next commit.
    """
    spec: dict[str, Any] = json.loads(_frame(dense=len(points) > _DENSE))
    for layer in spec["layer"]:
        _fit(layer["encoding"], points, title=f"{one_line(workload)}, operations per second")
    said = f"Throughput of {one_line(workload)} for {len(points)} commits, oldest first."
    names = {str(point.place): short(point.sha) for point in _ticks(points)}
    return spec | {
        "description": said,
        "params": [{"name": _NAMES, "value": names}],
        "datasets": {_DATA: [_value(point) for point in points]},
    }


@cache
def _frame(*, dense: bool) -> str:
    """Return the chart of no commits as JSON.

    Altair takes a fifth of a second to put it together and to check it against Vega-Lite's schema,
    and would check every value of thousands of commits too.
    """
    chart = alt.Chart(alt.NamedData(name=_DATA))
    x, scale, title = _x(), alt.Scale(zero=False), "operations per second"
    layers = (
        *_levels(chart, x, scale, title),
        *_rules(chart, x),
        *_marks(chart, x, scale, title, dense=dense),
        *_notes(chart, x),
    )
    return json.dumps(finish(alt.layer(*layers), description=title))


def _fit(encoding: dict[str, Any], points: Sequence[TrendPoint], *, title: str) -> None:
    """Set the parts of a layer that follow from the commits: the ends of its axes, its legend."""
    ends = [end for point in points for end in (point.lowest_ops_s, point.highest_ops_s)]
    places = [point.place for point in points] or [0]
    encoding["x"]["scale"]["domain"] = [places[0] - 0.5, places[-1] + 0.5]
    encoding["x"]["axis"]["values"] = [point.place for point in _ticks(points)]
    y = encoding.get("y", {})
    if "scale" in y:
        y["title"] = title
        if ends:
            y["scale"] = {"domain": domain_around(ends), "nice": True, "zero": False}
    found = {_decision(point) for point in points}
    for channel in ("color", "shape"):
        legend = encoding.get(channel, {}).get("legend")
        if legend:
            legend["values"] = [name for name in _DECISIONS if name in found]


def _levels(chart: alt.Chart, x: alt.X, scale: alt.Scale, title: str) -> list[alt.Chart]:
    """Return the band, and the level of each stretch."""
    band = chart.mark_area(opacity=0.18, color=GREY, interpolate="step", clip=True).encode(
        x=x, y=alt.Y("band_low:Q", scale=scale, title=title), y2="band_high:Q"
    )
    level = alt.Y("level:Q", scale=scale, title=title)
    stretches = chart.mark_line(strokeDash=[4, 3], color=GREY, strokeWidth=1.5).encode(
        x=x, y=level, detail="stretch:N"
    )
    baseline = (
        chart.transform_filter("datum.baseline")
        .mark_line(strokeDash=[4, 3], color=BLUE, strokeWidth=2.5)
        .encode(x=x, y=level)
    )
    return [band, stretches, baseline]


def _rules(chart: alt.Chart, x: alt.X) -> list[alt.Chart]:
    """Return the vertical lines where a level begins and where the host became another."""
    begins = (
        chart.transform_filter("datum.begins").mark_rule(color=GREY, strokeDash=[2, 2]).encode(x=x)
    )
    hosts = chart.transform_filter("datum.host").mark_rule(color=GREY, opacity=0.5).encode(x=x)
    return [begins, hosts]


def _marks(
    chart: alt.Chart, x: alt.X, scale: alt.Scale, title: str, *, dense: bool
) -> list[alt.Chart]:
    """Return the commits with their lowest and highest starts."""
    legend = legend_of(_DECISIONS, _DECISIONS)
    colour = alt.Color(
        "decision:N",
        scale=alt.Scale(domain=list(_DECISIONS), range=list(_DECISION_COLOURS)),
        legend=legend,
    )
    spread = chart.mark_rule(strokeWidth=1 if dense else 2, opacity=0.7).encode(
        x=x, y=alt.Y("low:Q", scale=scale, title=title), y2="high:Q", color=colour
    )
    marks = (
        chart.mark_point(filled=True, size=30 if dense else 90, opacity=1)
        .encode(
            x=x,
            y=alt.Y("ops_s:Q", scale=scale, title=title, axis=alt.Axis(format="~s")),
            color=colour,
            shape=alt.Shape(
                "decision:N",
                scale=alt.Scale(domain=list(_DECISIONS), range=list(_DECISION_SHAPES)),
                legend=legend,
            ),
            tooltip=[alt.Tooltip(f"{field}:N") for field in _TOLD],
            href="link:N",
        )
        .properties(name=COMMITS)
    )
    return [spread, marks]


def _notes(chart: alt.Chart, x: alt.X) -> list[alt.Chart]:
    """Return the words at the top and the bottom of the chart."""
    alerts = (
        chart.transform_filter("datum.alert")
        .mark_text(align="center", baseline="bottom", dy=-2, color=RED, fontWeight="bold")
        .encode(
            x=x,
            y=alt.value(0),
            text=alt.value("alert"),
            tooltip=[alt.Tooltip("commit:N"), alt.Tooltip("alert:N")],
            href="alert_link:N",
        )
    )
    hosts = (
        chart.transform_filter("datum.host")
        .mark_text(align="left", baseline="bottom", dx=3, dy=-3, color=GREY)
        .encode(
            x=x,
            y=alt.value(HEIGHT),
            text=alt.value("host"),
            tooltip=[alt.Tooltip("commit:N"), alt.Tooltip("host:N")],
        )
    )
    return [alerts, hosts]


def _x() -> alt.X:
    """Return the axis of commits: by their place, so that thinning moves nothing."""
    return alt.X(
        "place:Q",
        title=None,
        scale=alt.Scale(domain=[0, 1], nice=False, zero=False),
        axis=alt.Axis(
            values=[0],
            labelExpr=f"{_NAMES}[datum.value]",
            labelAngle=-45,
            labelOverlap=True,
            labelFont="monospace",
            grid=False,
        ),
    )


def _ticks(points: Sequence[TrendPoint]) -> list[TrendPoint]:
    """Return points that are named on the axis, evenly among those that are drawn."""
    if len(points) <= _TICKS:
        return list(points)
    step = (len(points) - 1) / (_TICKS - 1)
    return [points[round(number * step)] for number in range(_TICKS)]


def _decision(point: TrendPoint) -> str:
    return point.decision if point.decision in _DECISIONS else "not judged"


def _value(point: TrendPoint) -> dict[str, Any]:
    """Return a point as the data of its marks: only what is seen."""
    value: dict[str, Any] = {
        "place": point.place,
        "commit": short(point.sha),
        "subject": one_line(point.subject, length_max=_SUBJECT_LENGTH_MAX),
        "date": point.committed_at.date().isoformat(),
        "ops_s": _digits(point.throughput_ops_s),
        "throughput": f"{rate(point.throughput_ops_s)} o/s",
        "low": _digits(point.lowest_ops_s),
        "high": _digits(point.highest_ops_s),
        "starts": f"{rate(point.lowest_ops_s)} to {rate(point.highest_ops_s)}",
        "decision": _decision(point),
        "ratio": ratio(point.ratio),
        "band_low": _digits(point.band_low_ops_s),
        "band_high": _digits(point.band_high_ops_s),
        "stretch": point.stretch,
        "level": _digits(point.level_ops_s),
    }
    seldom = {
        "baseline": point.baseline,
        "begins": point.begins,
        "host": one_line(point.host) if point.host else "",
        "alert": point.alert,
        "alert_link": point.alert_link,
        "link": point.link,
    }
    return value | {name: one for name, one in seldom.items() if one}


def _digits(value: float | None) -> float | None:
    """Return a number with more digits than a screen has pixels, and fewer than a float."""
    return None if value is None else float(f"{value:.8g}")
