"""Rows "SAP HANA": change points on builds of a real database, against what five people saw.

Scored as the data's README asks: events, matched one to one within 5 builds, over all series; the
share of series without a consensus change that get any alarm; families resampled for an interval.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.detection.data import sap_hana
from benchmarks.detection.ours import OURS, PERFHERDER
from benchmarks.detection.peers import OTAVA, PELT, SPA, Peer
from benchmarks.detection.row import Row, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.detection.data import Labelled
    from benchmarks.detection.ours import Local
    from benchmarks.detection.row import Settings

MARGIN: Final = 5
RESAMPLES: Final = 2000
OTAVA_FLOOR: Final = Peer(
    name="Otava, 2 % floor", environment="otava", setting={"min_magnitude": 0.02}
)
#: Permutations cost 0.5 s per series: a peer that is slow everywhere is asked here only.
PEERS: Final = (OTAVA, OTAVA_FLOOR, PELT, PERFHERDER, SPA)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Events of one series: matched, reported and true."""

    matched: int
    reported: int
    true: int
    family: int


def rows(settings: Settings) -> Iterator[Row]:
    """Return the dev fold and each half of its families; nothing without data."""
    if settings.data is None:
        return
    series = sap_hana(settings.data)
    # A shorter run looks at every so many series; the labels themselves cannot be made more.
    series = series[:: max(1, round(1.0 / settings.scale))]
    families = sorted({one.family for one in series})
    halves = {family: number % 2 for number, family in enumerate(families)}
    began = time.perf_counter()
    found = {
        peer.name: [tally(seen, one) for seen, one in zip(_seen(peer, series), series, strict=True)]
        for peer in (OURS, *PEERS)
    }
    seconds = time.perf_counter() - began
    rng = np.random.default_rng([settings.seed, 200])
    for fold in ("dev fold", "even families", "odd families"):
        keep = {
            family
            for family, half in halves.items()
            if fold == "dev fold" or half == ("even families", "odd families").index(fold)
        }
        chosen = {
            name: [one for one in tallies if one.family in keep] for name, tallies in found.items()
        }
        texts = {name: text(tallies, rng) for name, tallies in chosen.items()}
        yield Row(
            what=f"SAP HANA, {fold}: F1 (precision, recall); clean series alarmed",
            aim=">= .50, <= 15 %" if fold == "dev fold" else "-",
            ours=texts.pop(OURS.name),
            peers=texts,
            trials=f"{len(chosen[OURS.name])} series, {len(keep)} families",
            seconds=seconds if fold == "dev fold" else 0.0,
        )
    yield _people(series)


def _seen(detector: Local | Peer, series: Sequence[Labelled]) -> list[list[int]]:
    return detector.changes([one.values for one in series]).found


def tally(seen: Sequence[int], one: Labelled) -> Tally:
    """Match what was reported with the consensus."""
    return Tally(
        matched=matches(seen, one.truth),
        reported=len(seen),
        true=len(one.truth),
        family=one.family,
    )


def matches(reported: Sequence[int], true: Sequence[int]) -> int:
    """Return how many reports match a true change of their own, nearest pairs first."""
    near = sorted(
        (abs(report - change), report, change)
        for report in reported
        for change in true
        if abs(report - change) <= MARGIN
    )
    used: set[tuple[str, int]] = set()
    count = 0
    for _, report, change in near:
        if ("report", report) not in used and ("true", change) not in used:
            used |= {("report", report), ("true", change)}
            count += 1
    return count


def text(tallies: Sequence[Tally], rng: np.random.Generator) -> str:
    """F1 with the interval of families drawn again, precision and recall, clean series alarmed."""
    matched, reported, true = _sums(tallies)
    low, high = _interval(tallies, rng)
    clean = [one for one in tallies if not one.true]
    alarmed = sum(one.reported > 0 for one in clean)
    return (
        f"{_f1(matched, reported, true):.3f} [{low:.2f}, {high:.2f}] "
        f"(P {matched / max(1, reported):.2f}, R {matched / max(1, true):.2f}); "
        f"{alarmed} of {len(clean)}, {share(alarmed, len(clean))}"
    )


def _sums(tallies: Sequence[Tally]) -> tuple[int, int, int]:
    return (
        sum(one.matched for one in tallies),
        sum(one.reported for one in tallies),
        sum(one.true for one in tallies),
    )


def _f1(matched: float, reported: float, true: float) -> float:
    return 2.0 * matched / max(1.0, reported + true)


def _interval(tallies: Sequence[Tally], rng: np.random.Generator) -> tuple[float, float]:
    """Return the middle 95 % of F1 when whole families are drawn again."""
    families = sorted({one.family for one in tallies})
    sums = np.array([_sums([one for one in tallies if one.family == name]) for name in families])
    drawn = rng.integers(len(families), size=(RESAMPLES, len(families)))
    totals = sums[drawn].sum(axis=1)
    scores = 2.0 * totals[:, 0] / np.maximum(1, totals[:, 1] + totals[:, 2])
    low, high = np.quantile(scores, [0.025, 0.975])
    return float(low), float(high)


def _people(series: Sequence[Labelled]) -> Row:
    """Return each person against the consensus of two of the four others: what people manage."""
    began = time.perf_counter()
    totals = np.zeros(3)
    for one in series:
        for person, seen in enumerate(one.people):
            others = [other for number, other in enumerate(one.people) if number != person]
            truth = _consensus(others)
            totals += (matches(seen, truth), len(seen), len(truth))
    matched, reported, true = totals
    return Row(
        what="SAP HANA, one person against two of the four others",
        aim="-",
        ours="-",
        peers={
            "people": f"{_f1(matched, reported, true):.3f} "
            f"(P {matched / reported:.2f}, R {matched / true:.2f})"
        },
        trials=f"{len(series)} series",
        seconds=time.perf_counter() - began,
    )


def _consensus(people: Sequence[Sequence[int]]) -> list[int]:
    """Return changes that two people saw within the margin, each once, at the median of theirs."""
    marks = sorted((index, person) for person, seen in enumerate(people) for index in seen)
    found, start = [], 0
    while start < len(marks):
        end = start
        while end + 1 < len(marks) and marks[end + 1][0] - marks[start][0] <= MARGIN:
            end += 1
        group = marks[start : end + 1]
        if len({person for _, person in group}) > 1:
            found.append(round(float(np.median([index for index, _ in group]))))
        start = end + 1
    return found
