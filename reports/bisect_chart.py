"""The chart of a bisect: how probable each commit is, and what was measured of it.

A bisect document comes in, a plain Vega-Lite dictionary goes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from reports.bisect_tables import author_name, belief, shown_places
from reports.chart_style import BLUE, GREY, finish
from reports.markup import one_line
from reports.numbers import loss_percent, short

if TYPE_CHECKING:
    from bisects.document import BisectDocument


def bisect_chart(document: BisectDocument) -> dict[str, Any]:
    """Return the chart of the commits that matter, oldest first.

    Bars are probabilities; marks are the throughput beside the good end's, in percent more or
    less, with a line from the lowest to the highest start.
    """
    values = [_value(document, place) for place in shown_places(document)]
    chart = alt.Chart(alt.InlineData(values=values))
    x = alt.X(
        "commit:O",
        sort=[value["commit"] for value in values],
        title=None,
        axis=alt.Axis(labelAngle=-45, labelOverlap=True, labelFont="monospace"),
    )
    tooltip = [
        alt.Tooltip("commit:O"),
        alt.Tooltip("subject:N"),
        alt.Tooltip("author:N"),
        alt.Tooltip("state:N"),
        alt.Tooltip("starts:Q"),
        alt.Tooltip("throughput:N"),
        alt.Tooltip("believed:N", title="probability"),
    ]
    bars = chart.mark_bar(color=GREY, opacity=0.45).encode(
        x=x,
        y=alt.Y(
            "probability:Q",
            title="probability of being the first",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(format="%", grid=False),
        ),
        tooltip=tooltip,
    )
    workload = one_line(document.question.workload)
    title = f"{workload}, % beside the good end"
    spread = chart.mark_rule(color=BLUE, strokeWidth=2, opacity=0.7).encode(
        x=x, y=alt.Y("low:Q", title=title), y2="high:Q"
    )
    marks = chart.mark_point(color=BLUE, filled=True, size=80, opacity=1).encode(
        x=x, y=alt.Y("change:Q", title=title), tooltip=tooltip
    )
    description = f"How probably each commit changed {workload}, and what was measured of it."
    layers = alt.layer(bars, alt.layer(marks, spread)).resolve_scale(y="independent")
    return finish(layers, description=description)


def _value(document: BisectDocument, place: int) -> dict[str, Any]:
    commit = document.commits[place]
    starts = [
        -loss_percent(value)
        for observation in document.observations
        if observation.commit == place
        for value in observation.log_ratios
    ]
    # The good end is the level that everything is told beside.
    change = 0.0 if place == 0 else None
    if commit.effect is not None:
        change = -loss_percent(commit.effect)
    return {
        "commit": short(commit.sha),
        "subject": one_line(commit.subject, length_max=80),
        "author": one_line(author_name(commit.author), length_max=40),
        "state": "good end" if place == 0 else commit.state.value,
        "starts": commit.starts,
        "probability": commit.posterior if place else 0.0,
        "believed": belief(commit.posterior) if place else "",
        "change": change,
        "low": min(starts, default=None),
        "high": max(starts, default=None),
        "throughput": "" if change is None else f"{change:+.1f} %",
    }
