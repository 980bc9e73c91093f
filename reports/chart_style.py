"""What all charts share: colours, the scale around ordinary noise, legends, and the finish.

Altair charts come in, plain Vega-Lite dictionaries go out. Charts are as wide as their container
and have no background, so that they read in light and dark and on a phone.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Final

import altair as alt

from reports.numbers import FASTER_AT, SLOWER_AT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

HEIGHT: Final = 240

#: Colours with enough contrast on white and on near-black.
RED: Final = "#d1453b"
GREEN: Final = "#2f9e5b"
GREY: Final = "#808080"
BLUE: Final = "#4a86d8"


def domain_around(known: Sequence[float]) -> list[float]:
    """Return the ends of a scale with every value, and 5 % either side of the middle at least.

    The field's colours begin at 5 %; a closer look would make mountains of ordinary noise.
    """
    middle = median(known)
    return [min(*known, middle * SLOWER_AT), max(*known, middle * FASTER_AT)]


def legend_of(found: Collection[str], known: Sequence[str]) -> alt.Legend:
    """Return a legend of the known names that occur, in their order; colour and shape share it."""
    return alt.Legend(values=[name for name in known if name in found], title=None, columns=3)


def finish(chart: alt.LayerChart | alt.FacetChart, *, description: str) -> dict[str, Any]:
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
