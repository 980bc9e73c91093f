"""Part `knob`: how many rounds of the knob make a scan five percent slower, found by measuring.

It comes before the parts that plant a slowdown. It only has to be near: the true effect is the one
that all planted pairs together show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.instrument.rig import BASELINE, CANDIDATE, PLAIN, Sizes, found
from benchmarks.instrument.spread import percent
from benchmarks.instrument.unit import Unit
from detectors.errors import DataError
from detectors.pairwise import compare
from forkwatch.watching import LogProgress
from results.document import samples_of
from results.metric import THROUGHPUT
from runner import measure
from runner.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.instrument.ledger import Ledger, Record
    from benchmarks.instrument.rig import Rig

SCAN: Final = "scan"
#: The slowdown that is planted, as a log ratio of throughputs.
WANTED: Final = math.log(1 - 0.05)
#: Near enough: half a percent off the wanted effect changes what the planted pairs take little.
NEAR: Final = 0.005
#: One round is about a third of a nanosecond at a row of about 200 ns.
FIRST_ROUNDS: Final = 32
ROUNDS_MAX: Final = 4000
TRIES_MAX: Final = 3
#: Label of commits with the knob turned.
SLOW_LABEL: Final = "slow"


@dataclass(frozen=True, kw_only=True)
class Knob:
    """The part `knob`."""

    rig: Rig
    ledger: Ledger
    each: Sizes
    name: str = "knob"

    @property
    def sizes(self) -> dict[str, Any]:
        """What a try is measured with."""
        return self.rig.sizes(self.each)

    def units(self) -> Iterator[Unit]:
        """Give tries until one is near."""
        for number in range(TRIES_MAX):
            tries = self.ledger.of(self)
            if tries and abs(tries[-1]["effect"] - WANTED) <= NEAR:
                return
            yield Unit(key=f"try {number + 1}", measure=self._try)

    @property
    def rounds(self) -> int:
        """The rounds to plant: those of the last try where it was near, else what all suggest."""
        tries = self.ledger.of(self)
        if not tries:
            return FIRST_ROUNDS
        if abs(tries[-1]["effect"] - WANTED) <= NEAR:
            return int(tries[-1]["rounds"])
        return next_rounds(tries)

    @property
    def planted(self) -> str:
        """The slow commit.

        Raises:
            StageError: Nothing is known of the knob yet.
        """
        if not self.ledger.of(self):
            raise StageError("knob", "the knob was not tried, so nothing can be planted")
        return self.rig.fork.commit(rounds=self.rounds, label=SLOW_LABEL)

    def line(self, record: Record) -> str:
        """Return what a try found."""
        found_out = percent(record["effect"], record["low"], record["high"])
        return f"{record['rounds']} rounds: scan {found_out}"

    def report(self) -> str:
        """Return all tries."""
        lines = [f"  {self.line(record)}" for record in self.ledger.of(self)]
        return "\n".join(["knob: rounds per column copy, wanted -5 %", *lines])

    def _try(self) -> Record:
        rounds = self.rounds
        fork = self.rig.fork
        sides = {
            BASELINE: self.rig.spec(fork.commit(rounds=0, label=PLAIN), self.each),
            CANDIDATE: self.rig.spec(fork.commit(rounds=rounds, label=SLOW_LABEL), self.each),
        }
        with self.rig.bench(sides, self.each, seed=rounds + 1) as bench:
            starts = [
                measure.measure_start(bench, index, found([SCAN]), LogProgress())
                for index in range(self.each.starts)
            ]
        samples = [samples_of(starts, SCAN, THROUGHPUT.name, side) for side in sides]
        try:
            change = compare(*samples)
        except DataError as error:
            raise StageError("knob", f"every slice of a side was disturbed: {error}") from error
        return {
            "rounds": rounds,
            "effect": change.effect,
            "low": change.interval.low,
            "high": change.interval.high,
        }


def next_rounds(tries: Sequence[Record]) -> int:
    """Return the rounds that should give the wanted effect, as all tries together have it.

    The time of a row is linear in the rounds, so this is a straight line through zero, each try
    weighted by its interval. Where no slowdown was seen, eight times as many are tried.
    """
    rounds = np.array([one["rounds"] for one in tries], dtype=np.float64)
    slower = np.expm1([-one["effect"] for one in tries])
    weights = np.array([1.0 / (one["high"] - one["low"]) ** 2 for one in tries])
    most = min(ROUNDS_MAX, 8 * int(rounds[-1]))
    along = float(np.sum(weights * rounds * slower))
    if along <= 0:
        return most
    wanted = math.expm1(-WANTED) * float(np.sum(weights * rounds**2)) / along
    return max(1, min(most, round(wanted)))
