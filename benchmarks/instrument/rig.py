"""The rig: what every part measures with - fork, home, plan, a bench of servers, jobs.

Parts that have to decide for themselves what is measured take a bench; the others order jobs, which
run in a process of their own as they do for the service.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from forkwatch.comparing import order_for
from results.atomic import write_atomically
from results.document import RunDocument
from results.job import DOCUMENT_FILE, ORDER_FILE
from results.slice import SideName
from runner import checkout, datasets, measure, placement, shell
from runner.build import Builder
from runner.errors import StageError
from runner.host.guard import guard
from runner.servers.engine import ServerSpec
from runner.settings import RunnerSettings
from workloads.catalog import find_workload
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.instrument.knob_fork import KnobFork
    from runner.settings import Home
    from workloads.catalog import Workload

SUITE: Final = "commit"
BASELINE, CANDIDATE = SideName.BASELINE, SideName.CANDIDATE
#: A job that takes longer hangs.
JOB_TIMEOUT_S: Final = 3 * 3600
#: Fixed labels: both are the same server, and `TWIN` is another artifact.
PLAIN: Final = "plain"
TWIN: Final = "twin"
_PLAN: Final = """\
[fork]
name = "instrument-bench"
engine = "mariadb"

[builds.rel]
cmake_options = {{ CMAKE_BUILD_TYPE = "Release" }}
server = "sbin/mariadbd"
build_minutes_max = 10

[configs.default.options]
innodb_buffer_pool_size = "256M"
innodb_flush_log_at_trx_commit = 2
performance_schema = false
# Purge at its own pace splits and merges the pages of a small index in bursts (docs/measuring.md).
innodb_purge_batch_size = {purge_batch}

[datasets.small]
tables = 1
rows = {rows}

[suites.commit]
workloads = {workloads}
starts = {starts}
confirm_starts = {starts}
slices = {slices}
seconds = {seconds}
warmup_seconds = {warmup_seconds}
turn_ms = {turn_ms}
budget_minutes = {budget_minutes}

[gates]
default = {gate}
workloads = {gates}
"""
_PLACED: Final = """
[hosts.default]
placement = "{placement}"
"""
#: Those of the field that together catch most known regressions: a scan, single rows, many rows by
#: a list, and both kinds of writes.
FIVE: Final = ("scan", "point-query", "update-index", "random-points(1000)", "insert")
#: The mode that leaves it to the host's profile, and to the product's default without one.
AUTO: Final = "auto"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much of each workload is measured, as a plan says it."""

    workloads: tuple[str, ...]
    starts: int
    slices: int
    seconds: int
    warmup_seconds: int = 1
    gate: float = 0.05
    gates: Mapping[str, float] = field(default_factory=dict)
    budget_minutes: int = 30
    #: Length of a turn; 0 measures one slice after the other.
    turn_ms: int = 250
    #: Undo logs that InnoDB purges at once; 1 leaves nearly all of the purging to the settling.
    purge_batch: int = 1


@dataclass(frozen=True, kw_only=True)
class Done:
    """A job that ended."""

    document: RunDocument
    plan: str
    wall_s: float


