"""Part `suite`: a warm `commit` suite on two artifacts: where its time goes, and when it knows.

One job of equal artifacts and one with the planted slowdown, both after a job that built and loaded
everything, so that nothing is left to prepare but what every job prepares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.detection.row import markdown
from benchmarks.instrument.job_facts import facts
from benchmarks.instrument.knob import SCAN, Knob
from benchmarks.instrument.pairs import EQUAL, PLANTED
from benchmarks.instrument.rig import BASELINE, CANDIDATE, PLAIN, TWIN, Sizes
from benchmarks.instrument.spread import percent
from benchmarks.instrument.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.instrument.ledger import Ledger, Record
    from benchmarks.instrument.rig import Rig


@dataclass(frozen=True, kw_only=True)
class WarmSuite:
    """The part `suite`."""

    rig: Rig
    ledger: Ledger
    each: Sizes
    knob: Knob
    planted_gate: float
    name: str = "suite"

    @property
    def sizes(self) -> dict[str, Any]:
        """What the suite is."""
        return {**self.rig.sizes(self.each), "planted gate": self.planted_gate}

    def units(self) -> Iterator[Unit]:
        """Give the two jobs."""
        for kind in (EQUAL, PLANTED):
            yield Unit(key=kind, measure=partial(self._one, kind))

    def line(self, record: Record) -> str:
        """Return when each workload was decided, and how."""
        told = [
            f"{name} {seen['verdict']} at {seen['decided_s']:.0f} s"
            for name, seen in record["workloads"].items()
        ]
        busy = record["shares_s"]["measuring"] / record["wall_s"]
        return f"{', '.join(told) or record['outcome']}; {1 - busy:.0%} not measuring"

    def report(self) -> str:
        """Return the stages of both jobs, and when each workload was decided."""
        records = self.ledger.of(self)
        stages = list(dict.fromkeys(name for one in records for name in one["shares_s"]))
        rows = []
        for record in records:
            wall = record["wall_s"]
            cells = [f"{record['shares_s'].get(name, 0):.1f} s" for name in stages]
            measuring = record["shares_s"]["measuring"]
            rows.append((record["kind"], f"{wall:.1f} s", *cells, f"{1 - measuring / wall:.1%}"))
        decided = [
            (
                record["kind"],
                name,
                seen["verdict"],
                seen["stop"],
                str(seen["starts"]),
                f"{seen['decided_s']:.0f} s",
                percent(seen["effect"], seen["low"], seen["high"]),
            )
            for record in records
            for name, seen in record["workloads"].items()
        ]
        title = (
            f"suite: a warm pair, {self.each.slices} slices x {self.each.seconds} s, at most "
            f"{self.each.starts} starts (aim: at most 20 % of the wall time not measuring)"
        )
        wheres = markdown(rows, ("pair", "wall", *stages, "not measuring"))
        headings = ("pair", "workload", "verdict", "stopped for", "starts", "known at")
        return "\n".join([title, wheres, "", markdown(decided, (*headings, "effect [95 %]"))])

    def _one(self, kind: str) -> Record:
        fork = self.rig.fork
        baseline = fork.commit(rounds=0, label=PLAIN)
        candidate = fork.commit(rounds=0, label=TWIN) if kind == EQUAL else self.knob.planted
        gates = {SCAN: self.planted_gate} if kind == PLANTED else {}
        sizes = replace(self.each, gates=gates)
        sides = {
            BASELINE: self.rig.spec(baseline, sizes),
            CANDIDATE: self.rig.spec(candidate, sizes),
        }
        # Loads the dataset where it is missing, so that the job finds everything warm.
        with self.rig.bench(sides, sizes, seed=1):
            pass
        done = self.rig.pair(
            f"suite-{kind.lower().replace('/', '')}", baseline, candidate, sizes, seed=1
        )
        return {"kind": kind, **facts(done)}
