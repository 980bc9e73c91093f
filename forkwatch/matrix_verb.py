"""The verb `forkwatch matrix`: its arguments, and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forkwatch.arguments import AsJson, HomeFolder, PlanFile, Repository, Workloads
from forkwatch.homes import open_home
from forkwatch.streams import out


def matrix(
    name: Annotated[str, typer.Argument(help="A table [matrices.NAME] of the plan.")],
    *,
    commit: Annotated[
        list[str] | None,
        typer.Option(
            "--commit", help="Measure this commit; the first is the base. HEAD if absent."
        ),
    ] = None,
    repository: Repository = Path(),
    home: HomeFolder = None,
    plan_file: PlanFile = None,
    workload: Workloads = None,
    starts: Annotated[int | None, typer.Option("--starts", min=2, max=100)] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print cells and minutes; measure nothing.")
    ] = False,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Measure builds x configs of one or more commits against the first, and print the tables."""
    from forkwatch.matrix import dry_run_lines, measure, question_of
    from forkwatch.matrix_showing import show
    from forkwatch.watching import LogProgress

    home_folder, settings = open_home(home, None)
    question = question_of(
        repository=repository.resolve(),
        plan_path=plan_file,
        name=name,
        commits=commit or [],
        workloads=workload or [],
        starts=starts,
        seed=seed,
        host_class=settings.host_class,
    )
    if dry_run:
        for line in dry_run_lines(question):
            out.print(line, markup=False, highlight=False)
        return
    pairs = measure(question, home=home_folder, settings=settings, progress=LogProgress())
    show(question, pairs, as_json=as_json, as_markdown=markdown)
