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

from results.document import (
    Dataset,
    Failure,
    Outcome,
    RunDocument,
    Side,
    SideName,
    Start,
)
from results.job import DOCUMENT_FILE, LOCK_FILE, ORDER_FILE, JobOrder
from runner import checkout, clock, datasets, host, measure, placement, watchdog
from runner.build import Builder, Installed
from runner.errors import BuildError, OperatorError, StageError
from runner.servers.mysql_family import ServerSpec
from workloads.catalog import find_workload
from workloads.errors import CatalogError
from workloads.plan import HostPlan, parse_plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runner.progress import Progress
    from runner.settings import Home, RunnerSettings
    from workloads.plan import Plan, Suite

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
        self._progress = progress
        self._created_at = clock.now()
        try:
            self._plan: Plan = parse_plan(order.plan)
            self._suite: Suite = self._plan.suite(order.suite)
            self._workloads = [
                find_workload(name) for name in order.workloads or self._suite.workloads
            ]
        except CatalogError as error:
            raise OperatorError(str(error)) from error
        self._commits = {SideName.CANDIDATE: checkout.resolve(order.repository, order.candidate)}
        if order.baseline:
            self._commits[SideName.BASELINE] = checkout.resolve(order.repository, order.baseline)
        self._builder = Builder(home=home, settings=settings, repository=order.repository)
        self._installed: dict[SideName, Installed] = {}
        self._dataset: Dataset | None = None
        self._starts: list[Start] = []
        self._stage_seconds: dict[str, float] = {}
        cpus = placement.usable_cpus()
        mode = self._plan.hosts.get(order.host_class, HostPlan()).placement
        self._placement = placement.place(mode, cpus=cpus)
        # Taken before the job makes any load of its own, or its builds would be the warning.
        self._host = host.describe(order.host_class)
        placement.step_aside(self._placement, cpus=cpus)
        self._cpus = cpus

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
        return self._document(Outcome.MEASURED)

    def _build_sides(self) -> None:
        variant_name = self._suite.build
        variant = self._plan.builds[variant_name]
        for side, commit in self._commits.items():
            self._progress.stage("build", f"{side} {commit.sha[:8]} as {variant_name}")
            with self._timed("build"), self._all_cpus():
                try:
                    self._installed[side] = self._builder.build(commit, variant_name, variant)
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
            return self._installed[SideName.BASELINE].facts.content_hash == candidate
        if self._order.unchanged_from is None:
            return False
        earlier = checkout.resolve(self._order.repository, self._order.unchanged_from)
        variant = self._plan.builds[self._suite.build]
        with self._timed("build"), self._all_cpus():
            try:
                installed = self._builder.build(earlier, self._suite.build, variant)
            except StageError:
                # Nothing to be equal to: the earlier commit does not build any more.
                return False
        return installed.facts.content_hash == candidate

    def _measure(self) -> None:
        specs = {side: self._spec(installed) for side, installed in self._installed.items()}
        # Both sides of a pair begin from the baseline's snapshot.
        loader = specs.get(SideName.BASELINE, specs[SideName.CANDIDATE])
        dataset_plan = self._plan.datasets[self._suite.dataset]
        self._progress.stage("dataset", f"{self._suite.dataset}, {dataset_plan.rows} rows")
        with self._timed("dataset"), self._all_cpus():
            self._dataset = datasets.describe(self._suite.dataset, dataset_plan, loader)
            snapshot = datasets.ensure(self._dataset, dataset_plan, loader, self._home)
        bench = measure.Bench(
            servers=specs,
            workloads=self._workloads,
            suite=self._suite,
            dataset=dataset_plan,
            snapshot=snapshot,
            scratch=self._folder / "data",
            placement=self._placement,
            seed=self._order.seed,
        )
        usual = self._suite.confirm_starts if self._order.baseline else self._suite.starts
        wanted = self._order.starts or usual
        (self._folder / _STARTS).mkdir(exist_ok=True)
        for index in range(wanted):
            self._progress.stage("measure", f"start {index + 1} of {wanted}")
            self._starts.append(self._one_start(bench, index))
            self._progress.start(self._starts[-1], of=wanted)

    def _one_start(self, bench: measure.Bench, index: int) -> Start:
        """Return a start from its file, or measure it and write the file."""
        path = self._folder / _STARTS / f"{index:04}.json"
        if path.exists():
            return Start.model_validate_json(path.read_text())
        with self._timed("measure"):
            start = measure.measure_start(bench, index, self._progress)
        write_atomically(path, start.model_dump_json())
        return start

    def _spec(self, installed: Installed) -> ServerSpec:
        variant = self._plan.builds[self._suite.build]
        return ServerSpec(
            engine=self._plan.fork.engine,
            installed=installed,
            program=variant.server,
            install_db=variant.install_db,
            options=self._plan.configs[self._suite.config].options,
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
        return Side(commit=self._commits[name], artifact=installed.facts if installed else None)

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
            "config": self._suite.config,
            "variant": self._suite.build,
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
            host=self._host,
            placement=self._placement,
            dataset=self._dataset,
            candidate=self._side(SideName.CANDIDATE),
            baseline=self._side(SideName.BASELINE) if self._order.baseline else None,
            starts=tuple(self._starts),
            stage_seconds=self._stage_seconds,
            warnings=self._warnings(),
        )

    def _warnings(self) -> tuple[str, ...]:
        if self._placement.mode == "unpinned":
            return ("server and client were not pinned: expect several times the noise",)
        return ()


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that after a crash it is there whole or not at all."""
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        with partial.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()
