"""The places that hear of alerts and digests, put together: GitHub, Slack, files.

Settings and the store come in; one place to tell comes out, and the flows that Slack's buttons
need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.channels.all_alerts import AllAlerts, Told
from service.channels.all_digests import AllDigests
from service.channels.file_alerts import FileAlerts
from service.channels.file_digests import FileDigests
from service.channels.slack.connect import SlackChannel, connect
from service.flows.commit_checks import CommitChecks, CommitCheckSteps
from service.flows.slack_clicks import SlackSteps, StoredAlertDetails
from service.flows.slack_flow import SlackFlow
from service.store.slack_messages import StoredSlackMemory

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from service.app.parts import Common
    from service.channels.github.connect import GitHubChannel
    from service.channels.github.issues import GitHubIssues
    from service.channels.slack.alerts import SlackAlerts
    from service.core.clock import Clock
    from service.core.model import CommitState
    from service.core.ports import AlertActions, DigestSink
    from service.core.settings import Settings
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class OpenSlack:
    """Slack with what its buttons begin."""

    channel: SlackChannel
    flow: SlackFlow


def open_slack(
    settings: Settings,
    *,
    database: Database,
    clock: Clock,
    actions: AlertActions,
    bisect: Callable[[str, str], None] | None = None,
    alone: AbstractContextManager[object] | None = None,
) -> OpenSlack | None:
    """Return Slack, or None where no token is set; DBOS has to be there and not launched.

    Args:
        settings: Of the service.
        database: Of the service.
        clock: Of the service.
        actions: What its buttons order.
        bisect: What its button for a bisect begins; it has none where absent.
        alone: Held by whoever looks and then writes; of this process where absent.

    Raises:
        SettingsError: The settings do not go together.
    """
    memory = StoredSlackMemory(database)
    channel = connect(
        settings,
        memory=memory,
        details=StoredAlertDetails(database, settings),
        clock=clock,
        bisects=bisect is not None,
        alone=alone,
    )
    if channel is None:
        return None
    steps = SlackSteps(
        database=database, settings=settings, slack=channel, actions=actions, bisect=bisect
    )
    return OpenSlack(channel=channel, flow=SlackFlow(steps, memory, clock=clock))


def alert_places(
    home: Path,
    *,
    github: GitHubChannel | None,
    slack: OpenSlack | None,
    told: Told | None = None,
) -> AllAlerts:
    """Return every place that hears of alerts; files, where there is no other.

    Args:
        home: Folder of the service.
        github: Told in issues.
        slack: Told in threads.
        told: Hears which place was told, and whether that went well.
    """
    places: dict[str, GitHubIssues | SlackAlerts] = {}
    if github is not None:
        places["github"] = github.issues
    if slack is not None:
        places["slack"] = slack.channel.alerts
    sinks = {} if places else {"files": FileAlerts(home)}
    return AllAlerts(trackers=places, sinks=sinks, news=places, told=told)


def commit_checks(
    github: GitHubChannel | None, common: Common
) -> Callable[[str, str, CommitState], None] | None:
    """Return what has commits of the branch show how they are; DBOS must not be launched yet.

    None where there is no GitHub, or the settings do not want it.

    Args:
        github: Where they show it.
        common: Of the service.
    """
    if github is None or not common.settings.github_commit_checks:
        return None
    steps = CommitCheckSteps(
        database=common.database,
        checks=github.checks,
        settings=common.settings,
        alone=github.client.alone,
    )
    return CommitChecks(steps).told


def digest_places(home: Path, slack: OpenSlack | None) -> DigestSink:
    """Return every place that gets the weekly digest: files always, Slack where it is set up.

    Args:
        home: Folder of the service.
        slack: Gets a message for each week.
    """
    files = FileDigests(home)
    if slack is None:
        return files
    return AllDigests({"files": files, "slack": slack.channel.digests})
