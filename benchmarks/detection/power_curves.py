"""Rows "power on real noise": steps of 0.5 to 10 % planted into series in which nothing changed.

Found means a change within 5 points of the planted one when the whole series is looked at once; a
false alarm is any change in the series before anything was planted. With `--charts`, the curves are
drawn too.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import numpy as np

from benchmarks.detection.data import still_series
from benchmarks.detection.ours import OURS, PERFHERDER
from benchmarks.detection.peers import OTAVA, PELT, split
from benchmarks.detection.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.detection.row import Settings

#: Relative sizes, losses and gains in turn.
STEPS: Final = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
NEAR: Final = 5
DRAWN: Final = 100
#: Series used of each source.
SERIES: Final = 100
DETECTORS: Final = (OURS, OTAVA, PELT, PERFHERDER)


def rows(settings: Settings) -> Iterator[Row]:
    """Return one row for each source of noise; nothing without data."""
    if settings.data is None:
        return
    began = time.perf_counter()
    cases = _cases(settings, settings.data)
    asked = [series for case in cases for series in case.series]
    counts = [len(case.series) for case in cases]
    found = {detector.name: split(detector.changes(asked).found, counts) for detector in DETECTORS}
    told: dict[tuple[str, str], list[float]] = {}
    for name, answers in found.items():
        for case, seen in zip(cases, answers, strict=True):
            told.setdefault((case.source, name), []).append(case.found(seen))
    seconds = time.perf_counter() - began
    sources = {case.source: len(case.series) for case in cases if not case.size}
    for source, still in sources.items():
        theirs = {one.name: _text(told[source, one.name]) for one in DETECTORS[1:]}
        steps = next(len(case.series) for case in cases if case.source == source and case.size)
        yield Row(
            what=f"{source}: alarmed unplanted; % of steps of {_sizes()} % found",
            aim="-",
            ours=_text(told[source, OURS.name]),
            peers=theirs,
            trials=f"{still} series, {steps} steps of each size",
            seconds=seconds / len(sources),
        )
    if settings.charts is not None:
        settings.charts.mkdir(parents=True, exist_ok=True)
        (settings.charts / "power-curves.vl.json").write_text(json.dumps(chart(told)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Series of one source with a step of one size each; size 0 is the series as they were."""

    source: str
    size: float
    series: list[NDArray[np.float64]]
    places: list[int]

    def found(self, seen: Sequence[Sequence[int]]) -> float:
        """Return the share of steps found; of the series as they were, the share alarmed."""
        if not self.size:
            return float(np.mean([bool(changes) for changes in seen]))
        near = [
            any(abs(index - place) <= NEAR for index in changes)
            for changes, place in zip(seen, self.places, strict=True)
        ]
        return float(np.mean(near))


def _cases(settings: Settings, data: Path) -> list[Case]:
    """Return for each source the still series, then each size of step planted into them."""
    rng = np.random.default_rng([settings.seed, 300])
    cases = []
    for source, known in still_series(data, rng, drawn=settings.trials(DRAWN)).items():
        series = [known[index] for index in rng.permutation(len(known))[: settings.trials(SERIES)]]
        cases.append(Case(source=source, size=0.0, series=series, places=[]))
        cases += [_plant(rng, cases[-1], size) for size in STEPS]
    return cases


def chart(told: Mapping[tuple[str, str], Sequence[float]]) -> dict[str, Any]:
    """Return the curves as Vega-Lite, one panel for each source."""
    points = [
        {"source": source, "detector": detector, "step": 100 * size, "found": found}
        for (source, detector), shares in told.items()
        for size, found in zip((0.0, *STEPS), shares, strict=True)
    ]
    curves = alt.Chart().encode(
        x=alt.X("step:Q", title="planted step, percent; at 0 any alarm"),
        y=alt.Y("found:Q", title="share found"),
        color=alt.Color("detector:N", title=None),
    )
    # False alarms are no point of the power curve: not joined to it.
    lines = alt.layer(
        curves.mark_line().transform_filter("datum.step > 0"),
        curves.mark_point(filled=True),
        data=alt.InlineData(values=points),
    )
    panels = lines.properties(width=220, height=160).facet(
        facet=alt.Facet("source:N", title=None), columns=3
    )
    spec: dict[str, Any] = panels.to_dict()
    return spec


def _plant(rng: np.random.Generator, still: Case, size: float) -> Case:
    """Plant one step into the middle half of each series; few series get several copies."""
    copies = max(1, math.ceil(SERIES / 2 / len(still.series)))
    values, places = [], []
    for one in still.series:
        for sign in rng.choice([-1.0, 1.0], size=copies):
            place = int(rng.integers(one.size // 4, 3 * one.size // 4))
            moved = one.copy()
            moved[place:] *= 1.0 + sign * size
            values.append(moved)
            places.append(place)
    return Case(source=still.source, size=size, series=values, places=places)


def _sizes() -> str:
    return " / ".join(f"{100 * size:g}" for size in STEPS)


def _text(shares: Sequence[float]) -> str:
    alarmed, *power = (f"{100 * one:.0f}" for one in shares)
    return f"{alarmed} %; {' / '.join(power)}"
