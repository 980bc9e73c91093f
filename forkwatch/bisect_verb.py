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
    from forkwatch.bisect_question import Asked
    from reports.bisect_evidence import Evidence
    from runner.settings import Home, RunnerSettings

Workload = Annotated[str, typer.Option("--workload", help="The workload that changed.")]
Stop = Annotated[
    float,
    typer.Option("--stop", min=0.5, max=0.999, help="The answer is right with this probability."),
]
Budget = Annotated[str, typer.Option("--budget", help="Begin no job after so long: 90m, 2h.")]
StartsEach = Annotated[
    int, typer.Option("--starts-each", min=2, max=100, help="Starts of each side in one job.")
]
IntoMerges = Annotated[
    bool,
    typer.Option(help="Where the culprit is a merge, search what it merged with the time left."),
]
Explain = Annotated[
    bool,
    typer.Option("--explain", help="Count what the culprit does more of than its parent."),
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
    into_merges: IntoMerges = True,
    explain: Explain = False,
    dry_run: DryRun = False,
    chart: Chart = None,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Find the commit after GOOD, up to BAD, that made a workload slower or faster.

    Exits with 0 if there is an answer, 1 if there is none, 3 on an unstable host.
    """
    from forkwatch.bisect_explaining import WANTED
    from forkwatch.bisect_question import minutes_of, question_of
    from forkwatch.bisect_range import commit_address
    from forkwatch.bisect_showing import refuse_chart_path, show, write_chart
    from forkwatch.explaining import refuse_nothing

    refuse_chart_path(chart)
    if explain:
        refuse_nothing(WANTED)
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
    if dry_run:
        for line in _begun(asked, home_folder, settings)[1]:
            out.print(line, markup=False, highlight=False)
        return
    found, commands = _searched(asked, home_folder, settings, into=into_merges)
    if chart is not None:
        write_chart(found, chart)
    evidence = _evidence(asked, found, home_folder, settings, plan_file=plan_file, explain=explain)
    raise typer.Exit(
        show(
            found,
            as_json=as_json,
            as_markdown=markdown,
            commands=commands,
            evidence=evidence,
            commit_url=commit_address(asked.repository),
        )
    )


def _begun(
    asked: Asked, home: Home, settings: RunnerSettings, noise: tuple[float, int] = (0.0, 0)
) -> tuple[Search, list[str]]:
    """Return the search with what is there already, and what to say before it begins."""
    from forkwatch.bisect_jobs import artifacts_of, kept, outside_of
    from forkwatch.bisect_shared import shared_artifacts
    from forkwatch.bisect_showing import dry_run_lines
    from forkwatch.bisecting import search_of

    artifacts, outside = artifacts_of(asked, home), outside_of(asked, home)
    artifacts |= shared_artifacts(asked, settings, here=artifacts)
    search = search_of(asked, artifacts, kept(asked, home), outside=outside, noise=noise)
    document = search.document()
    return search, dry_run_lines(asked, document, built=len(artifacts), outside=outside)


def _searched(
    asked: Asked, home: Home, settings: RunnerSettings, *, into: bool
) -> tuple[BisectDocument, list[str]]:
    """Search with a line on stderr after each job; return what was found and what is left to ask.

    How far it came is said if it is stopped.
    """
    from bisects.levels import noise_of
    from forkwatch.bisect_jobs import UnstableHostError, measure_here, outside_of
    from forkwatch.bisect_showing import BriefProgress, progress_line
    from forkwatch.bisecting import into_merges, merged_commands, run
    from reports.bisect import bisect_sentence

    measure = measure_here(home, settings, BriefProgress())

    def say(text: str) -> None:
        err.print(text, markup=False, highlight=False, soft_wrap=True)

    def tell(document: BisectDocument) -> None:
        say(progress_line(document))

    def whole(one: Asked, before: BisectDocument | None) -> BisectDocument:
        if before is not None:
            say(f"{bisect_sentence(before)} It is a merge, and what it merged is searched now.")
        noise = noise_of(before) if before is not None else (0.0, 0)
        search, lines = _begun(one, home, settings, noise)
        for line in lines:
            say(line)
        try:
            return run(
                one, search, measure=measure, tell=tell, sources=lambda: outside_of(one, home)
            )
        except KeyboardInterrupt:
            say(bisect_sentence(search.document(cancelled=True)))
            raise

    try:
        found = whole(asked, None)
    except UnstableHostError as error:
        say(f"forkwatch: {error}")
        raise typer.Exit(EXIT_UNSTABLE) from error
    if into:
        return into_merges(asked, found, whole)
    return found, merged_commands(asked, found)


def _evidence(
    asked: Asked,
    found: BisectDocument,
    home: Home,
    settings: RunnerSettings,
    *,
    plan_file: Path | None,
    explain: bool,
) -> Evidence | None:
    """Return what the culprit does more of; what cannot be told costs no answer."""
    from forkwatch.bisect_explaining import counted, explained
    from forkwatch.errors import DoorError
    from forkwatch.watching import LogProgress
    from runner.errors import OperatorError, StageError

    evidence = counted(found, home)
    if not explain or found.culprit is None:
        return evidence
    try:
        return explained(
            asked,
            found,
            evidence,
            plan_path=plan_file,
            home=home,
            settings=settings,
            progress=LogProgress(),
        )
    except (DoorError, OperatorError, StageError) as error:
        err.print(f"not explained: {error}", markup=False, highlight=False, soft_wrap=True)
        return evidence
