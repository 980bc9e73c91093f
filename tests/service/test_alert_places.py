"""Who hears of alerts, by the settings: GitHub, Slack, or else files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dbos import DBOS, DBOSConfig

from service.app.telling import alert_places, open_slack
from service.channels.file_alerts import FileAlerts
from service.core.settings import load_settings
from tests.fakes.memory_actions import MemoryActions
from tests.fakes.slack_api import CHANNEL, TOKEN, SlackServer
from tests.fakes.slack_opened import a_slack_like, a_template
from workloads.plan import Notify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fakes.slack_opened import OpenedSlack


@pytest.fixture
def slack(tmp_path: Path) -> Iterator[OpenedSlack]:
    with SlackServer() as server, a_slack_like(a_template(tmp_path), server, tmp_path) as opened:
        yield opened


def test_without_github_and_slack_there_are_files(slack: OpenedSlack, tmp_path: Path) -> None:
    places = alert_places(tmp_path, github=None, slack=None)

    where = places.raise_alert(slack.alert(), "# Slower\n", Notify())

    assert where == FileAlerts(tmp_path).raise_alert(slack.alert(), "# Slower\n", Notify())
    assert places.close_alert(slack.alert(), "Over.", key="c") is None


def test_slack_is_told_where_it_has_a_token(slack: OpenedSlack, tmp_path: Path) -> None:
    api = f"{slack.double.url}/api"
    settings = load_settings(slack_token=TOKEN, slack_channel=CHANNEL, slack_api_url=api)
    flows = f"sqlite:///{tmp_path / 'flows.sqlite'}"
    actions = MemoryActions(slack.alert())
    DBOS(config=DBOSConfig(name="forkwatch", system_database_url=flows))
    try:
        opened = open_slack(settings, database=slack.database, clock=slack.clock, actions=actions)
    finally:
        DBOS.destroy(destroy_registry=True)

    places = alert_places(tmp_path, github=None, slack=opened)
    where = places.raise_alert(slack.alert(), "# Slower\n", Notify())

    assert where.startswith("https://acme.slack.com/archives/C0ALERTS/p")
    assert not (tmp_path / "alerts").exists()
    assert places.close_alert(slack.alert(), "Over.", key="c") == where


def test_without_a_token_there_is_no_slack(slack: OpenedSlack) -> None:
    actions = MemoryActions(slack.alert())

    assert (
        open_slack(load_settings(), database=slack.database, clock=slack.clock, actions=actions)
        is None
    )
