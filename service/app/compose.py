"""The composition root: the only module that names every concrete part.

Settings come in, a service goes out. The other parameters are seams: a test hands a fake over where
the default would be a real repository, runner or alert sink.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbos import DBOS, DBOSConfig

from service.channels.file_alerts import FileAlerts
from service.channels.github.connect import connect
from service.channels.local_git import LocalGit
from service.channels.this_machine import ThisMachine
from service.core.clock import SystemClock
from service.core.errors import SettingsError
from service.flows.commit_flow import FLOW_VERSION, CommitFlow
from service.flows.steps import Steps
from service.flows.watcher import Watcher
from service.store.database import Database
from service.web import api, host_api
from service.web.application import web_application
from service.web.pages import missing_page, pages_router

if TYPE_CHECKING:
    from collections.abc import Collection

    from fastapi import FastAPI

    from service.core.clock import Clock
    from service.core.ports import AlertSink, CodeHost, Dispatcher
    from service.core.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Service:
    """The parts of a running service."""

    settings: Settings
    database: Database
    flow: CommitFlow
    watcher: Watcher
    app: FastAPI

    def start(self) -> None:
        """Resume the flows that were under way, and follow the branch."""
        DBOS.launch()
        self.flow.open_queue()
        self.watcher.start()

    def stop(self) -> None:
        """Follow the branch no more; flows go on until the process ends."""
        self.watcher.stop()


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
    home = settings.home_folder
    clock = clock or SystemClock()
    code_host = code_host or _local_git(settings)
    github = connect(settings)
    database = Database(settings.data_url)
    # The instance is a global of the library's; it has to be there before a flow is registered.
    DBOS(config=_flow_settings(settings))
    flow = CommitFlow(
        Steps(
            database=database,
            clock=clock,
            code_host=code_host,
            dispatcher=dispatcher or ThisMachine(home, cpus=runner_cpus),
            alerts=alerts or (github.issues if github else FileAlerts(home)),
            settings=settings,
        )
    )
    watcher = Watcher(
        database=database,
        clock=clock,
        code_host=code_host,
        settings=settings,
        begin=flow.enqueue,
    )
    routers = [
        api.submissions_router(database, clock=clock, stored=flow.notify),
        api.commits_router(database),
        api.samples_router(database),
        host_api.hosts_router(database),
        api.health_router(database, working=lambda: watcher.alive),
        pages_router(database),
    ]
    return Service(
        settings=settings,
        database=database,
        flow=flow,
        watcher=watcher,
        app=web_application(routers, missing_page=missing_page),
    )


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
