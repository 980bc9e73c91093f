"""Comments on pull requests and issues, each on one topic and there once.

Markdown comes in. A sticky comment is edited in place; an answer is given once to each question.
Comments of ours are found by their first line and by who wrote them, in the list and not in a
memory of ours, so that a crash at any moment leaves no second one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from service.channels.github.limits import BODY_LENGTH_MAX, linked
from service.channels.github.markers import is_ours, marked, same_text

if TYPE_CHECKING:
    from service.channels.github.client import GitHubClient

_log = logging.getLogger("forkwatch.github")

#: Says "seen" to whoever wrote a command.
SEEN: Final = "eyes"


class GitHubComments:
    """The comments of one repository."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client

    def stick(self, pull: int, text: str, *, suite: str, loud: bool) -> str | None:
        """Have one comment on a pull request say this; return its address, if there is one.

        Args:
            pull: Number of the pull request.
            text: What it says, in Markdown.
            suite: Which measurement it is about; each suite has a comment of its own.
            loud: Whether it is worth a new comment. If not, a comment that is there is still
                brought up to date, because it would otherwise go on to claim what is over.

        Raises:
            CodeHostError: It may be there or not; calling again is safe.
            RefusedError: GitHub does not allow it, such as in a locked conversation.
        """
        return self.say(pull, text, topic=f"pull:{suite}", create=loud)

    def answer(self, number: int, question: int, text: str) -> str:
        """Answer a comment once, whatever is answered later; return the answer's address.

        Args:
            number: Of the pull request or issue.
            question: Id of the comment that asks.
            text: The answer, in Markdown.
        """
        where = self.say(number, text, topic=f"answer:{question}")
        assert where is not None, "an answer is always created"
        return where

    def acknowledge(self, question: int) -> None:
        """Show that a comment was seen; GitHub keeps one such sign of each of us."""
        path = f"{self._client.path}/issues/comments/{question}/reactions"
        self._client.post(path, {"content": SEEN})

    def say(self, number: int, text: str, *, topic: str, create: bool = True) -> str | None:
        """Have one comment on this topic say this; return its address, if there is one."""
        with self._client.alone:
            return self._say(number, text, topic=topic, create=create)

    def has(self, number: int, topic: str) -> bool:
        """Whether we have said something on this topic."""
        return bool(self._find(number, topic))

    def _say(self, number: int, text: str, *, topic: str, create: bool) -> str | None:
        body = linked(
            marked(topic, text), commits=self._client.commits_url, length_max=BODY_LENGTH_MAX
        )
        found = self._find(number, topic)
        if found:
            first, *others = found
            if not same_text(first, body):
                first = self._client.patch(self._path(first), {"body": body})
            self._remove(others)
            return str(first["html_url"])
        if not create:
            return None
        made = self._client.post(f"{self._client.path}/issues/{number}/comments", {"body": body})
        return str(made["html_url"])

    def _find(self, number: int, topic: str) -> list[Any]:
        """Return our comments on a topic, oldest first; more than one is a mistake of the past."""
        login = self._client.login()
        path = f"{self._client.path}/issues/{number}/comments"
        return [item for item in self._client.items(path) if is_ours(item, topic, login=login)]

    def _remove(self, others: list[Any]) -> None:
        for item in others:
            _log.warning("removing a second comment of ours: %s", item["html_url"])
            self._client.delete(self._path(item))

    def _path(self, item: Any) -> str:
        return f"{self._client.path}/issues/comments/{item['id']}"
