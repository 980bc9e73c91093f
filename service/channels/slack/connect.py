"""Slack put together from the settings: its parts, or nothing where no token is set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from service.channels.slack.alerts import SlackAlerts
from service.channels.slack.client import SlackClient
from service.channels.slack.digests import SlackDigests
from service.channels.slack.posts import SlackPosts
from service.core.errors import SettingsError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from service.core.clock import Clock
    from service.core.settings import Settings
    from service.core.slack import AlertDetailsReader, SlackMemory

#: Where a token may travel unencrypted: to a double on this machine.
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, kw_only=True)
class SlackChannel:
    """Everything that the service does on Slack."""

    client: SlackClient
    posts: SlackPosts
    alerts: SlackAlerts
    digests: SlackDigests


def connect(
    settings: Settings,
    *,
    memory: SlackMemory,
    details: AlertDetailsReader,
    clock: Clock,
    bisects: bool = False,
    alone: AbstractContextManager[object] | None = None,
) -> SlackChannel | None:
    """Return the channel, or None where no token is set; nothing is asked of Slack yet.

    Args:
        settings: Of the service.
        memory: What was said where.
        details: Reads what a message says of an alert.
        clock: Tells the time.
        bisects: Whether a button begins a bisect.
        alone: Held by whoever looks and then writes; of this process where absent.

    Raises:
        SettingsError: The settings do not go together.
    """
    if settings.slack_token is None:
        return None
    if settings.slack_channel is None:
        raise SettingsError(
            "FORKWATCH_SLACK_TOKEN needs FORKWATCH_SLACK_CHANNEL, the id of the channel that "
            "hears of alerts, such as C0123456789"
        )
    client = SlackClient(
        settings.slack_token.get_secret_value(),
        api_url=_api_url(settings.slack_api_url),
        alone=alone,
    )
    posts = SlackPosts(client)
    return SlackChannel(
        client=client,
        posts=posts,
        alerts=SlackAlerts(
            client,
            posts,
            memory=memory,
            details=details,
            clock=clock,
            channel=settings.slack_channel,
            bisects=bisects,
        ),
        digests=SlackDigests(
            client, posts, channel=settings.slack_channel, base_url=settings.pages_url
        ),
    )


def _api_url(url: str) -> str:
    """Return the address with a slash at its end.

    Raises:
        SettingsError: Our token would travel there in the clear.
    """
    parts = urlsplit(url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not safe or not parts.hostname:
        raise SettingsError(f"FORKWATCH_SLACK_API_URL={url!r} is no https:// address")
    return f"{url.rstrip('/')}/"
