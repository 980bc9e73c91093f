"""The settings for Slack: they go together, and secrets stay secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.channels.slack.connect import connect
from service.core.errors import SettingsError
from service.core.settings import Settings, load_settings
from service.flows.slack_clicks import StoredAlertDetails
from service.store.database import Database
from service.store.slack_messages import StoredSlackMemory
from tests.fakes.memory_fork import StillClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.channels.slack.connect import SlackChannel

TOKEN = "xoxb-1-secret"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FORKWATCH_{name.upper()}", raising=False)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 'none.sqlite'}")
    yield database
    database.close()


def connected(database: Database, **chosen: Any) -> SlackChannel | None:
    settings = load_settings(**chosen)
    return connect(
        settings,
        memory=StoredSlackMemory(database),
        details=StoredAlertDetails(database, settings),
        clock=StillClock(),
    )


def test_without_a_token_there_is_no_channel(empty: Database) -> None:
    assert connected(empty, slack_channel="C0ALERTS") is None


def test_a_token_needs_a_channel(empty: Database) -> None:
    with pytest.raises(SettingsError, match="needs FORKWATCH_SLACK_CHANNEL"):
        connected(empty, slack_token=TOKEN)


def test_nothing_is_asked_before_there_is_something_to_say(empty: Database) -> None:
    assert connected(empty, slack_token=TOKEN, slack_channel="C0ALERTS") is not None


@pytest.mark.parametrize("url", ["http://slack.example/api/", "slack.com", "ftp://x", "https://"])
def test_a_token_never_travels_in_the_clear(empty: Database, url: str) -> None:
    with pytest.raises(SettingsError, match="is no https:// address"):
        connected(empty, slack_token=TOKEN, slack_channel="C0ALERTS", slack_api_url=url)


@pytest.mark.parametrize("channel", ["#alerts", "alerts", "c0alerts", "C0ALERTS/x", ""])
def test_a_channel_is_an_id(channel: str) -> None:
    with pytest.raises(SettingsError, match="such as C0123456789"):
        load_settings(slack_channel=channel)


@pytest.mark.parametrize(
    ("writers", "ids"),
    [
        ("", set()),
        ("U0ADA", {"U0ADA"}),
        ("U0ADA,W0BOB", {"U0ADA", "W0BOB"}),
        ("U0ADA, W0BOB", {"U0ADA", "W0BOB"}),
    ],
)
def test_writers_are_ids(writers: str, ids: set[str]) -> None:
    assert load_settings(slack_writers=writers).slack_writer_ids == ids


@pytest.mark.parametrize("writers", ["ada", "U0ADA W0BOB", "@ada", "*", "u0ada"])
def test_a_writer_without_an_id_is_refused(writers: str) -> None:
    with pytest.raises(SettingsError, match="FORKWATCH_SLACK_WRITERS"):
        load_settings(slack_writers=writers)


def test_a_secret_is_not_shown_even_when_it_is_wrong() -> None:
    with pytest.raises(SettingsError, match="SLACK_SIGNING_SECRET=\\.\\.\\.") as caught:
        load_settings(slack_signing_secret="too-short")

    assert "too-short" not in str(caught.value)
    shown = repr(load_settings(slack_token=TOKEN, slack_signing_secret="x" * 20))
    assert TOKEN not in shown
    assert "x" * 20 not in shown
