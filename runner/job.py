"""The job: one order in, one run document out, whatever happens on the way.

A stage that fails ends the job with a named outcome; only a wrong order or a machine that lacks
something is an error. What is kept in the job's folder is `runner/job_folder.py`'s matter, what is
known of each side `runner/sides.py`'s.
"""

from __future__ import annotations

import contextlib
import os
import time
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from results.document import Cause, Dataset, Failure, Outcome, RunDocument, Side, Start, Stopping
from results.slice import SideName
from runner import (
    clock,
    datasets,
    deciding,
    exact_pair,
    explaining,
    host,
    job_folder,
    load_facts,
    measure,
    memory_room,
    placement,
    watchdog,
)
from runner.bench import Bench
from runner.build import Builder
from runner.errors import OperatorError, StageError
from runner.fleet_cache.opening import open_cache
from runner.host.guard import guard
from runner.host.sole_use import sole_use
from runner.job_folder import Conditions, locked, read_order
from runner.servers.engines import engine_of
from runner.sides import Sides
from workloads import insert_benchmark
from workloads.catalog import find_workload
from workloads.errors import CatalogError
from workloads.plan import HostPlan, parse_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from results.exact import ExactCounters
    from results.explanation import Explanation
    from results.job import JobOrder
    from results.server_facts import Load
    from runner.host.canary import Moment
    from runner.progress import Progress
    from runner.servers.engine import ServerSpec
    from runner.settings import Home, RunnerSettings
    from runner.snapshots import Snapshot
    from workloads.catalog import Workload
    from workloads.plan import Plan, Suite

__all__ = ["locked", "read_order", "run_job"]


def run_job(
    order: JobOrder,
    folder: Path,
    *,
    home: Home,
    settings: RunnerSettings,
    progress: Progress,
) -> RunDocument:
    """Do the job and return its document, which is also written into the folder.

    Raises:
        OperatorError: The order or this machine is wrong; no document was written.
    """
    finished = job_folder.read_document(folder)
    if finished is not None and not job_folder.owes_explanation(order, finished):
        return finished
    with placement.given_back():
        job = _Job(order, folder, home=home, settings=settings, progress=progress)
        with watchdog.guard():
            document = job.run()
    job_folder.write_document(folder, document)
    return document


