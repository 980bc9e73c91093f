"""The verb `forkwatch pipeline`: its arguments, and the steps it prints for Buildkite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from forkwatch.arguments import PlanFile, Repository, SuiteName
from forkwatch.compare_verb import PlanFrom
from forkwatch.pipeline import Event

HostClasses = Annotated[
    list[str] | None,
    typer.Option("--host-class", help="Only this, a queue too; all of the plan if absent."),
]
Hosts = Annotated[
    int, typer.Option("--hosts", min=1, max=1000, help="Machines of each host class.")
]


def pipeline(
    *,
    event: Annotated[
        Event | None, typer.Option("--event", help="What is measured; the build's own if absent.")
    ] = None,
    repository: Repository = Path(),
    plan_file: PlanFile = None,
    plan_from: PlanFrom = None,
    suite: SuiteName = "commit",
    host_class: HostClasses = None,
    hosts: Hosts = 1,
    history: Annotated[
        str | None, typer.Option("--history", help="Keep a history on this branch; judge by it.")
    ] = None,
    history_queue: Annotated[
        str | None, typer.Option("--history-queue", help="Queue of agents that may push it.")
    ] = None,
    service: Annotated[
        str, typer.Option("--service", help="Address of the service whose jobs are done.")
    ] = "",
) -> None:
    """Print the steps of a build for `buildkite-agent pipeline upload`."""
    from forkwatch.ci_settings import CiSettings
    from forkwatch.pipeline import Wish, pipeline_of
    from forkwatch.plan_sources import plan_path
    from workloads.plan import read_plan

    ci = CiSettings()
    with plan_path(repository.resolve(), plan_file, plan_from) as path:
        plan = read_plan(path)
    if event is None:
        event = Event.PULL_REQUEST if ci.is_pull_request else Event.PUSH
    wish = Wish(
        suite=suite,
        host_classes=tuple(host_class or plan.hosts),
        hosts=hosts,
        history=history,
        history_queue=history_queue,
        ask_first=event is Event.PULL_REQUEST and ci.is_from_outside,
        service=service,
    )
    print(json.dumps(pipeline_of(plan, event, wish), indent=2))  # noqa: T201  the product
