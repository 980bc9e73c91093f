"""Part `aa`: one artifact against itself, our alternation against one long run per side.

A repetition measures both ways, each in turn first, with the same seconds inside slices: a few
starts in which slices of two servers alternate, and one start with one slice for each side, side
after side, as benchmarks are usually run. Out come the log ratios, all of which should be zero.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.detection.row import markdown
from benchmarks.instrument.rig import BASELINE, CANDIDATE, PLAIN, Sizes, found
from benchmarks.instrument.spread import Spread, pooled, sd_ratio, spread
from benchmarks.instrument.unit import Unit
from detectors.errors import DataError
from detectors.pairwise import compare
from forkwatch.watching import LogProgress
from results.document import samples_of
from results.metric import THROUGHPUT
from runner import measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.instrument.ledger import Ledger, Record
    from benchmarks.instrument.rig import Rig

OURS, LONG = "alternation", "long run"


@dataclass(frozen=True, kw_only=True)
class Alternation:
    """The part `aa`."""

    rig: Rig
    ledger: Ledger
    each: Sizes
    repetitions: int
    #: Length of the long run's slices; all slices of one side together where 0.
    long_seconds: int = 0
    name: str = "aa"

    @property
    def seconds(self) -> int:
        """Length of the one slice of the long run."""
        return self.long_seconds or self.each.starts * self.each.slices * self.each.seconds

    @property
    def sizes(self) -> dict[str, Any]:
        """Without the repetitions: more of them go on from those that are there."""
        return {**self.rig.sizes(self.each), "long": self.seconds}

    def units(self) -> Iterator[Unit]:
        """Give the repetitions."""
        for number in range(self.repetitions):
            yield Unit(key=f"repetition {number + 1}", measure=partial(self._both, number))

    def line(self, record: Record) -> str:
        """Return the log ratios of a repetition in percent."""
        told = [
            f"{workload} {_percent(record[OURS]['effects'][workload])} "
            f"(long run {_percent(record[LONG]['effects'][workload])})"
            for workload in record[OURS]["effects"]
        ]
        return ", ".join(told)

    def report(self) -> str:
        """Return sd of both ways by workload and pooled, and what they took."""
        records = self.ledger.of(self)
        rows = []
        spreads: dict[str, list[Spread]] = {OURS: [], LONG: []}
        for workload in self.each.workloads:
            values = {way: self._values(records, way, workload) for way in spreads}
            for way, of_way in spreads.items():
                of_way.append(spread(values[way]))
            told = (_mean_and_sd(values[way]) for way in spreads)
            ratio = sd_ratio(spreads[OURS][-1], spreads[LONG][-1])
            rows.append((workload, str(len(values[OURS])), *told, ratio.text()))
        every = {way: pooled(of_way) for way, of_way in spreads.items()}
        told = (f"sd {100 * one.sd:.3f} %" for one in every.values())
        ratio = sd_ratio(every[OURS], every[LONG])
        rows.append(("all, pooled", f"df {every[OURS].df}", *told, ratio.text()))
        title = (
            f"aa: one artifact against itself; {self.each.starts} starts x {self.each.slices} "
            f"slices x {self.each.seconds} s alternating, against one slice of {self.seconds} s "
            "per side (aim: ratio of sds at most 0.33)"
        )
        headings = ("workload", "repetitions", OURS, LONG, "ratio of sds [95 %, F]")
        took = [self._took(records, way) for way in spreads]
        return "\n".join([title, markdown(rows, headings), *took])

    @staticmethod
    def _values(records: list[Record], way: str, workload: str) -> list[float]:
        values = [record[way]["effects"].get(workload) for record in records]
        return [value for value in values if value is not None]

    @staticmethod
    def _took(records: list[Record], way: str) -> str:
        wall = sum(record[way]["wall_s"] for record in records) / max(1, len(records))
        inside = sum(record[way]["measured_s"] for record in records) / max(1, len(records))
        return f"  {way}: {wall:.0f} s per repetition, of them {inside:.0f} s inside slices"

    def _both(self, number: int) -> Record:
        spec = self.rig.spec(self.rig.fork.commit(rounds=0, label=PLAIN), self.each)
        sides = {BASELINE: spec, CANDIDATE: spec}
        ways = {OURS: self._alternate, LONG: self._long}
        # Who goes first meets another host: both get their turn.
        names = (OURS, LONG) if number % 2 == 0 else (LONG, OURS)
        record: Record = {}
        with self.rig.bench(sides, self.each, seed=number + 1) as bench:
            for name in names:
                began = time.monotonic()
                record[name] = ways[name](bench, number)
                record[name]["wall_s"] = time.monotonic() - began
        return record

    def _alternate(self, bench: measure.Bench, _number: int) -> Record:
        workloads = found(self.each.workloads)
        starts = [
            measure.measure_start(bench, index, workloads, LogProgress())
            for index in range(self.each.starts)
        ]
        effects: dict[str, float | None] = {}
        for name in self.each.workloads:
            sides = [samples_of(starts, name, THROUGHPUT.name, side) for side in bench.servers]
            try:
                effects[name] = compare(*sides).effect
            except DataError:
                # The host disturbed every slice of a side.
                effects[name] = None
        return {"effects": effects, "measured_s": sum(start.measured_seconds for start in starts)}

    def _long(self, bench: measure.Bench, number: int) -> Record:
        """Measure one side after the other, without looking for disturbances, as is usual."""
        suite = bench.suite.model_copy(update={"slices": 1, "seconds": self.seconds})
        workloads = found(self.each.workloads)
        levels: dict[Any, dict[str, float]] = {}
        measured_s = 0.0
        for side in (BASELINE, CANDIDATE) if number // 2 % 2 == 0 else (CANDIDATE, BASELINE):
            alone = replace(
                bench,
                suite=suite,
                servers={side: bench.servers[side]},
                snapshots={side: bench.snapshots[side]},
                limits=None,
            )
            # An index that no alternating start has, and so other keys; the same for both sides.
            start = measure.measure_start(alone, self.each.starts, workloads, LogProgress())
            levels[side] = {piece.workload: piece.throughput_ops_s for piece in start.slices}
            measured_s += start.measured_seconds
        effects = {
            name: math.log(levels[CANDIDATE][name] / levels[BASELINE][name])
            for name in self.each.workloads
        }
        return {"effects": effects, "measured_s": measured_s}


def _mean_and_sd(values: list[float]) -> str:
    if not values:
        return "-"
    mean = sum(values) / len(values)
    return f"sd {100 * spread(values).sd:.3f} %, mean {_percent(mean)}"


def _percent(effect: float | None) -> str:
    return "no sample" if effect is None else f"{100 * effect:+.2f} %"
