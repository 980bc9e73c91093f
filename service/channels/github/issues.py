"""An issue for each alert: opened, kept up to date, closed with the reason, opened again.

Alerts and Markdown come in. People may rename, label, assign and close these issues as they like:
only our own words and labels are ever changed, and an issue that somebody closed is opened again
only when the loss comes back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from reports.issue import issue_title
from service.channels.github.limits import BODY_LENGTH_MAX, TITLE_LENGTH_MAX, cut_line, linked
from service.channels.github.markers import is_ours, marked, same_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.channels.github.client import GitHubClient
    from service.channels.github.comments import GitHubComments
    from service.core.model import Alert
    from workloads.plan import Notify

_log = logging.getLogger("forkwatch.github")

#: On each of our issues; it is also how they are listed.
LABEL: Final = "forkwatch"
#: GitHub takes longer ones, and nobody can read them.
_LABEL_LENGTH_MAX: Final = 50
#: A row of labels is to be read at a glance; the table has all of them.
_NAMED_MAX: Final = 5


class GitHubIssues:
    """The issues of the alerts of one repository."""

    def __init__(self, client: GitHubClient, comments: GitHubComments) -> None:
        self._client = client
        self._comments = comments

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        """Open the alert's issue, or bring it up to date; return its address.

        A title that somebody changed stays, and so does the state.

        Raises:
            CodeHostError: It may be open or not; raising it again is safe.
            RefusedError: GitHub does not allow it.
        """
        del notify
        body = linked(
            marked(_topic(alert), _without_title(text)),
            commits=self._client.commits_url,
            known=(alert.sha, alert.baseline_sha),
            length_max=BODY_LENGTH_MAX,
        )
        with self._client.alone:
            found = self._find(alert)
            if found is None:
                new = {"title": _title(alert), "body": body, "labels": [LABEL, *_labels(alert)]}
                found = self._client.post(f"{self._client.path}/issues", new)
            else:
                self._bring_up_to_date(found, alert, body)
        return str(found["html_url"])

    def close_alert(
        self, alert: Alert, text: str, *, key: str, intended: bool = False
    ) -> str | None:
        """Close the alert's issue and say why; return its address, None where there is none.

        Args:
            alert: Which.
            text: Why, in Markdown.
            key: What closed it, such as a commit: the same key says it once.
            intended: Somebody takes the loss as intended; else it is gone.
        """
        found = self._find(alert)
        if found is None:
            return None
        # The reason first: should we be interrupted, it is better to have said it.
        self._comments.say(found["number"], text, topic=f"{_topic(alert)}:closed:{key}")
        reason = "not_planned" if intended else "completed"
        if found["state"] != "closed":
            self._change(found, {"state": "closed", "state_reason": reason})
        return str(found["html_url"])

    def reopen_alert(self, alert: Alert, text: str, *, key: str) -> str | None:
        """Open the alert's issue again and say why; return its address, None where there is none.

        Whoever closes it after that has the last word: the same key opens it once.
        """
        found = self._find(alert)
        if found is None:
            return None
        topic = f"{_topic(alert)}:reopened:{key}"
        if found["state"] == "closed" and not self._comments.has(found["number"], topic):
            self._change(found, {"state": "open", "state_reason": "reopened"})
        self._comments.say(found["number"], text, topic=topic)
        return str(found["html_url"])

    def tell_news(self, alert: Alert, sentence: str, text: str, *, key: str) -> str | None:
        """Say something on the alert's issue, once for each key; return its address, if any."""
        del sentence
        found = self._find(alert)
        if found is None:
            return None
        self._comments.say(found["number"], text, topic=f"{_topic(alert)}:news:{key}")
        return str(found["html_url"])

    def _bring_up_to_date(self, found: Any, alert: Alert, body: str) -> None:
        changes: dict[str, Any] = {} if same_text(found, body) else {"body": body}
        labels = _with_ours(found, alert)
        if labels is not None:
            changes["labels"] = labels
        self._change(found, changes)

    def _find(self, alert: Alert) -> Any | None:
        """Return the alert's issue; the newest come first, and the list is never behind.

        GitHub's search would be, by seconds to minutes: long enough to open a second issue.
        """
        login = self._client.login()
        path = f"{self._client.path}/issues"
        listed = self._client.items(
            path, creator=login, state="all", sort="created", direction="desc"
        )
        topic = _topic(alert)
        # Gitea gives every issue the key, and a null.
        ours = (item for item in listed if item.get("pull_request") is None)
        return next((item for item in ours if is_ours(item, topic, login=login)), None)

    def _change(self, found: Any, changes: dict[str, Any]) -> None:
        if changes:
            self._client.patch(f"{self._client.path}/issues/{found['number']}", changes)


def _topic(alert: Alert) -> str:
    return f"alert:{alert.id}"


def _title(alert: Alert) -> str:
    effects = {item.workload: item.effect for item in alert.workloads}
    return cut_line(issue_title(effects, fork=alert.fork, bad=alert.sha), TITLE_LENGTH_MAX)


def _labels(alert: Alert) -> list[str]:
    """Return the labels that say what is slower, besides the one that all have."""
    names = sorted({item.workload for item in alert.workloads})
    return [
        cut_line(f"{LABEL}: {name}".replace(",", " "), _LABEL_LENGTH_MAX)
        for name in names[:_NAMED_MAX]
    ]


def _with_ours(found: Any, alert: Alert) -> list[str] | None:
    """Return all labels that the issue should have, or None where it has them."""
    there = _names(found["labels"])
    wanted = [LABEL, *_labels(alert)]
    others = [name for name in there if name != LABEL and not name.startswith(f"{LABEL}: ")]
    return None if set(there) == {*others, *wanted} else [*others, *wanted]


def _names(labels: Iterable[Any]) -> list[str]:
    # GitHub's description allows both forms.
    return [str(label["name"]) if isinstance(label, dict) else str(label) for label in labels]


def _without_title(text: str) -> str:
    """Return an alert's text without its heading, which is the issue's title."""
    first, _, rest = text.partition("\n")
    return rest.lstrip("\n") if first.startswith("# ") else text
