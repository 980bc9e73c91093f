"""Part `pairs`: sequential stopping on real pairs, of equal artifacts and of a planted slowdown.

Each pair is a job of its own with its own seed. Out come verdicts, starts, and the machine time
against the fixed plan, which measures every start that the sequential one may.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.detection.row import markdown, share
from benchmarks.instrument.job_facts import facts
from benchmarks.instrument.knob import SCAN, Knob
from benchmarks.instrument.rig import PLAIN, TWIN, Sizes
from benchmarks.instrument.spread import median_of, percent, pooled_effect
from benchmarks.instrument.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.instrument.ledger import Ledger, Record
    from benchmarks.instrument.rig import Rig

EQUAL, PLANTED = "A/A", "planted"
#: A verdict that is wrong, whatever the noise; `inconclusive` is none.
WRONG: Final = {
    EQUAL: ("regression", "improvement"),
    PLANTED: ("no-change", "improvement"),
}
HEADINGS: Final = (
    "pairs",
    "number",
    "gate",
    "wrong [95 %]",
    "verdicts",
    "starts, median [95 %]",
    "time to decision, median [95 %]",
    "p90",
    "machine minutes",
    "fixed plan",
    "share",
)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The part `pairs`."""

    rig: Rig
    ledger: Ledger
    each: Sizes
    knob: Knob
    #: Pairs of each kind.
    number: int
    #: At the usual gate a planted 5 % would be neither clearly relevant nor clearly not.
    planted_gate: float
    name: str = "pairs"

    @property
    def sizes(self) -> dict[str, Any]:
        """Without the number of pairs: more of them go on from those that are there."""
        return {**self.rig.sizes(self.each), "planted gate": self.planted_gate}

    def units(self) -> Iterator[Unit]:
        """Give the pairs, one of each kind in turn, so that both meet the same host."""
        for number in range(self.number):
            for kind in (EQUAL, PLANTED):
                yield Unit(
                    key=f"{kind} {number + 1}",
                    measure=partial(self._one, kind, number),
                )

    def line(self, record: Record) -> str:
        """Return how a pair ended."""
        seen = record["workloads"].get(SCAN)
        if seen is None:
            return f"{_why_none(record)}, {record['wall_s']:.0f} s"
        return (
            f"{seen['verdict']} after {seen['starts']} starts, {record['wall_s']:.0f} s, "
            f"{percent(seen['effect'], seen['low'], seen['high'])}"
        )

    def report(self) -> str:
        """Return verdicts and times of both kinds."""
        records = self.ledger.of(self)
        kinds = {kind: [one for one in records if one["kind"] == kind] for kind in (EQUAL, PLANTED)}
        rows = [self._row(kind, some) for kind, some in kinds.items()]
        title = (
            f"pairs: sequential stopping on scan, at most {self.each.starts} starts of "
            f"{self.each.slices} slices x {self.each.seconds} s per side"
        )
        lines = [title, markdown(rows, HEADINGS)]
        seen = _judged(kinds[PLANTED])
        if seen:
            true = pooled_effect([one["effect"] for one in seen], [one["starts"] for one in seen])
            told = percent(true.value, true.low, true.high)
            lines.append(f"  true effect of the planted slowdown, all their starts pooled: {told}")
        return "\n".join(lines)

    def _row(self, kind: str, records: list[Record]) -> tuple[str, ...]:
        gate = self.each.gate if kind == EQUAL else self.planted_gate
        if not records:
            return (kind, "0", f"{gate:.0%}", *["-"] * 8)
        seen = _judged(records)
        verdicts = [one["verdict"] for one in seen]
        wrong = sum(verdict in WRONG[kind] for verdict in verdicts)
        # What the runner distrusts is no verdict and no mistake, and it took its time.
        endings = [*verdicts, *(_why_none(one) for one in records if not _judged([one]))]
        told = ", ".join(f"{endings.count(one)} {one}" for one in sorted(set(endings)))
        walls = [record["wall_s"] for record in records]
        middle, starts = median_of(walls), median_of([one["starts"] for one in seen])
        fixed = sum(self.fixed_s(record) for record in records)
        return (
            kind,
            str(len(records)),
            f"{gate:.0%}",
            f"{wrong}: {share(wrong, len(records))}",
            told,
            starts.text("g"),
            f"{middle.text('.0f')} s",
            f"{np.quantile(walls, 0.9):.0f} s",
            f"{sum(walls) / 60:.1f}",
            f"{fixed / 60:.1f}",
            f"{sum(walls) / fixed:.0%}",
        )

    def fixed_s(self, record: Record) -> float:
        """Return the seconds of all planned starts, at what a start of this pair has taken."""
        ends = record["starts_s"]
        return float(record["wall_s"] - ends[-1] + self.each.starts * ends[-1] / len(ends))

    def _one(self, kind: str, number: int) -> Record:
        fork = self.rig.fork
        candidate = fork.commit(rounds=0, label=TWIN) if kind == EQUAL else self.knob.planted
        gate = self.each.gate if kind == EQUAL else self.planted_gate
        done = self.rig.pair(
            f"pair-{kind.lower().replace('/', '')}-{number}",
            fork.commit(rounds=0, label=PLAIN),
            candidate,
            replace(self.each, workloads=(SCAN,), gate=gate),
            seed=number + 1,
        )
        return {"kind": kind, **facts(done)}


def _judged(records: list[Record]) -> list[Record]:
    return [record["workloads"][SCAN] for record in records if SCAN in record["workloads"]]


def _why_none(record: Record) -> str:
    return "unstable" if record["outcome"] == "unstable" else "every slice disturbed"
