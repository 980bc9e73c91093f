"""Kills the service before, inside and after each step of each flow, and looks at what is left.

Each scene is lived once unharmed; the moments of its steps are written down. Then it is lived again
for each moment, killed there with SIGKILL, started again, and what it left is compared: what is
there once has to be there once. Later rounds kill twice or more, at moments that a seed draws.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.service_kills.effects import difference, shortened
from benchmarks.service_kills.rig import Rig
from benchmarks.service_kills.scenes import SCENES
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.slack_api import SlackServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.service_kills.rig import Lived, Point, Template

#: Kills of one life of a store in later rounds, at most.
KILLS_MAX: Final = 3
#: Faults of one scene that are told in words.
TOLD_MAX: Final = 10
_USAGE: Final = "python -m benchmarks.service_kills"
_FIGURES: Final = ("steps", "points", "kills", "lost", "double", "stuck")


@dataclass(kw_only=True)
class Tally:
    """What came of one scene."""

    scene: str
    steps: int
    points: int
    kills: int = 0
    lost: int = 0
    double: int = 0
    #: Lives that did not come to their end.
    stuck: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, points: Sequence[Point], unharmed: Counter[str], lived: Lived) -> None:
        """Count a life with kills."""
        self.kills += len(lived.killed)
        where = " then ".join(f"{p.step}:{p.moment}:{p.count}" for p in points)
        if lived.trouble:
            self.stuck += 1
            self.faults.append(f"killed at {where}: {lived.trouble}")
            return
        found = difference(unharmed, lived.effects)
        self.lost += len(found.lost)
        self.double += len(found.double)
        self.faults += [f"killed at {where}: lost {shortened(one)}" for one in found.lost]
        self.faults += [f"killed at {where}: too much {shortened(one)}" for one in found.double]


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A scene that was lived unharmed."""

    template: Template
    points: list[Point]
    unharmed: Counter[str]
    tally: Tally


def prepared(rig: Rig, names: Sequence[str]) -> Iterator[Ready]:
    """Give the scenes of these names, each after it was lived unharmed twice."""
    for scene in SCENES:
        if names and scene.name not in names:
            continue
        template = rig.template(scene)
        points, lived = rig.points(template)
        again = rig.killed(template, ())
        if lived.trouble or again.trouble:
            sys.exit(f"{scene.name}: unharmed, it {lived.trouble or again.trouble}")
        found = difference(lived.effects, again.effects)
        if found.lost or found.double:
            # A comparison that finds something between two good lives would find it everywhere.
            told = "\n".join(map(shortened, (*found.lost, *found.double)))
            sys.exit(f"{scene.name}: two unharmed lives differ:\n{told}")
        steps = len({(point.step, point.count) for point in points if point.moment == "kept"})
        tally = Tally(scene=scene.name, steps=steps, points=len(points))
        yield Ready(template=template, points=points, unharmed=lived.effects, tally=tally)


def rounds(ready: Sequence[Ready], *, seed: int) -> Iterator[tuple[Ready, list[Point]]]:
    """Give what to kill, without end: each point once, then several of them in one life."""
    for one in ready:
        for point in one.points:
            yield one, [point]
    rng = random.Random(seed)
    while True:
        for one in ready:
            for point in rng.sample(one.points, len(one.points)):
                more = rng.choices(one.points, k=rng.randint(1, KILLS_MAX - 1))
                yield one, [point, *more]


def report(tallies: Sequence[Tally], *, seconds: float) -> str:
    """Return the table, and what went wrong in words."""
    lines = [
        "| flow | steps | points | kills | lost | double | stuck |",
        "|---|---|---|---|---|---|---|",
    ]
    total: Counter[str] = Counter()
    for tally in tallies:
        figures = {name: getattr(tally, name) for name in _FIGURES}
        total.update(figures)
        lines.append(f"| {tally.scene} | {' | '.join(map(str, figures.values()))} |")
    lines.append(f"| all | {' | '.join(str(total[name]) for name in _FIGURES)} |")
    lines.append(f"\n{total['kills']} kills in {seconds:.0f} s")
    for tally in tallies:
        lines += [f"- {tally.scene}: {fault}" for fault in tally.faults[:TOLD_MAX]]
        if len(tally.faults) > TOLD_MAX:
            lines.append(f"- {tally.scene}: {len(tally.faults) - TOLD_MAX} more")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, compare, report; 1 where anything was lost, doubled or stuck."""
    parser = argparse.ArgumentParser(prog=_USAGE, description=__doc__)
    parser.add_argument("--points", type=int, default=0, help="kills in all; each point once if 0")
    parser.add_argument("--seconds", type=float, default=0, help="of killing, at most; 0: no limit")
    parser.add_argument("--seed", type=int, default=1, help="of what is killed in later rounds")
    parser.add_argument("--flows", default="", help="only these, with commas between them")
    chosen = parser.parse_args(arguments)
    names = [name.strip() for name in chosen.flows.split(",") if name.strip()]
    known_names = [scene.name for scene in SCENES]
    if unknown := set(names) - set(known_names):
        parser.error(f"no flow is called {sorted(unknown)}; there are: {', '.join(known_names)}")
    with (
        tempfile.TemporaryDirectory(prefix="fw-kills-") as folder,
        DoubleServer() as github,
        SlackServer() as slack,
    ):
        rig = Rig(Path(folder), github, slack)
        ready = list(prepared(rig, names))
        once, began = sum(len(one.points) for one in ready), time.monotonic()
        # An hour of killing is not thrown away by whoever interrupts it.
        with suppress(KeyboardInterrupt):
            for count, (one, points) in enumerate(rounds(ready, seed=chosen.seed)):
                kills = sum(each.tally.kills for each in ready)
                late = chosen.seconds and time.monotonic() - began > chosen.seconds
                if late or (count >= once and kills >= chosen.points):
                    break
                known = len(one.tally.faults)
                one.tally.add(points, one.unharmed, rig.killed(one.template, points))
                for fault in one.tally.faults[known:]:
                    print(f"{one.tally.scene}: {fault}", file=sys.stderr)
                print(f"{count + 1}: {kills} kills", end="\r", file=sys.stderr, flush=True)
    tallies = [one.tally for one in ready]
    print(report(tallies, seconds=time.monotonic() - began))
    return int(any(tally.faults for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
