"""Dispatch put together: who does the jobs of each host class, and what a CI's runners knock at.

The parts of the service and its settings come in; one dispatcher for all flows goes out, with the
routes for runners elsewhere. It is a part of the composition root.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from service.channels.dispatch.buildkite import BuildkiteRunners
from service.channels.dispatch.by_host_class import ByHostClass
from service.channels.dispatch.github_actions import GitHubRunners
from service.channels.oidc import connect
from service.core.dispatch_settings import load_dispatch_settings
from service.core.dispatching import RunEnded, nobody_waits
from service.core.errors import SettingsError
from service.core.identity import CiSystem
from service.core.oidc_settings import load_oidc_settings
from service.flows.dispatched_runs import DispatchedRuns
from service.flows.dispatching import CiDispatcher
from service.web.dispatch_api import dispatched_router

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastapi import APIRouter

    from service.channels.github.connect import GitHubChannel
    from service.core.buildkite import BuildEnded
    from service.core.clock import Clock
    from service.core.dispatch_settings import DispatchSettings
    from service.core.oidc_settings import OidcSettings
    from service.core.ports import CiRunners, Dispatcher
    from service.core.settings import Settings
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class Dispatching:
    """Who does the jobs."""

    dispatcher: Dispatcher
    #: Where runners of a CI fetch orders and bring runs; none where no CI does jobs.
    routers: Sequence[APIRouter]
    #: Told of runs of GitHub and builds of Buildkite that are over; says whether anybody waited.
    run_ended: Callable[[RunEnded], bool]
    build_ended: Callable[[BuildEnded], bool]


def dispatching(
    settings: Settings,
    *,
    database: Database,
    clock: Clock,
    here: Dispatcher,
    github: GitHubChannel | None,
) -> Dispatching:
    """Return who does the jobs: this machine, unless the settings say otherwise.

    Args:
        settings: Of the service.
        database: Where dispatches are written down.
        clock: Tells how long they take.
        here: Starts runners on this machine.
        github: The watched repository on GitHub, where there is one.

    Raises:
        SettingsError: The settings do not go together.
    """
    chosen, oidc = load_dispatch_settings(), load_oidc_settings()
    runners = _runners(chosen, github=github)
    identities = connect(oidc, clock=clock)
    _check_identities(chosen, oidc, repository=settings.github_repository)
    if identities is None or not runners:
        return Dispatching(
            dispatcher=here, routers=(), run_ended=nobody_waits, build_ended=nobody_waits
        )
    ci = CiDispatcher(
        database=database,
        clock=clock,
        runners=runners,
        system_of=chosen.system_of,
        wait=timedelta(minutes=chosen.dispatch_wait_minutes),
    )
    runs = DispatchedRuns(dispatcher=ci, job_time=timedelta(minutes=settings.job_timeout_minutes))
    return Dispatching(
        dispatcher=ByHostClass(
            here=here, ci=ci, in_ci=lambda name: chosen.system_of(name) is not None
        ),
        routers=(dispatched_router(runs, identities=identities),),
        run_ended=ci.heard,
        build_ended=lambda news: _heard_build(ci, chosen, news),
    )


def _runners(
    chosen: DispatchSettings, *, github: GitHubChannel | None
) -> dict[CiSystem, CiRunners]:
    """Return what asks each CI that the settings name."""
    found: dict[CiSystem, CiRunners] = {}
    if CiSystem.GITHUB in chosen.systems:
        if github is None:
            raise SettingsError(
                "FORKWATCH_DISPATCH=...github needs FORKWATCH_GITHUB_REPOSITORY and what goes "
                "with it"
            )
        workflow = chosen.dispatch_github_workflow
        found[CiSystem.GITHUB] = GitHubRunners(github.client, workflow=workflow)
    if CiSystem.BUILDKITE in chosen.systems:
        pipeline, token = chosen.dispatch_buildkite_pipeline, chosen.dispatch_buildkite_token
        assert pipeline is not None, "the settings were checked"
        assert token is not None, "the settings were checked"
        found[CiSystem.BUILDKITE] = BuildkiteRunners(
            pipeline,
            token=token.get_secret_value(),
            api_url=chosen.dispatch_buildkite_api_url,
        )
    return found


def _check_identities(
    chosen: DispatchSettings, oidc: OidcSettings, *, repository: str | None
) -> None:
    """Check that the runs which are started here can prove that they are these."""
    named = {
        CiSystem.GITHUB: ("FORKWATCH_OIDC_GITHUB_REPOSITORY", oidc.github_repository, repository),
        CiSystem.BUILDKITE: (
            "FORKWATCH_OIDC_BUILDKITE_PIPELINE",
            oidc.buildkite_pipeline,
            chosen.dispatch_buildkite_pipeline,
        ),
    }
    for system in sorted(chosen.systems):
        variable, found, wanted = named[system]
        if found is None or wanted is None or found.casefold() != wanted.casefold():
            raise SettingsError(
                f"FORKWATCH_DISPATCH=...{system.value} needs {variable}={wanted or '...'} and "
                "FORKWATCH_OIDC_AUDIENCE: a runner proves by them that it is the run which was "
                "started"
            )


def _heard_build(ci: CiDispatcher, chosen: DispatchSettings, news: BuildEnded) -> bool:
    """Take news of a build that is over; builds of other pipelines have the same numbers."""
    ours = chosen.dispatch_buildkite_pipeline
    if ours is None or news.pipeline.casefold() != ours.casefold():
        return False
    return ci.heard(
        RunEnded(
            system=CiSystem.BUILDKITE,
            external_id=str(news.number),
            how=news.state,
            at=news.at,
        )
    )
