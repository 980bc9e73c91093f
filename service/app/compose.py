"""The composition root: the only module that names every concrete part.

Settings come in, a service goes out. The other parameters are seams: a test hands a fake over where
the default would be a real repository, runner or alert sink.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbos import DBOS, DBOSConfig

from service.app.alerting import alerting
from service.app.bisecting import bisecting
from service.app.dispatching import dispatching
from service.app.doors import doors, hooks
from service.app.histories import histories
from service.app.listening import listen
from service.app.operating import Operating
from service.app.parts import Common
from service.app.replicas import Replicas
from service.app.telling import alert_places, commit_checks, digest_places, open_slack
from service.channels.git_credentials import GitCredentials
from service.channels.github.connect import connect
from service.channels.local_git import LocalGit
from service.channels.this_machine import ThisMachine
from service.core.bisections import AlertNews
from service.core.clock import SystemClock
from service.core.errors import SettingsError
from service.core.weeks import zone_of
from service.flows.alert_actions import StoredAlertActions
from service.flows.commit_flow import FLOW_VERSION, CommitFlow
from service.flows.digest import DigestFlow, DigestSteps
from service.flows.steps import Steps
from service.flows.watcher import Watcher
from service.store.database import Database
from service.web.application import web_application
from service.web.pages import missing_page

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from fastapi import APIRouter, FastAPI

    from service.app.alerting import Alerting
    from service.app.bisecting import Bisecting
    from service.app.histories import Histories
    from service.app.telling import OpenSlack
    from service.channels.github.connect import GitHubChannel
    from service.core.clock import Clock
    from service.core.model import CommitRecord, CommitState
    from service.core.ports import AlertSink, CodeHost, Dispatcher
    from service.core.settings import Settings
    from service.flows.bisect_flow import BisectFlow
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
    bisects: BisectFlow
    #: Backfills and bridges; what waits is begun after each look at the branch.
    histories: Histories
    #: None where no token for Slack is set.
    slack: OpenSlack | None
    alerting: Alerting
    digests: DigestFlow
    operating: Operating
    replicas: Replicas
    app: FastAPI

    def start(self) -> None:
        """Resume the flows that were under way, and follow the branch.

        Raises:
            SettingsError: This process may not join the others of its service.
        """
        self.replicas.join()
        DBOS.launch()
        self.resume()
        if self.slack is not None:
            self.slack.flow.start()
        self.digests.open_schedule()
        self.operating.start()
        self.watcher.start()
        self.replicas.start(self.resume)

    def resume(self) -> None:
        """Begin what a process wrote down and did not begin; what has a flow is left alone."""
        self.flow.open_queue()
        self.bisects.open_queue()
        if self.pulls is not None:
            self.pulls.open_queue()
        self.alerting.flow.resume()
        self.watcher.resume()

    def stop(self) -> None:
        """Follow the branch no more; flows go on until the process ends."""
        self.replicas.stop()
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
    database = Database(settings.data_url)
    clock = clock or SystemClock()
    replicas = Replicas(settings)
    github = connect(settings, alone=replicas.alone("github"))
    who = dispatching(
        settings,
        database=database,
        clock=clock,
        here=ThisMachine(settings.home_folder, cpus=runner_cpus),
        github=github,
    )
    common = Common(
        settings=settings,
        database=database,
        clock=clock,
        code_host=code_host or code_host_of(settings, github),
        dispatcher=dispatcher or who.dispatcher,
        actions=StoredAlertActions(database, clock),
        replicas=replicas,
        run_ended=who.run_ended,
        build_ended=who.build_ended,
    )
    # The instance is a global of the library's; it has to be there before a flow is registered.
    DBOS(config=_flow_settings(settings))
    return _composed(common, alerts=alerts, github=github, runners=who.routers)


def _composed(
    common: Common,
    *,
    alerts: AlertSink | None,
    github: GitHubChannel | None,
    runners: Sequence[APIRouter],
) -> Service:
    settings, database, clock = common.settings, common.database, common.clock
    operating = Operating(settings, database=database, clock=clock)
    # Made below: bisects speak through what is opened here, and are begun by what is made here.
    bisects: Bisecting
    slack = open_slack(
        settings,
        database=database,
        clock=clock,
        actions=common.actions,
        bisect=lambda alert, actor: bisects.asks.press(alert, actor),  # noqa: PLW0108  made below
        alone=common.replicas.alone("slack"),
    )
    sink = alerts or alert_places(
        settings.home_folder, github=github, slack=slack, told=operating.told
    )
    about_alerts = alerting(
        settings, database=database, clock=clock, actions=common.actions, sink=sink
    )
    steps = _steps(common, sink)
    flow = CommitFlow(
        steps,
        life=about_alerts.life,
        alerted=lambda alert, sha: bisects.alerted.alerted(alert, sha),  # noqa: PLW0108  made below
        shown=commit_checks(github, common),
    )
    news = sink if isinstance(sink, AlertNews) else None
    bisects = bisecting(common, queue=flow.queue, github=github, news=news)
    past = histories(common, steps=steps, queue=flow.queue)
    watcher = _watcher(common, begin=flow.enqueue, aside=past.begin_waiting, shown=flow.show)
    listening = listen(github, common, queue=flow.queue, bisects=bisects.asks, wake=watcher.wake)
    app = web_application(
        [
            *doors(common, alerting=about_alerts, stored=flow.notify),
            *bisects.routers(about_alerts.guard),
            *past.routers(about_alerts.guard),
            *operating.routers(watcher, guard=about_alerts.guard),
            *hooks(
                settings,
                database,
                clock,
                listening=listening,
                slack=slack,
                build_ended=common.build_ended,
            ),
            *runners,
        ],
        missing_page=missing_page,
    )
    return Service(
        settings=settings,
        database=database,
        flow=flow,
        watcher=watcher,
        pulls=listening.pulls if listening else None,
        bisects=bisects.flow,
        histories=past,
        slack=slack,
        alerting=about_alerts,
        digests=_digests(common, slack),
        operating=operating,
        replicas=common.replicas,
        app=operating.around(app),
    )


def _steps(common: Common, sink: AlertSink) -> Steps:
    return Steps(
        database=common.database,
        clock=common.clock,
        code_host=common.code_host,
        dispatcher=common.dispatcher,
        alerts=sink,
        settings=common.settings,
    )


def _watcher(
    common: Common,
    *,
    begin: Callable[[CommitRecord], None],
    aside: Callable[[], None],
    shown: Callable[[str, str, CommitState], None],
) -> Watcher:
    return Watcher(
        database=common.database,
        clock=common.clock,
        code_host=common.code_host,
        settings=common.settings,
        begin=begin,
        aside=aside,
        shown=shown,
        alone=common.replicas.alone("branch"),
    )


def _digests(common: Common, slack: OpenSlack | None) -> DigestFlow:
    settings = common.settings
    steps = DigestSteps(
        database=common.database,
        clock=common.clock,
        sink=digest_places(settings.home_folder, slack),
        zone=zone_of(settings.digest_time_zone),
        base_url=settings.pages_url,
        against=settings.digest_against,
    )
    return DigestFlow(steps)


def code_host_of(settings: Settings, github: GitHubChannel | None) -> LocalGit:
    """Return the repository of the settings, read with what the service has for GitHub.

    Raises:
        SettingsError: No repository is set.
    """
    if settings.repository is None:
        raise SettingsError(
            "no repository to follow: give --repository, or set FORKWATCH_REPOSITORY"
        )
    # What the App or the token may read on GitHub, git may fetch from there.
    address = github.client.site_url if github else None
    if github is None or address is None:
        return LocalGit(settings.repository)
    return LocalGit(
        settings.repository, GitCredentials(address=address, token=github.client.git_token)
    )


def _flow_settings(settings: Settings) -> DBOSConfig:
    return DBOSConfig(
        name="forkwatch",
        system_database_url=settings.flows_url,
        # Recovery looks for flows of the same executor and version, so both outlive a restart.
        executor_id=settings.replica,
        application_version=FLOW_VERSION,
        console_log_level="WARNING",
    )
