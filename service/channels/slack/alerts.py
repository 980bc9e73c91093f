"""The message of each alert on Slack: posted once, kept up to date, its news in its thread.

Alerts come in. What was posted is remembered, and looked for on Slack where nothing is remembered,
so that a crash at any moment leaves no second message. Somebody who removes a message of ours has
the last word.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from detectors.verdict import Decision
from reports.charts import png, starts_chart
from reports.facts import loudest_first, rows_that
from reports.markup import markdown
from reports.numbers import short
from reports.slack import (
    BUTTONS,
    SlackMessage,
    Standing,
    alert_message,
    deed_message,
    news_message,
)
from service.channels.slack.errors import SlackGoneError, SlackRefusedError
from service.channels.slack.routing import channel_of, quiet_until
from service.core.alert_actions import CLOSED_STATES, allowed_actions
from service.core.model import AlertState
from service.core.slack import FIRST, SlackPost

if TYPE_CHECKING:
    from service.channels.slack.client import SlackClient
    from service.channels.slack.posts import SlackPosts
    from service.core.clock import Clock
    from service.core.model import Alert
    from service.core.slack import AlertDetails, AlertDetailsReader, SlackMemory
    from workloads.plan import Notify

_log = logging.getLogger("forkwatch.slack")

#: Topic of the picture in the thread.
CHART: Final = "chart"
#: A key may be a comment's address; a topic has to fit a column.
_KEY_LENGTH_MAX: Final = 100
#: Of what a bisect says: workload, interval, commit, subject and author.
_FOUND_LENGTH_MAX: Final = 400
_SAID: Final = {
    AlertState.BISECTING: "The commits of its range are being measured.",
    AlertState.CULPRIT_FOUND: "The commit is found.",
    AlertState.ACKNOWLEDGED: "Acknowledged: somebody looks after it.",
    AlertState.ACCEPTED: "Accepted as intended.",
    AlertState.FIXED: "As fast as before again.",
    AlertState.FALSE: "A false alarm: nothing is slower.",
}


class SlackAlerts:
    """Alerts on one workspace."""

    def __init__(
        self,
        client: SlackClient,
        posts: SlackPosts,
        *,
        memory: SlackMemory,
        details: AlertDetailsReader,
        clock: Clock,
        channel: str,
        bisects: bool = False,
    ) -> None:
        """Remember the parts; nothing is asked yet.

        Args:
            client: Slack.
            posts: Our messages there.
            memory: What was posted.
            details: The runs behind the alerts.
            clock: For the quiet hours.
            channel: Where alerts go that the plan sends nowhere else.
            bisects: Whether somebody answers to the button that orders a bisect.
        """
        self._client, self._posts = client, posts
        self._memory, self._details, self._clock = memory, details, clock
        self._channel = channel
        self._bisects = bisects

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        """Have the alert's one message say how things are; return where it is, or waits.

        Raises:
            SlackUnavailableError: It may be there or not; raising it again is safe.
            SlackRefusedError: Slack does not allow it.
        """
        # The same facts as in the text, from the run itself, in Slack's own form.
        del text
        with self._client.alone:
            known = self._memory.find(alert.id, FIRST)
            if known is None or not known.ts:
                until = quiet_until(alert, notify.slack, now=self._clock.now())
                channel = channel_of(alert, notify.slack, usual=self._channel)
                known = known or SlackPost(alert=alert.id, topic=FIRST, channel=channel)
                known = replace(known, channel=channel, due_at=until)
                if until is not None:
                    self._memory.keep(known)
                    return f"on Slack after the quiet hours, at {until:%Y-%m-%d %H:%M} UTC"
            details = self._details(alert)
            post = self._first(alert, known, details)
            self._show_chart(alert, post, details)
        return self._posts.address(post.channel, post.ts)

    def close_alert(
        self, alert: Alert, text: str, *, key: str, intended: bool = False
    ) -> str | None:
        """Say in the thread why the alert is over, and in its message; return where.

        An alert that still waits for the morning is not told any more. Arguments are those of
        `AlertTracker`.
        """
        # The text says whether it was intended; a message has no kinds of being closed.
        del intended
        with self._client.alone:
            known = self._memory.find(alert.id, FIRST)
            if known is None:
                return None
            ended = replace(known, resolution=text)
            if not known.ts:
                self._memory.keep(replace(ended, due_at=None))
                return None
            # The reason first: should we be interrupted, it is better to have said it.
            self._reply(alert, known, f"closed:{key}", news_message(text))
            self._first(alert, ended, self._details(alert))
        return self._posts.address(known.channel, known.ts)

    def reopen_alert(self, alert: Alert, text: str, *, key: str) -> str | None:
        """Say in the thread that the loss is back, and in the message; return where.

        The same key opens it once: whoever closes it after that has the last word.
        """
        with self._client.alone:
            known = self._memory.find(alert.id, FIRST)
            if known is None:
                return None
            if not known.ts:
                # It was over before anybody heard of it, and now is not: the next look tells.
                self._memory.keep(replace(known, resolution="", due_at=self._clock.now()))
                return None
            topic = _topic(f"reopened:{key}")
            if self._memory.find(alert.id, topic) is None:
                self._first(alert, replace(known, resolution=""), self._details(alert))
                self._reply(alert, known, topic, news_message(text))
        return self._posts.address(known.channel, known.ts)

    def tell_news(self, alert: Alert, sentence: str, text: str, *, key: str) -> str | None:
        """Say something in the thread, once for each key, and bring the message up to date.

        While the alert is muted the thread stays still; issue and page have the news all the same.
        """
        del text
        with self._client.alone:
            known = self._memory.find(alert.id, FIRST)
            if known is None or not known.ts:
                return None
            if not alert.muted(self._clock.now()):
                self._reply(alert, known, f"news:{key}", news_message(sentence))
            self._first(alert, known, self._details(alert))
        return self._posts.address(known.channel, known.ts)

    def tell_deed(self, alert: Alert, deed: str, *, user: str, key: str, note: str = "") -> None:
        """Say in the thread who did what about an alert, once, and bring its message up to date."""
        with self._client.alone:
            known = self._memory.find(alert.id, FIRST)
            if known is None or not known.ts:
                return
            said = deed_message(deed, user=user, note=note)
            self._reply(alert, known, f"deed:{key}", said)
            open_again = alert.state not in CLOSED_STATES
            now = replace(known, resolution="") if open_again else known
            self._first(alert, now, self._details(alert))

    def _first(self, alert: Alert, known: SlackPost, details: AlertDetails) -> SlackPost:
        """Have the first message say how things are; return it as it is then."""
        message = self._message(alert, details, resolution=known.resolution)
        post = known
        if not post.ts:
            since = alert.opened_at
            ts = self._posts.find(post.channel, alert.id, FIRST, since=since)
            if not ts:
                ts = self._posts.post(post.channel, message, alert.id, FIRST)
                post = replace(post, digest=message.digest)
            post = replace(post, ts=ts, due_at=None)
            self._memory.keep(post)
        if post.digest != message.digest:
            self._edit(post, message)
            post = replace(post, digest=message.digest)
        if post != known:
            self._memory.keep(post)
        return post

    def _edit(self, post: SlackPost, message: SlackMessage) -> None:
        try:
            self._posts.edit(post.channel, post.ts, message, post.alert, post.topic)
        except SlackGoneError as error:
            _log.warning("the message of alert %s stays as it is: %s", post.alert, error)

    def _reply(self, alert: Alert, first: SlackPost, topic: str, message: SlackMessage) -> None:
        """Say something in the thread, once for each topic."""
        topic = _topic(topic)
        if self._memory.find(alert.id, topic) is not None:
            return
        try:
            ts = self._answer(alert, first, topic, message)
        except SlackGoneError as error:
            _log.warning("nobody hears of %s of alert %s: %s", topic, alert.id, error)
            ts = ""
        self._memory.keep(
            SlackPost(
                alert=alert.id, topic=topic, channel=first.channel, ts=ts, digest=message.digest
            )
        )

    def _answer(self, alert: Alert, first: SlackPost, topic: str, message: SlackMessage) -> str:
        """Return the name of the reply on a topic, posted now if it is not there."""
        where, since = first.channel, alert.opened_at
        there = self._posts.find(where, alert.id, topic, since=since, thread=first.ts)
        return there or self._posts.post(where, message, alert.id, topic, thread=first.ts)

    def _message(self, alert: Alert, details: AlertDetails, *, resolution: str) -> SlackMessage:
        resolved = bool(resolution) or alert.state in CLOSED_STATES
        able = () if resolved else tuple(action.value for action in allowed_actions(alert.state))
        # A range that was searched has its answer.
        search = not resolved and alert.state is not AlertState.BISECTING and not details.found
        if self._bisects and search:
            able = (*able, "bisect")
        if alert.state is AlertState.ACKNOWLEDGED:
            # Once is enough, although it may be said again.
            able = tuple(name for name in able if name != "acknowledge")
        return alert_message(
            details.rows,
            document=details.document,
            good=alert.baseline_sha,
            alert=alert.id,
            page=details.page,
            standing=Standing(
                said=resolution or _standing(alert, details),
                resolved=resolved,
                searched=bool(details.found),
                actions=tuple(name for name in BUTTONS if name in able),
            ),
        )

    def _show_chart(self, alert: Alert, first: SlackPost, details: AlertDetails) -> None:
        """Put the picture into the thread, once; an alert without one is told all the same."""
        if self._memory.find(alert.id, CHART) is not None:
            return
        drawn = _chart(details)
        if drawn is None:
            return
        name, since = f"forkwatch-{alert.id}.png", alert.opened_at
        try:
            there = self._posts.find_file(first.channel, name, since=since, thread=first.ts)
            if not there:
                title, content = drawn
                self._client.upload(
                    content, name=name, title=title, channel=first.channel, thread=first.ts
                )
        except SlackRefusedError as error:
            _log.warning("alert %s has no picture on Slack: %s", alert.id, error)
        self._memory.keep(SlackPost(alert=alert.id, topic=CHART, channel=first.channel))


def _standing(alert: Alert, details: AlertDetails) -> str:
    """Return in Markdown how an open alert stands, and which commit it was once that is known."""
    said = _SAID.get(alert.state, "")
    if not details.found:
        return said
    # The pair that confirmed the alert is told below, with numbers of its own.
    found = f"Bisected: {markdown(details.found, length_max=_FOUND_LENGTH_MAX)}"
    return found if alert.state is AlertState.CULPRIT_FOUND else f"{said} {found}".strip()


def _chart(details: AlertDetails) -> tuple[str, bytes] | None:
    """Return title and picture of the workload that lost most, if there is anything to draw."""
    slower = rows_that(details.rows, Decision.REGRESSION)
    if not slower:
        return None
    row = loudest_first(slower)[0]
    bad = short(details.document.candidate.commit.sha)
    try:
        drawn = png(starts_chart(details.document, row.workload))
    except ValueError as error:
        _log.warning("no picture of %s: %s", row.workload, error)
        return None
    return f"{row.workload} in each server start, baseline beside {bad}", drawn


def _topic(topic: str) -> str:
    kind, _, key = topic.partition(":")
    if len(key) <= _KEY_LENGTH_MAX:
        return topic
    return f"{kind}:{hashlib.sha256(key.encode()).hexdigest()}"
