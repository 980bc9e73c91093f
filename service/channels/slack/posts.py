"""Posts on Slack that are found again: every message of ours carries what it is about.

Messages come in; they are looked for by their metadata and by who posted them, posted, or edited.
Whoever puts our metadata into a message of their own gains nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from service.channels.slack.client import PER_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from reports.slack import SlackMessage
    from service.channels.slack.client import SlackClient

#: What Slack calls an event: our kind of metadata.
EVENT: Final = "forkwatch_alert"
#: A post that was not written down was made minutes ago; so many newer messages are looked at.
MESSAGES_MAX: Final = 2_000
#: Clocks of Slack and of this machine differ by less.
CLOCKS_SECONDS: Final = 3_600


class SlackPosts:
    """The messages of one workspace's app."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client

    def find(
        self, channel: str, alert: str, topic: str, *, since: datetime, thread: str = ""
    ) -> str:
        """Return the name of our message on a topic; empty where there is none.

        Args:
            channel: Where.
            alert: What it is about.
            topic: And what of it.
            since: It was not posted before.
            thread: The message that it answers, for a reply.
        """
        for message in self._messages(channel, since=since, thread=thread):
            if _is_about(message, alert, topic) and self._is_ours(message):
                return str(message["ts"])
        return ""

    def find_file(self, channel: str, name: str, *, since: datetime, thread: str) -> bool:
        """Whether we have put a file of this name into a thread."""
        return any(
            file.get("name") == name
            for message in self._messages(channel, since=since, thread=thread)
            if self._is_ours(message)
            for file in message.get("files") or ()
        )

    def post(
        self, channel: str, message: SlackMessage, alert: str, topic: str, *, thread: str = ""
    ) -> str:
        """Post a message; return its name. Look first."""
        body = self._body(channel, message, alert, topic)
        body |= {"unfurl_links": False, "unfurl_media": False}
        if thread:
            body["thread_ts"] = thread
        return str(self._client.write("chat.postMessage", body)["ts"])

    def edit(self, channel: str, ts: str, message: SlackMessage, alert: str, topic: str) -> None:
        """Have a message say this."""
        # Slack drops the metadata of a message that is edited without.
        body = self._body(channel, message, alert, topic)
        self._client.write("chat.update", {**body, "ts": ts})

    def whisper(self, channel: str, user: str, message: SlackMessage) -> None:
        """Say something to one person only, where they are; it is gone when they leave."""
        body: dict[str, Any] = {
            "channel": channel,
            "user": user,
            "text": message.text,
            "blocks": list(message.blocks),
        }
        self._client.write("chat.postEphemeral", body)

    def address(self, channel: str, ts: str) -> str:
        """Return where people find a message."""
        return f"{self._client.identity().url}archives/{channel}/p{ts.replace('.', '')}"

    def _body(self, channel: str, message: SlackMessage, alert: str, topic: str) -> dict[str, Any]:
        return {
            "channel": channel,
            "text": message.text,
            "blocks": list(message.blocks),
            "metadata": {
                "event_type": EVENT,
                "event_payload": {"alert": alert, "topic": topic},
            },
            "link_names": False,
        }

    def _messages(self, channel: str, *, since: datetime, thread: str) -> Iterator[dict[str, Any]]:
        asked: dict[str, str | int] = {
            "channel": channel,
            "include_all_metadata": "true",
            "oldest": f"{since.timestamp() - CLOCKS_SECONDS:.6f}",
        }
        pages = MESSAGES_MAX // PER_PAGE
        if thread:
            method = "conversations.replies"
            return self._client.items(method, "messages", pages_max=pages, ts=thread, **asked)
        method = "conversations.history"
        return self._client.items(method, "messages", pages_max=pages, **asked)

    def _is_ours(self, message: dict[str, Any]) -> bool:
        me = self._client.identity()
        return bool(me.bot and message.get("bot_id") == me.bot) or message.get("user") == me.user


def _is_about(message: dict[str, Any], alert: str, topic: str) -> bool:
    metadata = message.get("metadata") or {}
    about = metadata.get("event_payload") or {}
    return bool(
        metadata.get("event_type") == EVENT
        and about.get("alert") == alert
        and about.get("topic") == topic
    )
