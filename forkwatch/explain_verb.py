"""The verb `forkwatch explain`: its arguments, and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forkwatch.arguments import AsJson, HomeFolder, PlanFile, Repository, SuiteName, Workloads
from forkwatch.homes import open_home
from forkwatch.streams import EXIT_FOUND, err, out

if TYPE_CHECKING:
    from forkwatch.explaining import Explained


def explain(
    baseline: Annotated[str, typer.Argument(help="The commit to compare with.")],
    candidate: Annotated[str, typer.Argument(help="The commit in question.")],
    *,
    repository: Repository = Path(),
    home: HomeFolder = None,
    plan_file: PlanFile = None,
    suite: SuiteName = "commit",
    workload: Workloads = None,
    operations: Annotated[
        int | None,
        typer.Option(
            "--operations", min=3, help="Count so many under callgrind; by throughput if absent."
        ),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Draw a differential flame graph too.")
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", min=0.1, help="Begin no workload after so many; 15 if absent."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Count the instructions per operation of two commits, and name the functions that grew."""
    from forkwatch.comparing import order_for
    from forkwatch.explaining import explain_pair, refuse_nothing
    from forkwatch.watching import LogProgress
    from runner.errors import StageError
    from runner.explaining import MINUTES, Wanted

    wanted = Wanted(profile=profile, operations=operations, minutes=minutes or MINUTES)
    refuse_nothing(wanted)
    home_folder, settings = open_home(home)
    order, _ = order_for(
        repository=repository.resolve(),
        plan_path=plan_file,
        baseline=baseline,
        candidate=candidate,
        suite=suite,
        host_class=settings.host_class,
        workloads=workload or [],
        starts=None,
        seed=seed,
    )
    try:
        found = explain_pair(
            order, wanted, home=home_folder, settings=settings, progress=LogProgress()
        )
    except StageError as error:
        err.print(f"{error.stage}: {error}", markup=False, highlight=False)
        err.print(error.log_tail, markup=False, highlight=False)
        raise typer.Exit(EXIT_FOUND) from error
    show(found, as_json=as_json, as_markdown=markdown)


def show(found: Explained, *, as_json: bool, as_markdown: bool) -> None:
    """Print an explanation; exits with 1 where nothing was found out about any workload."""
    from reports.explanation_text import explanation_markdown, explanation_renderable

    explanation = found.explanation
    if as_json:
        print(explanation.model_dump_json(indent=2))  # noqa: T201  the product
    elif as_markdown:
        print(explanation_markdown(explanation, folder=found.folder))  # noqa: T201  the product
    else:
        out.print(explanation_renderable(explanation, folder=found.folder))
    if all(one.instructions is None and one.profile is None for one in explanation.workloads):
        raise typer.Exit(EXIT_FOUND)
