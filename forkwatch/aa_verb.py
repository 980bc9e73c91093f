"""The verb `forkwatch host aa`: its arguments, the timer that gives them weekly, the service's way.

Exit status: 0 fine, 1 failed work, 2 misuse, 3 an unstable host, or one that called two copies of
an artifact different.
"""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path
from typing import Annotated

import typer

from forkwatch.arguments import AsJson, HomeFolder, PlanFile, Repository, SuiteName, Workloads
from forkwatch.homes import open_home
from forkwatch.streams import EXIT_FOUND, err


def aa(
    revision: Annotated[str, typer.Argument(help="The commit to check with.")] = "HEAD",
    *,
    repository: Repository = Path(),
    home: HomeFolder = None,
    plan_file: PlanFile = None,
    suite: SuiteName = "commit",
    workload: Workloads = None,
    starts: Annotated[
        int | None,
        typer.Option("--starts", min=2, max=100, help="Starts per side; the suite's if absent."),
    ] = None,
    build_twice: Annotated[
        bool, typer.Option("--build-twice", help="Build the commit again instead of copying it.")
    ] = False,
    timer: Annotated[
        bool, typer.Option("--timer", help="Print a systemd timer for this; measure nothing.")
    ] = False,
    service: Annotated[
        bool,
        typer.Option("--service", help="Have the service on this machine check its host class."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure one artifact against itself: what this host can see; exit 3 when it sees ghosts."""
    from forkwatch.aa_showing import show
    from forkwatch.watching import LogProgress
    from runner.aa import AaQuestion, check
    from runner.errors import StageError
    from workloads.plan import PLAN_FILE, read_plan

    if service:
        chosen = (plan_file, workload, starts, build_twice, timer, revision != "HEAD")
        _ask_service(repository, home, chosen=any(chosen), as_json=as_json)
        return
    path = plan_file or repository / PLAN_FILE
    # A wrong plan is told now, not to whoever looks after the timer.
    read_plan(path).suite(suite)
    if timer:
        words = _options({"repository": repository, "plan": plan_file, "home": home})
        words += ["--suite", suite, *(["--starts", str(starts)] if starts else [])]
        words += [part for name in workload or () for part in ("--workload", name)]
        words += ["--build-twice"] if build_twice else []
        _print_timer([revision, *words])
        return
    home_folder, settings = open_home(home)
    question = AaQuestion(
        repository=repository.resolve(),
        revision=revision,
        plan_text=path.read_text(),
        suite=suite,
        workloads=tuple(workload or ()),
        starts=starts,
        host_class=settings.host_class,
        build_twice=build_twice,
    )
    try:
        found = check(question, home=home_folder, settings=settings, progress=LogProgress())
    except StageError as error:
        err.print(f"{error.stage}: {error}\n{error.log_tail}", markup=False, highlight=False)
        raise typer.Exit(EXIT_FOUND) from error
    show(found, as_json=as_json)


def _ask_service(repository: Path, home: Path | None, *, chosen: bool, as_json: bool) -> None:
    from forkwatch.aa_asking import ask_service

    if chosen:
        raise typer.BadParameter(
            "with --service, commit, plan and suite are the service's own: give --repository, "
            "--home and --json alone"
        )
    ask_service(repository if repository != Path() else None, home, as_json=as_json)


def _print_timer(words: list[str]) -> None:
    from forkwatch.aa_timer import timer_text

    command = [sys.executable, "-m", "forkwatch", "host", "aa", *words]
    user = pwd.getpwuid(os.geteuid()).pw_name
    print(timer_text(command, user=user), end="")  # noqa: T201  the product


def _options(paths: dict[str, Path | None]) -> list[str]:
    """Return options with absolute paths: a timer begins in another folder."""
    given = {name: path for name, path in paths.items() if path is not None}
    return [part for name, path in given.items() for part in (f"--{name}", str(path.resolve()))]
