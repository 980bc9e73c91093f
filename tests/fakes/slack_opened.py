"""A double of Slack with the service's channel on it, and a stored alert to talk about.

with a_slack(server, database) as slack:
    slack.alerts.raise_alert(slack.alert(), "", Notify())
    assert slack.double.first_messages() == ...
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import update

from results.job import JobOrder
from service.channels.slack.alerts import SlackAlerts
from service.channels.slack.client import SlackClient
from service.channels.slack.connect import SlackChannel
from service.channels.slack.digests import SlackDigests
from service.channels.slack.posts import SlackPosts
from service.core.settings import load_settings
from service.flows.slack_clicks import StoredAlertDetails
from service.store import alerts, migrate
from service.store.database import Database
from service.store.slack_messages import StoredSlackMemory
from service.store.tables import JobRow
from tests.fakes.memory_fork import StillClock
from tests.fakes.scripted_measurement import PLAN
from tests.fakes.slack_api import CHANNEL, TOKEN, SlackDouble
from tests.fakes.stored_fork import SHAS, a_week

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.core.model import Alert
    from tests.fakes.slack_api import SlackServer

ALERT = "alert-1"
#: The alert was opened on the third.
NOON = datetime(2026, 11, 4, 12, 0, tzinfo=UTC)
ADA, EVE = "U0ADA", "U0EVE"


class OpenedSlack:
    """The double, and the service's parts on it."""

    def __init__(self, double: SlackDouble, database: Database) -> None:
        self.double, self.database = double, database
        self.clock = StillClock(NOON)
        self.waited: list[float] = []
        self.memory = StoredSlackMemory(database)
        self.settings = load_settings(slack_writers=ADA)
        self.channel = self.connected()
        self.alerts = self.channel.alerts

    def connected(self, *, bisects: bool = False, token: str = TOKEN) -> SlackChannel:
        """Return the channel as after a restart: it knows what the store knows."""
        client = SlackClient(token, api_url=f"{self.double.url}/api/", sleep=self.waited.append)
        posts = SlackPosts(client)
        alerts_of_slack = SlackAlerts(
            client,
            posts,
            memory=self.memory,
            details=StoredAlertDetails(self.database, self.settings),
            clock=self.clock,
            channel=CHANNEL,
            bisects=bisects,
        )
        digests = SlackDigests(client, posts, channel=CHANNEL, base_url=self.settings.pages_url)
        return SlackChannel(client=client, posts=posts, alerts=alerts_of_slack, digests=digests)

    def alert(self, **changes: Any) -> Alert:
        """Return the stored alert with these changes."""
        with self.database.reading() as session:
            found = alerts.find(session, ALERT)
        assert found is not None
        return replace(found, **changes)


def with_an_alert(database: Database, *, notify: str = "") -> None:
    """Store a week with an alert, and the order that it came from."""
    with database.writing() as session:
        a_week(session)
        for job in ("job-of-run-5", "job-of-run-5c"):
            order = JobOrder(
                job=job,
                run=job.removeprefix("job-of-"),
                repository=Path("fork"),
                plan=f"{PLAN}\n{notify}",
                branch="main",
                suite="commit",
                host_class="small",
                candidate=SHAS[4],
            )
            session.execute(
                update(JobRow).where(JobRow.id == job).values(order=order.model_dump_json())
            )


@contextmanager
def a_slack(server: SlackServer, database: Database) -> Iterator[OpenedSlack]:
    """Open a workspace for a database that has the alert."""
    double = SlackDouble(server.url)
    server.double = double
    yield OpenedSlack(double, database)
    server.double = None


def a_template(folder: Path) -> Path:
    """Return a SQLite file with the alert, to be copied: tables are made once for many tests."""
    path = folder / "template.sqlite"
    url = f"sqlite:///{path}"
    migrate.upgrade(url)
    database = Database(url)
    with_an_alert(database)
    database.close()
    return path


@contextmanager
def a_slack_like(template: Path, server: SlackServer, folder: Path) -> Iterator[OpenedSlack]:
    """Open a workspace for a copy of a template."""
    path = folder / "slack.sqlite"
    shutil.copy(template, path)
    database = Database(f"sqlite:///{path}")
    with a_slack(server, database) as slack:
        yield slack
    database.close()