class _Job:
    """The state of one job while it runs; becomes the document at its end."""

    def __init__(
        self,
        order: JobOrder,
        folder: Path,
        *,
        home: Home,
        settings: RunnerSettings,
        progress: Progress,
    ) -> None:
        self._order, self._folder, self._home = order, folder, home
        self._settings = settings
        self._progress = progress
        self._created_at = clock.now()
        self._cache = open_cache(settings, trusted=order.trusted)
        builder = Builder.of_job(order, home=home, settings=settings, cache=self._cache)
        try:
            self._plan: Plan = parse_plan(order.plan)
            self._suite: Suite = self._plan.suite(order.suite)
            names = self._plan.workloads(order.suite, order.workloads)
            self._workloads = [find_workload(name) for name in names]
            self._sides = Sides(order, self._plan, self._suite, builder)
        except CatalogError as error:
            raise OperatorError(str(error)) from error
        self._datasets: dict[SideName, Dataset] = {}
        self._loads: dict[SideName, Load] = {}
        self._starts: list[Start] = []
        self._stopping: tuple[Stopping, ...] = ()
        self._notes: tuple[str, ...] = ()
        self._explanation: Explanation | None = None
        self._exact: ExactCounters | None = None
        self._stage_seconds: dict[str, float] = {}
        self._cpus = cpus = placement.usable_cpus()
        self._guard = guard(home)
        self._placement = placement.decide(
            self._plan.hosts.get(order.host_class, HostPlan()).placement,
            profile=self._guard.profile,
            cpus=cpus,
            threads=self._threads,
            writes_only=self._writes_only,
        )
        # Taken before the job makes any load of its own, or its builds would be the warning.
        self._host = host.describe(order.host_class)
        placement.step_aside(self._placement, cpus=cpus)

    @property
    def _starts_max(self) -> int:
        return self._order.starts or self._suite.confirm_starts

    @property
    def _threads(self) -> int:
        """Clients at once; some workloads have more than their suite says."""
        return max(
            int(one.options.get("threads", insert_benchmark.threads_of(one, self._suite.threads)))
            for one in self._workloads
        )

    @property
    def _writes_only(self) -> bool:
        return all(workload.writes for workload in self._workloads)

    def run(self) -> RunDocument:
        """Walk the stages; the first that fails decides the outcome."""
        try:
            self._build_sides()
            if self._order.build_only:
                self._notes += self._sides.share()
                return self._document(Outcome.BUILT)
            with self._timed("build"), self._all_cpus():
                unchanged = self._sides.is_unchanged()
            if unchanged:
                return self._document(Outcome.UNCHANGED)
            self._measure()
        except StageError as error:
            broken = error.cause is Cause.COMMIT
            return self._document(Outcome.BUILD_FAILED if broken else Outcome.FAILED, error)
        distrust = self._guard.distrust() or deciding.without_samples(self._starts, self._workloads)
        if distrust:
            return self._document(Outcome.UNSTABLE, StageError("host", distrust))
        return self._document(Outcome.MEASURED)

    def _build_sides(self) -> None:
        for side, commit in self._sides.commits.items():
            setup = self._sides.setups[side]
            self._progress.stage("build", f"{side} {commit.sha[:8]} as {setup.variant}")
            with self._timed("build"), self._all_cpus():
                self._sides.build(side)

    def _measure(self) -> None:
        specs = self._sides.specs(self._settings.sandbox_limits())
        with contextlib.ExitStack() as held:
            with self._timed("dataset"), self._all_cpus():
                self._datasets = self._describe(specs)
                snapshots = self._snapshots(specs, held)
                self._loads = load_facts.side_loads(snapshots, since=self._created_at)
            try:
                with sole_use(self._home.folder("host"), self._progress):
                    self._look("before")
                    with placement.kept(self._placement) as spinners:
                        bench = self._bench(specs, snapshots, spinners)
                        self._measure_starts(bench)
                    self._look("after")
                    self._count_exactly(bench)
                    self._explain(bench)
            finally:
                # Repairs may happen at any restore, so they are read at the end.
                for snapshot in dict.fromkeys(snapshots.values()):
                    self._notes += snapshot.warnings

    def _describe(self, specs: Mapping[SideName, ServerSpec]) -> dict[SideName, Dataset]:
        """Return the dataset of each side, and refuse what this machine cannot hold."""
        name, engine = self._suite.dataset, engine_of(self._plan.fork.engine)
        plan = self._plan.datasets[name]
        self._progress.stage("dataset", f"{name}, {plan.rows} rows")
        sizes = [engine.data_bytes(spec, plan) - engine.redo_bytes(spec) for spec in specs.values()]
        what = datasets.size_words(plan, self._plan.fork.engine)
        memory_room.check(name, plan, sizes, what=what)
        return {side: datasets.describe(name, plan, spec) for side, spec in specs.items()}

    def _snapshots(
        self, specs: Mapping[SideName, ServerSpec], held: contextlib.ExitStack
    ) -> dict[SideName, Snapshot]:
        """Return each side's snapshot; sides whose data has one format begin from the same one.

        The baseline, which comes first, then is the one that loads.
        """
        snapshots = held.enter_context(
            datasets.ready_sides(
                self._datasets,
                self._plan.datasets[self._suite.dataset],
                specs,
                self._home,
                bytes_max=self._settings.datasets_size,
                trusted=self._order.trusted,
                cache=self._cache,
            )
        )
        self._notes += datasets.formats_notes(self._datasets)
        return snapshots

    def _bench(
        self,
        specs: Mapping[SideName, ServerSpec],
        snapshots: Mapping[SideName, Snapshot],
        spinners: Sequence[int],
    ) -> Bench:
        limits = self._guard.limits(
            self._placement.mode, threads=self._threads, writes_only=self._writes_only
        )
        return Bench(
            servers=specs,
            suite=self._suite,
            dataset=self._plan.datasets[self._suite.dataset],
            snapshots=snapshots,
            scratch=self._folder / "data",
            placement=self._placement,
            seed=self._order.seed,
            spinners=spinners,
            limits=limits if self._settings.watch_host else None,
        )

    def _look(self, moment: Moment) -> None:
        """Look at the canary, unless nobody wants it."""
        if self._settings.watch_host:
            self._progress.stage("host", f"canary {moment} the measuring")
            with self._timed("canary"):
                self._guard.look(moment, self._placement)

    def _measure_starts(self, bench: Bench) -> None:
        here = Conditions(fingerprint=self._guard.fingerprint, placement=self._placement)
        job_folder.agree(self._folder, here)
        if self._order.baseline:
            self._measure_pair(bench)
        else:
            self._measure_alone(bench, self._order.starts or self._suite.starts)

    def _measure_alone(self, bench: Bench, wanted: int) -> None:
        for index in range(wanted):
            self._progress.stage("measure", f"start {index + 1} of {wanted}")
            self._one_start(bench, index, self._workloads)
            self._progress.start(self._starts[-1], of=wanted)

    def _measure_pair(self, bench: Bench) -> None:
        """Measure until each workload is decided, within the starts and the budget."""
        question = self._question
        undecided: Sequence[Workload] = self._workloads
        while undecided:
            index = len(self._starts)
            names = ", ".join(workload.name for workload in undecided)
            self._progress.stage("measure", f"start {index + 1}: {names}")
            self._one_start(bench, index, measure.whole_chains(undecided, self._workloads))
            self._progress.start(self._starts[-1], of=question.starts_max)
            found = deciding.standing(self._starts, self._workloads, question, self._progress)
            undecided, self._stopping = found.undecided, found.stopping

    @property
    def _question(self) -> deciding.Question:
        return deciding.Question(
            gates=self._plan.gates,
            alphas=self._order.alphas,
            starts_max=self._starts_max,
            budget_s=60 * self._suite.budget_minutes,
        )

    def _count_exactly(self, bench: Bench) -> None:
        """Compare what fixed queries cost on both sides, where the suite names some."""
        if self._suite.exact and self._order.baseline:
            self._progress.stage("exact", ", ".join(self._suite.exact))
            with self._timed("exact"):
                self._exact = exact_pair.compare(bench, self._suite.exact)

    def _explain(self, bench: Bench) -> None:
        """Say what the candidate does more of where it is slower, if somebody wants to know."""
        if not (self._order.explain_minutes and self._order.baseline):
            return
        with self._timed("explain"):
            self._explanation = explaining.explain_regressions(
                bench,
                [one for one in self._workloads if one.reported],
                self._starts,
                self._question,
                minutes=self._order.explain_minutes,
                folder=self._folder,
                progress=self._progress,
            )

    def _one_start(self, bench: Bench, index: int, workloads: Sequence[Workload]) -> None:
        """Add a start from its file, or measure it and write the file."""
        start = job_folder.read_start(self._folder, index)
        if start is None:
            with self._timed("measure"):
                start = measure.measure_start(bench, index, workloads, self._progress)
            job_folder.write_start(self._folder, start)
        self._starts.append(start)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - began
            self._stage_seconds[stage] = round(self._stage_seconds.get(stage, 0.0) + spent, 3)

    @contextmanager
    def _all_cpus(self) -> Iterator[None]:
        """Give builds and loads every processor; while measuring we keep off the measured ones."""
        os.sched_setaffinity(0, self._cpus)
        try:
            yield
        finally:
            placement.step_aside(self._placement, cpus=self._cpus)

    def _document(self, outcome: Outcome, error: StageError | None = None) -> RunDocument:
        failure = None
        if error is not None:
            whose = f"{error.side}: " if error.side and self._order.baseline else ""
            said = {"message": f"{whose}{error}", "log_tail": error.log_tail}
            failure = Failure(stage=error.stage, cause=error.cause, **said)
        setup = self._sides.setups[SideName.CANDIDATE]
        facts: dict[str, Any] = {
            "id": self._order.run,
            "job": self._order.job,
            "fork": self._plan.fork.name,
            "branch": self._order.branch,
            "suite": self._order.suite,
            "config": setup.config,
            "variant": setup.variant,
            "tool_version": version("forkwatch"),
        }
        return RunDocument(
            **facts,
            created_at=self._created_at,
            finished_at=clock.now(),
            seed=self._order.seed,
            threads=self._suite.threads,
            outcome=outcome,
            failure=failure,
            host=self._host.model_copy(
                update={
                    "fingerprint": self._guard.fingerprint,
                    "canary": tuple(self._guard.readings),
                }
            ),
            placement=self._placement,
            dataset=self._datasets.get(SideName.CANDIDATE),
            candidate=self._side(SideName.CANDIDATE),
            baseline=self._side(SideName.BASELINE) if self._order.baseline else None,
            starts=tuple(self._starts),
            starts_max=self._starts_max if self._order.baseline else None,
            stopping=self._stopping,
            explanation=self._explanation,
            exact=self._exact,
            outside=self._sides.outside(),
            stage_seconds=self._stage_seconds,
            warnings=self._warnings(),
        )

    def _side(self, name: SideName) -> Side:
        begun = {"dataset": self._datasets.get(name), "load": self._loads.get(name)}
        return self._sides.as_documented(name).model_copy(update=begun)

    def _warnings(self) -> tuple[str, ...]:
        unpinned = "server and client were not pinned: expect several times the noise"
        pinned = () if self._placement.mode != "unpinned" else (unpinned,)
        shared = self._cache.warnings if self._cache else ()
        return (*pinned, *self._guard.news, *self._notes, *shared, *job_folder.notes(self._folder))
