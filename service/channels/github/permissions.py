"""Who may give orders: the people whom GitHub lets write to the repository.

A login comes in, yes or no goes out. GitHub is asked each time: what a webhook says about its
sender is about the past, and a permission can be withdrawn.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from service.channels.github.client import segment
from service.channels.github.errors import MissingError

if TYPE_CHECKING:
    from service.channels.github.client import GitHubClient

#: GitHub counts maintainers as writing and triagers as reading here; Gitea has a word for owners.
WRITERS: Final = frozenset({"admin", "write", "owner"})
#: People, and Apps as `name[bot]`; anything else is no login and is not asked about.
_LOGIN: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?(?:\[bot\])?")


class GitHubPermissions:
    """Permissions in one repository."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client

    def may_write(self, login: str) -> bool:
        """Whether a person may push to the repository, and so may give forkwatch orders.

        Raises:
            CodeHostError: GitHub cannot be asked; nobody is let in on that ground.
            RefusedError: We may not ask.
        """
        if not _LOGIN.fullmatch(login):
            return False
        path = f"{self._client.path}/collaborators/{segment(login)}/permission"
        try:
            found = self._client.get(path)
        except MissingError:
            return False
        return found.get("permission") in WRITERS
