"""The composition root: the only module that names every concrete part.

Settings come in, a service goes out. The other parameters are seams: a test hands a fake over where
the default would be a real repository, runner or alert sink.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbos import DBOS, DBOSConfig

from service.app.alerting import alerting
from service.app.listening import listen
from service.app.telling import alert_places, open_slack
from service.channels.file_digests import FileDigests
from service.channels.github.connect import connect
from service.channels.local_git import LocalGit
from service.channels.this_machine import ThisMachine
from service.core.clock import SystemClock
from service.core.errors import SettingsError
from service.core.weeks import zone_of
from service.flows.alert_actions import StoredAlertActions
from service.flows.commit_flow import FLOW_VERSION, CommitFlow
from service.flows.digest import DigestFlow, DigestSteps
from service.flows.steps import Steps
from service.flows.watcher import Watcher
from service.store.database import Database
from service.web import api, host_api
from service.web.application import web_application
from service.web.digest_pages import digests_router
from service.web.pages import missing_page, pages_router
from service.web.slack_interactions import slack_router
from service.web.webhooks import webhooks_router

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from fastapi import APIRouter, FastAPI
    from pydantic import SecretStr

    from service.app.alerting import Alerting
    from service.app.listening import Listening
    from service.app.telling import OpenSlack
    from service.core.clock import Clock
    from service.core.model import Job
    from service.core.ports import AlertSink, CodeHost, Dispatcher
    from service.core.settings import Settings
    from service.flows.pull_request_flow import PullRequestFlow


@dataclass(frozen=True, kw_only=True)
class Service:
    """The parts of a running service."""

    settings: Settings
    database: Database
    flow: CommitFlow
    watcher: Watcher
    #: Pull requests; None where no repository on GitHub is set.
    pulls: PullRequestFlow | None
    #: None where no token for Slack is set.
    slack: OpenSlack | None
    alerting: Alerting
    digests: DigestFlow
    app: FastAPI

    def start(self) -> None:
        """Resume the flows that were under way, and follow the branch."""
        DBOS.launch()
        self.flow.open_queue()
        if self.pulls is not None:
            self.pulls.open_queue()
        if self.slack is not None:
            self.slack.flow.start()
        self.alerting.flow.resume()
        self.digests.open_schedule()
        self.watcher.start()

    def stop(self) -> None:
        """Follow the branch no more; flows go on until the process ends."""
        self.watcher.stop()
        if self.slack is not None:
            self.slack.flow.stop()


def compose(
    settings: Settings,
    runner_cpus: Collection[int] = (),
    *,
    clock: Clock | None = None,
    code_host: CodeHost | None = None,
    dispatcher: Dispatcher | None = None,
    alerts: AlertSink | None = None,
) -> Service:
    """Return a service that is ready to start.

    Raises:
        SettingsError: No repository is set.
    """
    clock = clock or SystemClock()
    code_host = code_host or _local_git(settings)
    github = connect(settings)
    dispatcher = dispatcher or ThisMachine(settings.home_folder, cpus=runner_cpus)
    database = Database(settings.data_url)
    # The instance is a global of the library's; it has to be there before a flow is registered.
    DBOS(config=_flow_settings(settings))
    actions = StoredAlertActions(database, clock)
    slack = open_slack(settings, database=database, clock=clock, actions=actions)
    sink = alerts or alert_places(settings.home_folder, github=github, slack=slack)
    about_alerts = alerting(settings, database=database, clock=clock, actions=actions, sink=sink)
    flow = CommitFlow(
        Steps(
            database=database,
            clock=clock,
            code_host=code_host,
            dispatcher=dispatcher,
            alerts=sink,
            settings=settings,
        ),
        life=about_alerts.life,
    )
    watcher = Watcher(
        database=database,
        clock=clock,
        code_host=code_host,
        settings=settings,
        begin=flow.enqueue,
    )
    listening = listen(
        github,
        settings=settings,
        database=database,
        clock=clock,
        code_host=code_host,
        dispatcher=dispatcher,
        queue=flow.queue,
        actions=actions,
        wake=watcher.wake,
    )
    routers = [
        *_doors(database, clock, about_alerts, stored=flow.notify),
        api.health_router(database, working=lambda: watcher.alive),
        *_hooks(settings, database, clock, listening=listening, slack=slack),
    ]
    return Service(
        settings=settings,
        database=database,
        flow=flow,
        watcher=watcher,
        pulls=listening.pulls if listening else None,
        slack=slack,
        alerting=about_alerts,
        digests=_digests(settings, database, clock),
        app=web_application(routers, missing_page=missing_page),
    )


def _doors(
    database: Database, clock: Clock, about_alerts: Alerting, *, stored: Callable[[Job], None]
) -> list[APIRouter]:
    """Return what people and tools use: what is read, what is brought, what is done on alerts."""
    read = [
        api.commits_router(database),
        api.samples_router(database),
        host_api.hosts_router(database),
        pages_router(database),
        digests_router(database),
    ]
    brought = api.submissions_router(
        database, clock=clock, stored=stored, tokens=about_alerts.tokens
    )
    return [about_alerts.guard.readable(read), brought, *about_alerts.routers]


def _digests(settings: Settings, database: Database, clock: Clock) -> DigestFlow:
    steps = DigestSteps(
        database=database,
        clock=clock,
        sink=FileDigests(settings.home_folder),
        zone=zone_of(settings.digest_time_zone),
        base_url=settings.base_url,
        against=settings.digest_against,
    )
    return DigestFlow(steps)


def _hooks(
    settings: Settings,
    database: Database,
    clock: Clock,
    *,
    listening: Listening | None,
    slack: OpenSlack | None,
) -> list[APIRouter]:
    """Return where others bring news; each sender signs what it says."""
    return [
        webhooks_router(
            database,
            clock=clock,
            secret=_revealed(settings.github_webhook_secret),
            repository=settings.github_repository,
            desk=listening.desk if listening else None,
        ),
        slack_router(
            database,
            clock=clock,
            secret=_revealed(settings.slack_signing_secret),
            begin=slack.flow.begin if slack else None,
        ),
    ]


def _local_git(settings: Settings) -> LocalGit:
    if settings.repository is None:
        raise SettingsError(
            "no repository to follow: give --repository, or set FORKWATCH_REPOSITORY"
        )
    return LocalGit(settings.repository)


def _flow_settings(settings: Settings) -> DBOSConfig:
    return DBOSConfig(
        name="forkwatch",
        system_database_url=settings.flows_url,
        # Recovery looks for flows of the same executor and version, so both outlive a restart.
        executor_id=settings.replica,
        application_version=FLOW_VERSION,
        console_log_level="WARNING",
    )


def _revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
