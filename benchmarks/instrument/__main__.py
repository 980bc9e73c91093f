"""The instrument measured by itself: `make bench-instrument`.

Parts: `harness` (ours against bare sysbench), `suite` (where the time of a warm pair goes), `pairs`
(sequential stopping on real pairs), `aa` (our alternation against one long run per side). Every
unit's result is added to a file below `.forkwatch/bench/instrument/`; a run that is stopped, or
called again with more minutes, goes on from there. Nothing else should run beside it.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.instrument.against_bare import AgainstBare
from benchmarks.instrument.alternation import Alternation
from benchmarks.instrument.budget import Budget
from benchmarks.instrument.knob import SCAN, Knob
from benchmarks.instrument.knob_fork import knob_fork
from benchmarks.instrument.ledger import Ledger
from benchmarks.instrument.pairs import Pairs
from benchmarks.instrument.rig import FIVE, Rig, Sizes, found
from benchmarks.instrument.warm_suite import WarmSuite
from runner import placement, watchdog
from runner.errors import StageError
from runner.host import quiet_checks
from runner.settings import Home
from workloads.errors import CatalogError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.instrument.unit import Part

EXIT_TERMINATED: Final = 128 + signal.SIGTERM
#: In the order of measuring: what is short and needed comes first.
PARTS: Final = ("harness", "suite", "pairs", "aa")
NEED_KNOB: Final = {"suite", "pairs"}
#: Short, and what comes later would change in the middle with another knob.
NEVER_LEFT_OUT: Final = {"knob"}
#: What the demo's `commit` suite has.
SUITE_WORKLOADS: Final = ("scan", "point-query", "update-index")
#: Units that may fail in one part: a machine that fails more of them has a fault to be looked at.
FAILURES_MAX: Final = 2
RESULTS: Final = "results.jsonl"
FOLDER: Final = Path(".forkwatch") / "bench" / "instrument"
#: The demo's plan as well has two slices of each workload in a start.
SLICES: Final = 2


def main() -> None:
    """Measure the parts asked for; tables go to stdout, progress to stderr."""
    chosen = _arguments()
    # A job under way is in a session of its own: it ends when we end in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    if chosen.fresh:
        shutil.rmtree(chosen.folder, ignore_errors=True)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    for check in quiet_checks():
        _say(f"{'ok   ' if check.ok else 'noisy'} {check.name}: {check.found}")
    with watchdog.guard():
        parts = _parts(chosen)
        budget = Budget(seconds=60 * chosen.minutes, parts=[part.name for part in parts])
        left_out = {part.name: _work(part, budget, say=_say) for part in parts}
    for part in parts:
        print(f"\n{part.report()}")
    missing = [f"{name}: {', '.join(keys)}" for name, keys in left_out.items() if keys]
    if missing:
        print("\nleft out, the same command again goes on with it:")
        print("\n".join(f"  {line}" for line in missing))
    print(
        f"\n{time.monotonic() - began:.0f} s; {chosen.rows} rows, placement {chosen.placement}, "
        f"workloads {', '.join(chosen.workloads)}"
    )


def _work(part: Part, budget: Budget, *, say: Callable[[str], None]) -> list[str]:
    """Measure the units of a part that are not in its ledger and fit; return those left out."""
    budget.begin(part.name)
    left_out: list[str] = []
    over, failures = False, 0
    for unit in part.units():
        if part.ledger.has(part, unit.key):
            continue
        # Once one was left out so are the others: they would take as long.
        over = over or (part.name not in NEVER_LEFT_OUT and not budget.fits())
        if over or failures == FAILURES_MAX:
            left_out.append(unit.key)
            continue
        began = budget.now()
        try:
            record = unit.measure()
        except StageError as error:
            say(f"{part.name} {unit.key}: {error}\n{error.log_tail}")
            left_out.append(unit.key)
            failures += 1
            continue
        took = budget.now() - began
        budget.spent(took)
        part.ledger.add(part, unit.key, {"took_s": round(took, 3), **record})
        say(f"{part.name} {unit.key}, {took:.0f} s: {part.line(record)}")
    return left_out


def _parts(chosen: argparse.Namespace) -> list[Part]:
    """Return the parts asked for, and before them what they need."""
    rig = Rig(
        folder=chosen.folder.resolve(),
        home=Home(chosen.folder / "home"),
        fork=knob_fork(chosen.folder.resolve() / "fork"),
        rows=chosen.rows,
        mode=chosen.placement,
        cpus=tuple(placement.usable_cpus()),
    )
    names = [name for name in PARTS if name in chosen.parts]
    if NEED_KNOB.intersection(names):
        names.insert(0, "knob")
    short = Sizes(
        workloads=(SCAN,),
        starts=chosen.starts_max,
        slices=SLICES,
        seconds=chosen.seconds,
        warmup_seconds=chosen.warmup_seconds,
        turn_ms=chosen.turn_ms,
        purge_batch=chosen.purge_batch,
    )
    ledger = Ledger(rig.folder / RESULTS)
    knob = Knob(rig=rig, ledger=ledger, each=replace(short, starts=chosen.starts))
    gate = chosen.planted_gate
    made: dict[str, Part] = {
        "knob": knob,
        "harness": AgainstBare(
            rig=rig,
            ledger=ledger,
            each=replace(
                short,
                workloads=chosen.workloads,
                starts=chosen.harness_starts,
                seconds=chosen.harness_seconds,
            ),
        ),
        "suite": WarmSuite(
            rig=rig,
            ledger=ledger,
            each=replace(short, workloads=chosen.suite_workloads, seconds=chosen.suite_seconds),
            knob=knob,
            planted_gate=gate,
        ),
        "pairs": Pairs(
            rig=rig, ledger=ledger, each=short, knob=knob, number=chosen.pairs, planted_gate=gate
        ),
        "aa": Alternation(
            rig=rig,
            ledger=ledger,
            each=replace(short, workloads=chosen.workloads, starts=chosen.starts),
            repetitions=chosen.repetitions,
            long_seconds=chosen.long_seconds,
        ),
    }
    return [made[name] for name in names]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench-instrument", description="The instrument measured by itself."
    )
    add = parser.add_argument
    add("--parts", type=_names(PARTS), default=PARTS, help=f"of {','.join(PARTS)}; all of them")
    add("--minutes", type=float, default=60, help="begin nothing that would end later")
    add("--fresh", action="store_true", help="forget what was measured before")
    add("--folder", type=Path, default=FOLDER, help="results, artifacts, datasets, jobs")
    add("--workloads", type=_workloads, default=FIVE, help="of aa and harness")
    add("--rows", type=int, default=200_000, help="rows of the one table")
    add("--placement", default="shared-core", help="a plan's mode, or auto: the host's own")
    add("--warmup-seconds", type=int, default=1, help="length of one warm-up run")
    add("--turn-ms", type=int, default=250, help="length of a turn; 0: slice after slice")
    add("--purge-batch", type=int, default=1, help="innodb_purge_batch_size; MariaDB has 127")
    add("--seconds", type=int, default=2, help="length of a slice in aa and pairs")
    add("--starts", type=int, default=3, help="starts of a repetition of aa and of a knob's try")
    add("--starts-max", type=int, default=10, help="most starts of pairs and suite")
    add("--repetitions", type=int, default=10, help="of aa")
    add("--long-seconds", type=int, default=0, help="of aa; 0 is as long as all slices together")
    add("--pairs", type=int, default=20, help="pairs of each kind")
    add("--planted-gate", type=float, default=0.03, help="gate at which planted pairs are judged")
    add("--suite-workloads", type=_workloads, default=SUITE_WORKLOADS, help="of the suite")
    add("--suite-seconds", type=int, default=10, help="length of a slice in the suite")
    add("--harness-starts", type=int, default=5, help="starts against bare sysbench")
    add("--harness-seconds", type=int, default=5, help="length of a slice against bare sysbench")
    chosen = parser.parse_args()
    if SCAN not in chosen.suite_workloads:
        parser.error("--suite-workloads has to have scan: that is what is made slower")
    return chosen


def _names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of a comma-separated choice."""

    def read(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        unknown = set(names) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(
                f"{', '.join(sorted(unknown))}: not known; choose from {', '.join(known)}"
            )
        return names

    return read


def _workloads(text: str) -> tuple[str, ...]:
    """Return workloads of the catalog by their names."""
    names = tuple(text.split(","))
    try:
        found(names)
    except CatalogError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return names


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
