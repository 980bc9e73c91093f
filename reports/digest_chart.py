"""The chart of a week: how far each workload moved, with its interval, so that one look is enough.

The facts of a digest come in as they are stored, a Vega-Lite dictionary goes out; the page of the
week draws it, Slack gets the same as a picture.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import altair as alt

from reports.chart_style import GREEN, GREY, RED, finish
from reports.markup import one_line
from reports.numbers import loss_percent, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Rows of the chart; a picture of more is not read, and the text has all of them.
ROWS_MAX: Final = 16
#: Of those, commits of the week; where workloads stand gets the rest.
_MOVES_MAX: Final = 8
#: Of a workload, so that the numbers get most of a phone's width.
_NAME_LENGTH_MAX: Final = 28
_ROW_HEIGHT: Final = 26
#: The picture of one row is not a strip.
_HEIGHT_MIN: Final = 90
_WORDS: Final = ("slower", "faster")
_TITLE: Final = "change of throughput, %"
#: Of the axis; more are a grid that nobody reads off.
_TICKS: Final = 8


def digest_chart(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the chart of a week's facts; None where nothing moved.

    Args:
        facts: Those of `digest_text.digest_document`; weeks that were written before it had a part
            have none of it.
    """
    rows = _rows(facts)
    if not rows:
        return None
    order = [row["what"] for row in rows]
    chart = alt.Chart(alt.InlineData(values=rows))
    y = alt.Y("what:N", sort=order, title=None, axis=alt.Axis(labelLimit=200, ticks=False))
    colour = alt.Color(
        "word:N", scale=alt.Scale(domain=list(_WORDS), range=[RED, GREEN]), legend=None
    )
    zero = (
        alt.Chart(alt.InlineData(values=[{"percent": 0}]))
        .mark_rule(color=GREY)
        .encode(x=_x("percent"))
    )
    spread = chart.mark_rule(strokeWidth=3, opacity=0.6).encode(
        y=y, x=_x("low"), x2="high:Q", color=colour
    )
    marks = chart.mark_point(filled=True, size=110, opacity=1).encode(
        y=y,
        x=_x("percent"),
        color=colour,
        shape=alt.Shape(
            "word:N",
            scale=alt.Scale(domain=list(_WORDS), range=["triangle-left", "triangle-right"]),
            legend=None,
        ),
        tooltip=[alt.Tooltip("what:N"), alt.Tooltip("said:N", title="change")],
    )
    said = f"What moved in week {one_line(str(facts.get('week', '')))}, in percent of throughput."
    spec = finish(alt.layer(zero, spread, marks), description=said)
    return spec | {"height": max(_HEIGHT_MIN, _ROW_HEIGHT * len(rows))}


def _x(field: str) -> alt.X:
    return alt.X(f"{field}:Q", title=_TITLE, axis=alt.Axis(tickCount=_TICKS))


def _rows(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is drawn, from top to bottom; of two by one name the first."""
    moves = list(_moves(facts))[:_MOVES_MAX]
    rows: dict[str, dict[str, Any]] = {}
    for row in (*moves, *_standings(facts), *_drifts(facts)):
        if math.isfinite(row["high"] - row["low"]):
            rows.setdefault(row["what"], row)
    return list(rows.values())[:ROWS_MAX]


def _moves(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give what commits of the week moved, in the order of the text."""
    for commit in (*_listed(facts, "slower"), *_listed(facts, "faster")):
        for move in _listed(commit, "moves"):
            yield _row(f"{_name(move)} at {short(commit['sha'])}", move)


def _standings(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give where workloads stand against an old commit."""
    reference = facts.get("reference") or {}
    for one in _listed(reference, "standings"):
        yield _row(f"{_name(one)} since {short(reference['sha'])}", one)


def _drifts(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the slow changes that no gate saw."""
    for one in _listed(facts, "drifted"):
        yield _row(f"{_name(one)}, drift", one)


def _listed(facts: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    found = facts.get(name) or ()
    return tuple(found)


def _name(one: Mapping[str, Any]) -> str:
    setting = f" ({one['setting']})" if one.get("setting") else ""
    return one_line(f"{one['workload']}{setting}", length_max=_NAME_LENGTH_MAX)


def _row(what: str, one: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row: the size in percent, losses to the left."""
    interval = one["interval"]
    percent = _percent(one["effect"])
    low, high = _percent(interval["low"]), _percent(interval["high"])
    return {
        "what": what,
        "percent": percent,
        "low": low,
        "high": high,
        "word": "slower" if one["effect"] < 0 else "faster",
        "said": f"{percent:+.1f} % ({low:+.1f} to {high:+.1f})",
    }


def _percent(log_ratio: float) -> float:
    return round(-loss_percent(log_ratio), 2)
