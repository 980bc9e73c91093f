"""The verb `forkwatch run`: its arguments, and where its document goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from forkwatch.arguments import HomeFolder, PlanFile, Repository, SuiteName, Workloads
from forkwatch.compare_verb import Keep, copy_document
from forkwatch.homes import open_home
from forkwatch.streams import out

if TYPE_CHECKING:
    from runner.settings import Home, RunnerSettings


def run(
    revision: Annotated[
        str, typer.Argument(help="The commit to measure, or build:NAME of the plan.")
    ] = "HEAD",
    *,
    job: Annotated[
        Path | None, typer.Option("--job", help="Folder of a job that the service ordered.")
    ] = None,
    ordered: Annotated[
        str | None, typer.Option("--order", help="Job whose order this run of a CI is to fetch.")
    ] = None,
    service: Annotated[
        str, typer.Option("--service", help="Address of the service that gave the order.")
    ] = "",
    repository: Repository = Path(),
    home: HomeFolder = None,
    plan_file: PlanFile = None,
    suite: SuiteName = "commit",
    workload: Workloads = None,
    starts: Annotated[int | None, typer.Option("--starts", min=2, max=100)] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    keep: Keep = None,
) -> None:
    """Build and measure one commit or build, and print where its run document is."""
    from forkwatch.asking_again import forget_unstable
    from forkwatch.comparing import do, order_for
    from forkwatch.showing import end_run
    from forkwatch.watching import LogProgress
    from results.job import DOCUMENT_FILE

    home_folder, settings = open_home(home, job)
    if job is not None:
        _run_ordered(job, home=home_folder, settings=settings)
    if ordered is not None:
        _run_dispatched(
            ordered,
            service,
            repository=repository,
            home=home_folder,
            settings=settings,
            keep=keep,
        )
    order, _ = order_for(
        repository=repository.resolve(),
        plan_path=plan_file,
        baseline=None,
        candidate=revision,
        suite=suite,
        host_class=settings.host_class,
        workloads=workload or [],
        starts=starts,
        seed=seed,
    )
    forget_unstable(order, home_folder)
    document, folder = do(order, home=home_folder, settings=settings, progress=LogProgress())
    copy_document(folder / DOCUMENT_FILE, keep)
    out.print(str(folder / DOCUMENT_FILE), markup=False, highlight=False)
    end_run(document)


def _run_dispatched(
    job: str,
    service: str,
    *,
    repository: Path,
    home: Home,
    settings: RunnerSettings,
    keep: Path | None,
) -> NoReturn:
    """Do a job that the service had a CI start, bring its run, and exit."""
    from forkwatch.ci_settings import CiSettings
    from forkwatch.dispatched import Errand, run_errand
    from forkwatch.showing import end_run
    from forkwatch.watching import LogProgress

    document = run_errand(
        Errand(job=job, service=service),
        repository=repository.resolve(),
        home=home,
        settings=settings,
        ci=CiSettings(),
        progress=LogProgress(),
        keep=lambda path: copy_document(path, keep),
    )
    end_run(document)


def _run_ordered(job: Path, *, home: Home, settings: RunnerSettings) -> NoReturn:
    """Do a job that the service ordered, submit its document, and exit."""
    from forkwatch.job_log import open_job_log
    from forkwatch.showing import end_run
    from forkwatch.watching import LogProgress
    from runner.client import submit
    from runner.job import run_job
    from runner.job_folder import locked, read_order

    order = read_order(job)
    open_job_log(order)
    with locked(job):
        document = run_job(order, job, home=home, settings=settings, progress=LogProgress())
        if order.submit_to and order.credential:
            credential = order.credential.get_secret_value()
            submit(document, url=order.submit_to, credential=credential)
    end_run(document)
