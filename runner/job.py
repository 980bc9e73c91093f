"""The job: one order in, one run document out, whatever happens on the way.

A job lives in a folder: the order, a lock held while someone works on it, a file per complete start
and at last the document. A killed runner loses at most the start under way: the next one goes on
from the files. A stage that fails ends the job with a named outcome; only a wrong order or a
machine that lacks something is an error.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from results.atomic import write_atomically
from results.document import Dataset, Failure, Outcome, RunDocument, Side, Start, Stopping
from results.job import DOCUMENT_FILE, LOCK_FILE, ORDER_FILE, JobOrder
from results.slice import SideName, SliceState
from runner import checkout, clock, datasets, deciding, host, measure, placement, watchdog
from runner.build import Builder, Installed
from runner.errors import BuildError, OperatorError, StageError
from runner.host.guard import guard
from runner.servers.mysql_family import ServerSpec
from runner.setups import run_alike, setups
from workloads.catalog import find_workload
from workloads.errors import CatalogError
from workloads.plan import HostPlan, parse_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from runner.host.canary import Moment
    from runner.progress import Progress
    from runner.settings import Home, RunnerSettings
    from runner.snapshots import Snapshot
    from workloads.catalog import Workload
    from workloads.plan import DatasetPlan, Plan, Suite

_STARTS: Final = "starts"


def read_order(folder: Path) -> JobOrder:
    """Return the order in a job's folder.

    Raises:
        OperatorError: There is none, or it is not one this version understands.
    """
    try:
        return JobOrder.model_validate_json((folder / ORDER_FILE).read_text())
    except FileNotFoundError:
        raise OperatorError(f"{folder} has no {ORDER_FILE}") from None
    except ValueError as error:
        raise OperatorError(f"{folder / ORDER_FILE} is not a job order: {error}") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the job's lock; the service sees by it that someone is at work.

    Raises:
        OperatorError: Another runner holds it.
    """
    with (folder / LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatorError(f"another runner works on {folder}") from None
        yield


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
    finished = folder / DOCUMENT_FILE
    if finished.exists():
        return RunDocument.model_validate_json(finished.read_text())
    job = _Job(order, folder, home=home, settings=settings, progress=progress)
    with watchdog.guard():
        document = job.run()
    write_atomically(finished, document.model_dump_json())
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
        try:
            self._plan: Plan = parse_plan(order.plan)
            self._suite: Suite = self._plan.suite(order.suite)
            self._workloads = [
                find_workload(name) for name in order.workloads or self._suite.workloads
            ]
            self._setups = setups(order, self._plan, self._suite)
        except CatalogError as error:
            raise OperatorError(str(error)) from error
        self._commits = {SideName.CANDIDATE: checkout.resolve(order.repository, order.candidate)}
        if order.baseline:
            self._commits[SideName.BASELINE] = checkout.resolve(order.repository, order.baseline)
        self._builder = Builder(
            home=home, settings=settings, repository=order.repository, trusted=order.trusted
        )
        self._installed: dict[SideName, Installed] = {}
        self._dataset: Dataset | None = None
        self._starts: list[Start] = []
        self._stopping: tuple[Stopping, ...] = ()
        self._notes: tuple[str, ...] = ()
        self._stage_seconds: dict[str, float] = {}
        cpus = placement.usable_cpus()
        self._guard = guard(home)
        self._placement = placement.decide(
            self._plan.hosts.get(order.host_class, HostPlan()).placement,
            profile=self._guard.profile,
            cpus=cpus,
            threads=self._suite.threads,
            writes_only=self._writes_only,
        )
        # Taken before the job makes any load of its own, or its builds would be the warning.
        self._host = host.describe(order.host_class)
        placement.step_aside(self._placement, cpus=cpus)
        self._cpus = cpus

    @property
    def _starts_max(self) -> int:
        return self._order.starts or self._suite.confirm_starts

    @property
    def _writes_only(self) -> bool:
        return all(workload.writes for workload in self._workloads)

    def run(self) -> RunDocument:
        """Walk the stages; the first that fails decides the outcome."""
        try:
            self._build_sides()
            if self._is_unchanged():
                return self._document(Outcome.UNCHANGED)
            self._measure()
        except BuildError as error:
            return self._document(Outcome.BUILD_FAILED, error)
        except StageError as error:
            return self._document(Outcome.FAILED, error)
        distrust = self._guard.distrust() or self._without_samples()
        if distrust:
            return self._document(Outcome.UNSTABLE, StageError("host", distrust))
        return self._document(Outcome.MEASURED)

    def _without_samples(self) -> str:
        """Return why there is nothing to judge, if every slice of a workload was disturbed."""
        for workload in self._workloads:
            pieces = [
                piece
                for start in self._starts
                for piece in start.slices
                if piece.workload == workload.name
            ]
            if pieces and all(piece.state is SliceState.DISTURBED for piece in pieces):
                return f"every slice of {workload.name} was disturbed: {pieces[-1].reason}"
        return ""

    def _build_sides(self) -> None:
        for side, commit in self._commits.items():
            setup = self._setups[side]
            self._progress.stage("build", f"{side} {commit.sha[:8]} as {setup.variant}")
            with self._timed("build"), self._all_cpus():
                try:
                    self._installed[side] = self._builder.build(commit, setup.variant, setup.build)
                except BuildError as error:
                    if side is SideName.BASELINE:
                        raise StageError(
                            error.stage, f"baseline: {error}", error.log_tail
                        ) from error
                    raise

    def _is_unchanged(self) -> bool:
        """Whether the candidate installs what it would be compared with."""
        candidate = self._installed[SideName.CANDIDATE].facts.content_hash
        if SideName.BASELINE in self._installed:
            same = self._installed[SideName.BASELINE].facts.content_hash == candidate
            return same and run_alike(self._setups)
        if self._order.unchanged_from is None:
            return False
        earlier = checkout.resolve(self._order.repository, self._order.unchanged_from)
        setup = self._setups[SideName.CANDIDATE]
        with self._timed("build"), self._all_cpus():
            try:
                installed = self._builder.build(earlier, setup.variant, setup.build)
            except StageError:
                # Nothing to be equal to: the earlier commit does not build any more.
                return False
        return installed.facts.content_hash == candidate

    def _measure(self) -> None:
        specs = {side: self._spec(side, installed) for side, installed in self._installed.items()}
        # Both sides of a pair begin from the baseline's snapshot.
        loader = specs.get(SideName.BASELINE, specs[SideName.CANDIDATE])
        dataset_plan = self._plan.datasets[self._suite.dataset]
        self._progress.stage("dataset", f"{self._suite.dataset}, {dataset_plan.rows} rows")
        with contextlib.ExitStack() as held:
            with self._timed("dataset"), self._all_cpus():
                self._dataset = datasets.describe(self._suite.dataset, dataset_plan, loader)
                snapshot = held.enter_context(
                    datasets.ready(
                        self._dataset,
                        dataset_plan,
                        loader,
                        self._home,
                        bytes_max=self._settings.datasets_size,
                    )
                )
            try:
                self._look("before")
                with placement.kept(self._placement) as spinners:
                    self._measure_starts(self._bench(specs, dataset_plan, snapshot, spinners))
                self._look("after")
            finally:
                # Repairs may happen at any restore, so they are read at the end.
                self._notes += snapshot.warnings

    def _bench(
        self,
        specs: Mapping[SideName, ServerSpec],
        dataset_plan: DatasetPlan,
        snapshot: Snapshot,
        spinners: Sequence[int],
    ) -> measure.Bench:
        limits = self._guard.limits(
            self._placement.mode, threads=self._suite.threads, writes_only=self._writes_only
        )
        return measure.Bench(
            servers=specs,
            suite=self._suite,
            dataset=dataset_plan,
            snapshot=snapshot,
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

    def _measure_starts(self, bench: measure.Bench) -> None:
        (self._folder / _STARTS).mkdir(exist_ok=True)
        if self._order.baseline:
            self._measure_pair(bench)
        else:
            self._measure_alone(bench, self._order.starts or self._suite.starts)

    def _measure_alone(self, bench: measure.Bench, wanted: int) -> None:
        for index in range(wanted):
            self._progress.stage("measure", f"start {index + 1} of {wanted}")
            self._one_start(bench, index, self._workloads)
            self._progress.start(self._starts[-1], of=wanted)

    def _measure_pair(self, bench: measure.Bench) -> None:
        """Measure until each workload is decided, within the starts and the budget."""
        question = deciding.Question(
            gates=self._plan.gates,
            alphas=self._order.alphas,
            starts_max=self._starts_max,
            budget_s=60 * self._suite.budget_minutes,
        )
        undecided: Sequence[Workload] = self._workloads
        while undecided:
            index = len(self._starts)
            names = ", ".join(workload.name for workload in undecided)
            self._progress.stage("measure", f"start {index + 1}: {names}")
            self._one_start(bench, index, undecided)
            self._progress.start(self._starts[-1], of=question.starts_max)
            found = deciding.standing(self._starts, self._workloads, question, self._progress)
            undecided, self._stopping = found.undecided, found.stopping

    def _one_start(self, bench: measure.Bench, index: int, workloads: Sequence[Workload]) -> None:
        """Add a start from its file, or measure it and write the file."""
        path = self._folder / _STARTS / f"{index:04}.json"
        if path.exists():
            self._starts.append(Start.model_validate_json(path.read_text()))
            return
        with self._timed("measure"):
            start = measure.measure_start(bench, index, workloads, self._progress)
        write_atomically(path, start.model_dump_json())
        self._starts.append(start)

    def _spec(self, side: SideName, installed: Installed) -> ServerSpec:
        setup = self._setups[side]
        return ServerSpec(
            engine=self._plan.fork.engine,
            installed=installed,
            program=setup.build.server,
            install_db=setup.build.install_db,
            options=setup.server.options,
            limits=self._settings.sandbox_limits(),
        )

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

    def _side(self, name: SideName) -> Side:
        installed = self._installed.get(name)
        facts, setup = installed.facts if installed else None, self._setups[name]
        return Side(
            commit=self._commits[name], artifact=facts, variant=setup.variant, config=setup.config
        )

    def _document(self, outcome: Outcome, error: StageError | None = None) -> RunDocument:
        failure = None
        if error is not None:
            failure = Failure(stage=error.stage, message=str(error), log_tail=error.log_tail)
        facts: dict[str, Any] = {
            "id": self._order.run,
            "job": self._order.job,
            "fork": self._plan.fork.name,
            "branch": self._order.branch,
            "suite": self._order.suite,
            "config": self._setups[SideName.CANDIDATE].config,
            "variant": self._setups[SideName.CANDIDATE].variant,
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
            dataset=self._dataset,
            candidate=self._side(SideName.CANDIDATE),
            baseline=self._side(SideName.BASELINE) if self._order.baseline else None,
            starts=tuple(self._starts),
            starts_max=self._starts_max if self._order.baseline else None,
            stopping=self._stopping,
            stage_seconds=self._stage_seconds,
            warnings=self._warnings(),
        )

    def _warnings(self) -> tuple[str, ...]:
        unpinned = "server and client were not pinned: expect several times the noise"
        pinned = () if self._placement.mode != "unpinned" else (unpinned,)
        return (*pinned, *self._guard.news, *self._notes)
