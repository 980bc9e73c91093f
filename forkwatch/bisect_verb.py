"""The verb `forkwatch bisect`: its arguments, and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forkwatch.arguments import AsJson, HomeFolder, PlanFile, Repository, SuiteName
from forkwatch.homes import open_home
from forkwatch.streams import EXIT_UNSTABLE, err, out

if TYPE_CHECKING:
    from bisects.document import BisectDocument
    from bisects.search import Search
    from forkwatch.bisect_jobs import Measure
    from forkwatch.bisect_question import Asked

Workload = Annotated[str, typer.Option("--workload", help="The workload that changed.")]
Stop = Annotated[
    float,
    typer.Option("--stop", min=0.5, max=0.999, help="The answer is right with this probability."),
]
Budget = Annotated[str, typer.Option("--budget", help="Begin no job after so long: 90m, 2h.")]
StartsEach = Annotated[
    int, typer.Option("--starts-each", min=2, max=100, help="Starts of each side in one job.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the range and minutes; measure nothing.")
]
Chart = Annotated[
    Path | None, typer.Option("--out", help="Draw the chart into this .png, .svg or .json file.")
]


def bisect(
    good: Annotated[str, typer.Argument(help="A commit before the change.")],
    bad: Annotated[str, typer.Argument(help="A later commit, after the change.")],
    *,
    workload: Workload,
    repository: Repository = Path(),
    home: HomeFolder = None,
    plan_file: PlanFile = None,
    suite: SuiteName = "commit",
    stop: Stop = 0.95,
    budget: Budget = "2h",
    starts_each: StartsEach = 2,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    dry_run: DryRun = False,
    chart: Chart = None,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Find the commit after GOOD, up to BAD, that made a workload slower or faster.

    Exits with 0 if there is an answer, 1 if there is none, 3 on an unstable host.
    """
    from forkwatch.bisect_jobs import artifacts_of, kept, measure_here
    from forkwatch.bisect_question import minutes_of, question_of
    from forkwatch.bisect_showing import dry_run_lines, refuse_chart_path, show, write_chart
    from forkwatch.bisecting import merged_commands, search_of
    from forkwatch.watching import LogProgress

    refuse_chart_path(chart)
    home_folder, settings = open_home(home)
    asked = question_of(
        repository=repository.resolve(),
        plan_path=plan_file,
        good=good,
        bad=bad,
        workload=workload,
        suite=suite,
        stop=stop,
        budget_minutes=minutes_of(budget),
        starts_each=starts_each,
        seed=seed,
        host_class=settings.host_class,
    )
    artifacts = artifacts_of(asked, home_folder)
    search = search_of(asked, artifacts, kept(asked, home_folder))
    if dry_run:
        for line in dry_run_lines(asked, search.document(), built=len(artifacts)):
            out.print(line, markup=False, highlight=False)
        return
    found = _searched(asked, search, measure_here(home_folder, settings, LogProgress()))
    if chart is not None:
        write_chart(found, chart)
    commands = merged_commands(asked, found)
    raise typer.Exit(show(found, as_json=as_json, as_markdown=markdown, commands=commands))


def _searched(asked: Asked, search: Search, measure: Measure) -> BisectDocument:
    """Search with a line on stderr after each job, and say how far it came if it is stopped."""
    from forkwatch.bisect_jobs import UnstableHostError
    from forkwatch.bisect_showing import progress_line
    from forkwatch.bisecting import run
    from reports.bisect import bisect_sentence

    def tell(document: BisectDocument) -> None:
        err.print(progress_line(document), markup=False, highlight=False, soft_wrap=True)

    try:
        return run(asked, search, measure=measure, tell=tell)
    except KeyboardInterrupt:
        said = bisect_sentence(search.document(cancelled=True))
        err.print(said, markup=False, highlight=False, soft_wrap=True)
        raise
    except UnstableHostError as error:
        err.print(f"forkwatch: {error}", markup=False, highlight=False)
        raise typer.Exit(EXIT_UNSTABLE) from error