@dataclass(frozen=True, kw_only=True)
class Rig:
    """What stays the same from part to part."""

    folder: Path
    home: Home
    fork: KnobFork
    rows: int
    #: Placement mode by the plan's name for it, or `auto`.
    mode: str
    #: Processors that may be used.
    cpus: tuple[int, ...]

    def plan_text(self, sizes: Sizes) -> str:
        """Return the plan with these sizes."""
        gates = ", ".join(f"{json.dumps(name)} = {gate}" for name, gate in sizes.gates.items())
        placed = "" if self.mode == AUTO else _PLACED.format(placement=self.mode)
        return placed + _PLAN.format(
            rows=self.rows,
            workloads=json.dumps(list(sizes.workloads)),
            starts=max(2, sizes.starts),
            slices=sizes.slices,
            seconds=sizes.seconds,
            warmup_seconds=sizes.warmup_seconds,
            turn_ms=sizes.turn_ms,
            purge_batch=sizes.purge_batch,
            budget_minutes=sizes.budget_minutes,
            gate=sizes.gate,
            gates=f"{{ {gates} }}",
        )

    def sizes(self, each: Sizes) -> dict[str, Any]:
        """Return what decides the numbers of a part that measures so much, for the ledger."""
        plan = {**vars(each), "gates": dict(each.gates)}
        host = {"placement": self.mode, "watch_host": self._settings().watch_host}
        return {**plan, "rows": self.rows, **host}

    def spec(self, sha: str, sizes: Sizes) -> ServerSpec:
        """Return the server of a commit, built if it is not there yet."""
        plan = parse_plan(self.plan_text(sizes))
        suite = plan.suite(SUITE)
        variant = plan.builds[suite.build]
        repository = self.fork.repository
        builder = Builder(home=self.home, settings=self._settings(), repository=repository)
        return ServerSpec(
            engine=plan.fork.engine,
            installed=builder.build(checkout.resolve(repository, sha), suite.build, variant),
            program=variant.server,
            install_db=variant.install_db,
            options=plan.configs[suite.config].options,
        )

    @contextmanager
    def bench(
        self, sides: Mapping[SideName, ServerSpec], sizes: Sizes, *, seed: int
    ) -> Iterator[measure.Bench]:
        """Give what a start is measured with, this process moved off the measured processors."""
        plan = parse_plan(self.plan_text(sizes))
        suite = plan.suite(SUITE)
        dataset = plan.datasets[suite.dataset]
        loader = next(iter(sides.values()))
        described = datasets.describe(suite.dataset, dataset, loader)
        # Placement and limits as the jobs have them; a host calibrated into this home has its own.
        host = guard(self.home)
        placed = placement.decide(
            None if self.mode == AUTO else self.mode,
            profile=host.profile,
            cpus=self.cpus,
            threads=suite.threads,
        )
        limits = host.limits(placed.mode, threads=suite.threads, writes_only=False)
        with datasets.ready(described, dataset, loader, self.home) as snapshot:
            placement.step_aside(placed, cpus=self.cpus)
            try:
                with placement.kept(placed) as spinners:
                    yield measure.Bench(
                        servers=dict(sides),
                        suite=suite,
                        dataset=dataset,
                        snapshots=dict.fromkeys(sides, snapshot),
                        scratch=self.home.folder("scratch") / "data",
                        placement=placed,
                        seed=seed,
                        spinners=spinners,
                        limits=limits if self._settings().watch_host else None,
                    )
            finally:
                os.sched_setaffinity(0, self.cpus)

    def pair(self, name: str, baseline: str, candidate: str, sizes: Sizes, *, seed: int) -> Done:
        """Do a paired job from its beginning and return how it ended.

        Raises:
            StageError: It ended without a document.
        """
        plan_path = self.folder / "plan.toml"
        plan_path.write_text(self.plan_text(sizes))
        order, _ = order_for(
            repository=self.fork.repository,
            plan_path=plan_path,
            baseline=baseline,
            candidate=candidate,
            suite=SUITE,
            host_class="default",
            workloads=(),
            starts=sizes.starts,
            seed=seed,
        )
        folder = self.home.folder("jobs") / name
        # What an interrupted run has left would make the wall time too short.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_atomically(folder / ORDER_FILE, order.model_dump_json())
        words = [sys.executable, "-m", "forkwatch", "run", "--job", str(folder)]
        began = time.monotonic()
        done = shell.run(words, timeout_s=JOB_TIMEOUT_S)
        wall_s = time.monotonic() - began
        if not (folder / DOCUMENT_FILE).exists():
            raise StageError("job", f"job {name} left no document", done.stderr[-2000:])
        document = RunDocument.model_validate_json((folder / DOCUMENT_FILE).read_text())
        return Done(document=document, plan=order.plan, wall_s=wall_s)

    def _settings(self) -> RunnerSettings:
        return RunnerSettings(home=self.home.root)


def found(names: Sequence[str]) -> list[Workload]:
    """Return these workloads of the catalog."""
    return [find_workload(name) for name in names]
