"""Explaining two sides on this machine, without measuring them: the work of `forkwatch explain`.

Builds both, or finds them built, restores the dataset and counts and samples what each workload
does. Nothing is judged: `compare` does that.
"""

from __future__ import annotations

import contextlib
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forkwatch.errors import DoorError
from results.atomic import write_atomically
from results.job import ORDER_FILE
from results.slice import SideName
from runner import datasets, explaining, placement, watchdog
from runner.bench import Bench
from runner.build import Builder
from runner.host.guard import guard
from runner.job import locked
from runner.sides import Sides
from workloads.catalog import find_workload
from workloads.plan import HostPlan, parse_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from results.document import Placement
    from results.explanation import Explanation
    from results.job import JobOrder
    from runner.explaining import Wanted
    from runner.progress import Progress
    from runner.servers.engine import ServerSpec
    from runner.settings import Home, RunnerSettings


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What was found out about a pair."""

    explanation: Explanation
    #: The job's, where flame graphs are.
    folder: Path


def refuse_nothing(wanted: Wanted) -> None:
    """Check, before anything is built, that this machine can do something of what is wanted.

    Raises:
        DoorError: It cannot; says why.
    """
    if explaining.can_nothing(wanted):
        reasons = "; ".join(explaining.missing(wanted))
        raise DoorError(f"nothing can be explained on this machine: {reasons}")


def explain_pair(
    order: JobOrder, wanted: Wanted, *, home: Home, settings: RunnerSettings, progress: Progress
) -> Explained:
    """Do it, and return what was found out; flame graphs are files in the job's folder.

    Raises:
        StageError: A side does not build, or the dataset cannot be loaded.
        OperatorError: The commits or this machine are wrong.
        DoorError: Both sides are the same software.
    """
    folder = home.folder("jobs", order.job)
    write_atomically(folder / ORDER_FILE, order.model_dump_json())
    plan = parse_plan(order.plan)
    suite = plan.suite(order.suite)
    workloads = [find_workload(name) for name in plan.workloads(order.suite, order.workloads)]
    named = plan.hosts.get(order.host_class, HostPlan())
    cpus = placement.usable_cpus()
    with locked(folder), watchdog.guard(), contextlib.ExitStack() as held:
        specs = _built(order, home=home, settings=settings, progress=progress)
        progress.stage("dataset", suite.dataset)
        tables = plan.datasets[suite.dataset]
        described = {
            side: datasets.describe(suite.dataset, tables, spec) for side, spec in specs.items()
        }
        snapshots = held.enter_context(
            datasets.ready_sides(described, tables, specs, home, bytes_max=settings.datasets_size)
        )
        # Where `compare` would have them.
        placed = placement.decide(
            named.placement,
            profile=guard(home).profile,
            cpus=cpus,
            threads=suite.threads,
            writes_only=all(workload.writes for workload in workloads),
        )
        held.enter_context(_placed(placed, cpus))
        bench = Bench(
            servers=specs,
            suite=suite,
            dataset=tables,
            snapshots=snapshots,
            scratch=folder / "data",
            placement=placed,
            seed=order.seed,
        )
        found = explaining.explain(bench, workloads, wanted, folder=folder, progress=progress)
    return Explained(explanation=found, folder=folder)


def _built(
    order: JobOrder, *, home: Home, settings: RunnerSettings, progress: Progress
) -> Mapping[SideName, ServerSpec]:
    """Return the server of each side, built if it is not there yet."""
    plan = parse_plan(order.plan)
    builder = Builder(
        home=home, settings=settings, repository=order.repository, trusted=order.trusted
    )
    sides = Sides(order, plan, plan.suite(order.suite), builder)
    for side in SideName:
        commit, setup = sides.commits[side], sides.setups[side]
        progress.stage("build", f"{side} {commit.sha[:8]} as {setup.variant}")
        sides.build(side)
    if sides.is_unchanged():
        raise DoorError("both install the same files and run alike: there is nothing to explain")
    return sides.specs(settings.sandbox_limits())


@contextmanager
def _placed(placed: Placement, cpus: list[int]) -> Iterator[None]:
    """Keep this process off the processors that servers and clients run on."""
    placement.step_aside(placed, cpus=cpus)
    try:
        with placement.kept(placed):
            yield
    finally:
        os.sched_setaffinity(0, cpus)
