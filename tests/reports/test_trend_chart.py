from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import altair as alt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.charts import png
from reports.thinning import Span, kept
from reports.trend_chart import COMMITS, TrendPoint, trend_chart
from tests.fakes.run_documents import AT, sha


def a_point(
    place: int, throughput: float, *, decision: str = "no-change", **more: Any
) -> TrendPoint:
    return TrendPoint(
        place=place,
        sha=more.pop("sha", f"{place:040x}"),
        subject=more.pop("subject", "A change"),
        committed_at=AT,
        throughput_ops_s=throughput,
        lowest_ops_s=throughput * 0.99,
        highest_ops_s=throughput * 1.01,
        decision=decision,
        **more,
    )


def a_trend() -> dict[str, Any]:
    return trend_chart(
        [
            a_point(0, 2.0, decision="not judged", level_ops_s=2.0, sha=sha("1")),
            a_point(1, 2.01, band_low_ops_s=1.94, band_high_ops_s=2.06, ratio=1.0, level_ops_s=2.0),
            a_point(
                2,
                1.82,
                decision="regression",
                ratio=0.909,
                stretch=1,
                level_ops_s=1.82,
                baseline=True,
                begins=True,
                host="bench-1 before, bench-2 from here on",
                alert="confirmed",
                alert_link="/alerts/alert-1",
                link="/forks/demo/commits/3",
            ),
        ],
        workload="scan",
    )


def values_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    (values,) = spec["datasets"].values()
    return list(values)


def test_a_trend_is_valid_vega_lite_of_plain_json_and_can_be_drawn() -> None:
    spec = a_trend()

    alt.Chart.from_dict(spec, validate=True)
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert (spec["width"], spec["background"]) == ("container", "transparent")
    assert png(spec).startswith(b"\x89PNG")


def test_a_trend_says_what_happened_where_and_keeps_the_order() -> None:
    first, _, last = values_of(a_trend())

    assert (first["commit"], first["decision"], first["band_low"]) == (
        "11111111",
        "not judged",
        None,
    )
    assert {"baseline", "begins", "host", "alert", "link"}.isdisjoint(first)
    assert (last["place"], last["ratio"], last["stretch"]) == (2, "0.909", 1)
    assert last["baseline"]
    assert last["begins"]
    assert last["alert"] == "confirmed"
    assert last["alert_link"] == "/alerts/alert-1"
    assert last["host"] == "bench-1 before, bench-2 from here on"


def test_the_layer_that_the_script_looks_for_is_there_once() -> None:
    named = [layer for layer in a_trend()["layer"] if layer.get("name") == COMMITS]

    assert len(named) == 1
    assert named[0]["mark"]["type"] == "point"


def test_commits_lie_by_their_place_however_few_are_drawn() -> None:
    places = [0, 40, 41, 999]
    spec = trend_chart([a_point(place, 2.0) for place in places], workload="scan")

    (x,) = {json.dumps(layer["encoding"]["x"], sort_keys=True) for layer in spec["layer"]}
    axis = json.loads(x)
    assert axis["scale"]["domain"] == [-0.5, 999.5]
    assert axis["axis"]["values"] == places
    (names,) = [one["value"] for one in spec["params"] if one["name"] == "names"]
    assert list(names) == ["0", "40", "41", "999"]


def test_many_commits_have_few_names_on_the_axis_and_the_ends_among_them() -> None:
    spec = trend_chart([a_point(place, 2.0) for place in range(500)], workload="scan")

    (names,) = [one["value"] for one in spec["params"] if one["name"] == "names"]
    assert len(names) == 12
    assert {"0", "499"} <= names.keys()


def test_a_trend_of_nothing_is_valid_too() -> None:
    alt.Chart.from_dict(trend_chart([], workload="scan"), validate=True)


def test_hostile_words_are_cut_and_cleaned() -> None:
    (value,) = values_of(
        trend_chart([a_point(0, 2.0, subject="\u202e" + "x" * 500, host="a\nb")], workload="s")
    )

    assert len(value["subject"]) == 80
    assert "\u202e" not in value["subject"]
    assert value["host"] == "a b"


def a_span(level: float) -> Span:
    return Span(low=level - 0.1, level=level, high=level + 0.1)


def test_few_points_are_all_drawn() -> None:
    assert kept([a_span(1.0)] * 7, limit=10) == list(range(7))
    assert kept([]) == []


def test_of_many_points_those_that_stand_out_are_drawn() -> None:
    spans = [a_span(2.0) for _ in range(5_000)]
    spans[1234] = a_span(1.0)
    spans[2345] = a_span(3.0)
    spans[3456] = Span(low=0.1, level=2.0, high=2.1)
    spans[4321] = Span(low=1.9, level=2.0, high=9.0)

    drawn = kept(spans, always={77})

    assert {0, 77, 1234, 2345, 3456, 4321, 4_999} <= set(drawn)
    assert len(drawn) <= 1_003
    assert drawn == sorted(set(drawn))


@given(
    levels=st.lists(st.floats(min_value=0.1, max_value=1e6), max_size=200),
    limit=st.integers(min_value=4, max_value=50),
)
def test_the_extremes_are_never_hidden(levels: list[float], limit: int) -> None:
    spans = [a_span(level) for level in levels]

    drawn = [spans[place].level for place in kept(spans, limit=limit)]

    if levels:
        assert (min(drawn), max(drawn)) == (min(levels), max(levels))
    assert len(drawn) <= max(len(levels) if len(levels) <= limit else 0, limit + 2)


@pytest.mark.parametrize("count", [1_001, 1_003, 4_999])
def test_every_stretch_of_neighbours_keeps_its_own(count: int) -> None:
    # A saw: its teeth must still be there when it is drawn.
    spans = [a_span(2.0 + place % 20) for place in range(count)]

    drawn = kept(spans)

    gaps = [after - before for before, after in pairwise(drawn)]
    assert max(gaps) <= 2 * count / 250 + 1


def test_a_decision_unknown_here_is_drawn_as_not_judged() -> None:
    (value,) = values_of(trend_chart([a_point(0, 1.0, decision="<script>")], workload="scan"))

    assert value["decision"] == "not judged"


def test_noise_is_not_blown_up_and_two_workloads_do_not_share_their_ends() -> None:
    for level in (100.0, 2.0):
        spec = trend_chart([a_point(0, level), a_point(1, level * 1.001)], workload="scan")

        ends = {
            tuple(layer["encoding"]["y"]["scale"]["domain"])
            for layer in spec["layer"]
            if "scale" in layer["encoding"].get("y", {})
        }
        ((low, high),) = ends
        assert low <= level * 0.951
        assert high >= level * 1.05
