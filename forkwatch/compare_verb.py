"""The verb `forkwatch compare`: its arguments, and where its answer goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forkwatch.arguments import AsJson, HomeFolder, PlanFile, Repository, SuiteName, Workloads
from forkwatch.homes import open_home
from forkwatch.streams import err

if TYPE_CHECKING:
    from forkwatch.comparing import Comparison
    from results.document import RunDocument
    from results.job import JobOrder
    from runner.settings import Home, RunnerSettings
    from workloads.plan import Plan

PlanFrom = Annotated[
    str | None,
    typer.Option("--plan-from", help="Take the plan from this commit, not from the checkout."),
]
MergeBase = Annotated[
    bool,
    typer.Option("--merge-base", help="Compare with the commit where both parted."),
]
Untrusted = Annotated[
    bool, typer.Option("--untrusted", help="A stranger's code: keep it out of the compiler cache.")
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Say what is done more of where it is slower.")
]
Keep = Annotated[
    Path | None, typer.Option("--document", help="Write the run document to this file too.")
]
OnCi = Annotated[
    bool, typer.Option("--ci", help="Show the tables on the page of the CI's job as well.")
]


def compare(
    baseline: Annotated[str, typer.Argument(help="The commit, or build:NAME, to compare with.")],
    candidate: Annotated[str, typer.Argument(help="The commit, or build:NAME, in question.")],
    *,
    repository: Repository = Path(),
    home: HomeFolder = None,
    plan_file: PlanFile = None,
    plan_from: PlanFrom = None,
    merge_base: MergeBase = False,
    suite: SuiteName = "commit",
    workload: Workloads = None,
    starts: Annotated[int | None, typer.Option("--starts", min=2, max=100)] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    untrusted: Untrusted = False,
    explain_regressions: Explain = False,
    keep: Keep = None,
    ci: OnCi = False,
    as_json: AsJson = False,
) -> None:
    """Build two commits or builds, measure them in alternation here, and print the verdicts."""
    from forkwatch.comparing import conclude, order_for
    from forkwatch.plan_sources import plan_path
    from forkwatch.showing import show
    from results.job import DOCUMENT_FILE
    from runner import checkout
    from runner.explaining import MINUTES

    home_folder, settings = open_home(home)
    where = repository.resolve()
    if merge_base:
        sides = (checkout.resolve(where, name).sha for name in (baseline, candidate))
        baseline = checkout.merge_base(where, *sides)
    with plan_path(where, plan_file, plan_from) as path:
        order, plan = order_for(
            repository=where,
            plan_path=path,
            baseline=baseline,
            candidate=candidate,
            suite=suite,
            host_class=settings.host_class,
            workloads=workload or [],
            starts=starts,
            seed=seed,
        )
    explaining = {"explain_minutes": MINUTES} if explain_regressions else {}
    order = order.model_copy(update={"trusted": not untrusted, **explaining})
    document, folder = _measured(order, plan, home=home_folder, settings=settings)
    copy_document(folder / DOCUMENT_FILE, keep)
    comparison = conclude(document, order.plan)
    if ci:
        _tell(comparison)
    show(comparison, folder / DOCUMENT_FILE, as_json=as_json)


def copy_document(document: Path, copy: Path | None) -> None:
    """Copy a run document to where a later step of a CI looks for it.

    Raises:
        DoorError: It cannot be written there.
    """
    from forkwatch.errors import DoorError
    from results.atomic import write_atomically

    if copy is None:
        return
    try:
        write_atomically(copy, document.read_text(encoding="utf-8"))
    except OSError as error:
        raise DoorError(f"{copy} cannot be written: {error.strerror}") from error


def _measured(
    order: JobOrder, plan: Plan, *, home: Home, settings: RunnerSettings
) -> tuple[RunDocument, Path]:
    """Do the job, with a bar where a person looks on."""
    from forkwatch.asking_again import forget_unstable
    from forkwatch.comparing import do
    from forkwatch.watching import LiveProgress, LogProgress

    forget_unstable(order, home)
    if not err.is_terminal:
        return do(order, home=home, settings=settings, progress=LogProgress())
    chosen = plan.suite(order.suite)
    slices = 2 * chosen.slices * len(order.workloads or chosen.workloads)
    with LiveProgress(err, slices_per_start=slices) as progress:
        return do(order, home=home, settings=settings, progress=progress)


def _tell(comparison: Comparison) -> None:
    from forkwatch.ci_summary import comparison_markdown, tell, tone_of
    from forkwatch.showing import status_of

    tell(
        comparison_markdown(comparison),
        tone=tone_of(status_of(comparison)),
        context=f"forkwatch-{comparison.document.host.host_class}",
    )
