"""The weekly digest on Slack: one message for each fork and week, its picture in the thread.

Digests come in as they were stored, and are in the channel once however often they are sent: each
message carries in its metadata which week it is about, and is looked for before anything is posted.
What was sent is written down by the flow that sends.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Any, Final

from reports.charts import png
from reports.digest_chart import digest_chart
from reports.slack_digest import digest_message
from service.channels.slack.errors import SlackRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.channels.slack.client import SlackClient
    from service.channels.slack.posts import SlackPosts
    from service.core.digests import StoredDigest

_log = logging.getLogger("forkwatch.slack")

#: Beside the topics of an alert, none of whose ids begins as a digest is called here.
TOPIC: Final = "digest"
_FORK_DIGITS: Final = 16


class SlackDigests:
    """Weekly digests on one workspace."""

    def __init__(
        self, client: SlackClient, posts: SlackPosts, *, channel: str, base_url: str
    ) -> None:
        """Remember the parts; nothing is asked yet.

        Args:
            client: Slack.
            posts: Our messages there.
            channel: Where digests go.
            base_url: Address of the pages.
        """
        self._client, self._posts = client, posts
        self._channel = channel
        self._base_url = base_url.rstrip("/")

    def send_digest(self, digest: StoredDigest) -> str:
        """Have the message of a week in the channel, once however often called; return where.

        Raises:
            SlackUnavailableError: It may be there or not; sending it again is safe.
            SlackRefusedError: Slack does not allow it.
        """
        about = f"digest:{_fork_name(digest.fork)}:{digest.week.name}"
        with self._client.alone:
            ts = self._posts.find(self._channel, about, TOPIC, since=digest.created_at)
            if not ts:
                message = digest_message(digest.document, base_url=self._base_url)
                ts = self._posts.post(self._channel, message, about, TOPIC)
            self._show_chart(digest, ts)
        return self._posts.address(self._channel, ts)

    def _show_chart(self, digest: StoredDigest, thread: str) -> None:
        """Put the picture into the thread, once; a digest without one is told all the same."""
        drawn = _chart(digest.document)
        if drawn is None:
            return
        name = f"forkwatch-digest-{_fork_name(digest.fork)}-{digest.week.name}.png"
        since = digest.created_at
        try:
            there = self._posts.find_file(self._channel, name, since=since, thread=thread)
            if not there:
                title = f"What moved in week {digest.week.name}"
                self._client.upload(
                    drawn, name=name, title=title, channel=self._channel, thread=thread
                )
        except SlackRefusedError as error:
            _log.warning("the digest of week %s has no picture: %s", digest.week.name, error)


def _chart(document: Mapping[str, Any]) -> bytes | None:
    """Return the picture of a week, if it has anything to draw."""
    spec = None if document["quiet"] else digest_chart(document["facts"])
    return None if spec is None else png(spec)


def _fork_name(fork: str) -> str:
    """Return a fork's name in digits: it may hold anything, and this becomes the name of a file."""
    return hashlib.sha256(fork.encode()).hexdigest()[:_FORK_DIGITS]
