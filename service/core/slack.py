"""What the Slack channel remembers and asks for: posts, clicks, and the facts of an alert.

Frozen values and small protocols. The channel knows no tables, the store knows no Slack; they meet
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from reports.rows import Row
    from results.document import RunDocument
    from service.core.model import Alert

#: Topic of the one message of an alert; everything else we say about it is in its thread.
FIRST: Final = "alert"


@dataclass(frozen=True, kw_only=True)
class SlackPost:
    """Something said on Slack about an alert, or that waits for the end of the quiet hours."""

    alert: str
    #: `FIRST`, or what a reply in its thread is about; each topic is said once.
    topic: str
    #: Id of the channel.
    channel: str
    #: Slack's name of the message in its channel; empty while it waits.
    ts: str = ""
    #: SHA-256 of what it says, so that an edit which changes nothing is not made.
    digest: str = ""
    #: How the alert ended, in Markdown; empty while it is open.
    resolution: str = ""
    #: When it may be posted; None once it is, or if it no longer has to be.
    due_at: datetime | None = None


class SlackMemory(Protocol):
    """Remembers what was posted, across restarts and replicas."""

    def find(self, alert: str, topic: str) -> SlackPost | None:
        """Return what is known about a post."""
        ...

    def keep(self, post: SlackPost) -> None:
        """Remember a post in place of what was known about it."""
        ...

    def due(self, at: datetime) -> list[str]:
        """Return the alerts whose first message waited until now."""
        ...


@dataclass(frozen=True, kw_only=True)
class AlertDetails:
    """What a message about an alert is made from."""

    #: Of the run that confirmed it.
    rows: tuple[Row, ...]
    document: RunDocument
    #: Address of the alert's page.
    page: str
    #: What a bisect of its range has found, in a plain sentence; empty where none named a commit.
    found: str = ""


class AlertDetailsReader(Protocol):
    """Knows the runs behind the alerts."""

    def __call__(self, alert: Alert) -> AlertDetails:
        """Return the details of an alert."""
        ...


@dataclass(frozen=True, kw_only=True)
class SlackClick:
    """Somebody pressed a button of ours."""

    #: Id of the person.
    user: str
    channel: str
    #: The message that has the button.
    ts: str
    action: str
    #: Id of the alert.
    alert: str
    #: The same for the same press of the button, however often it arrives.
    key: str
