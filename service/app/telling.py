"""The places that hear of alerts, put together: GitHub, Slack, or else files.

Settings and the store come in; one place to tell comes out, and the flows that Slack's buttons
need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.channels.all_alerts import AllAlerts
from service.channels.file_alerts import FileAlerts
from service.channels.slack.connect import SlackChannel, connect
from service.flows.slack_clicks import SlackSteps, StoredAlertDetails
from service.flows.slack_flow import SlackFlow
from service.store.slack_messages import StoredSlackMemory

if TYPE_CHECKING:
    from pathlib import Path

    from service.channels.github.connect import GitHubChannel
    from service.core.clock import Clock
    from service.core.ports import AlertActions, AlertTracker
    from service.core.settings import Settings
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class OpenSlack:
    """Slack with what its buttons begin."""

    channel: SlackChannel
    flow: SlackFlow


def open_slack(
    settings: Settings, *, database: Database, clock: Clock, actions: AlertActions
) -> OpenSlack | None:
    """Return Slack, or None where no token is set; DBOS has to be there and not launched.

    Raises:
        SettingsError: The settings do not go together.
    """
    memory = StoredSlackMemory(database)
    channel = connect(
        settings, memory=memory, details=StoredAlertDetails(database, settings), clock=clock
    )
    if channel is None:
        return None
    steps = SlackSteps(database=database, settings=settings, slack=channel, actions=actions)
    return OpenSlack(channel=channel, flow=SlackFlow(steps, memory, clock=clock))


def alert_places(home: Path, *, github: GitHubChannel | None, slack: OpenSlack | None) -> AllAlerts:
    """Return every place that hears of alerts; files, where there is no other."""
    trackers: dict[str, AlertTracker] = {}
    if github is not None:
        trackers["github"] = github.issues
    if slack is not None:
        trackers["slack"] = slack.channel.alerts
    sinks = {} if trackers else {"files": FileAlerts(home)}
    return AllAlerts(trackers=trackers, sinks=sinks)
