"""What a remote of git is told when it asks who reads: a token, and only where that is known.

The address of one repository and a source of tokens come in, an answer to libgit2's question goes
out. A token is in memory alone: in no command, address, setting of git, log or file. No other
address is told one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pygit2
from pygit2.enums import CredentialType

from service.core.errors import CodeHostError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable

#: GitHub takes any name beside a person's token, and wants this one beside an App's.
USER: Final = "x-access-token"


@dataclass(frozen=True, kw_only=True)
class GitCredentials:
    """Who may read one repository."""

    #: Of the repository as people open it, such as `https://github.com/owner/name`.
    address: str
    #: Gives a token that is good for some minutes at least, or raises a ServiceError.
    token: Callable[[], str]

    def callbacks(self) -> pygit2.RemoteCallbacks:
        """Return what answers for one fetch."""
        return _Answers(self)

    def are_for(self, url: str) -> bool:
        """Whether a remote's address is that of the repository, however it is written."""
        return _parts(url) == _parts(self.address)


class _Answers(pygit2.RemoteCallbacks):
    """Answers once: a remote that asks again has refused the answer, and would ask for ever."""

    def __init__(self, known: GitCredentials) -> None:
        super().__init__()
        self._known = known
        self._asked = False

    def credentials(
        self, url: str, username_from_url: str | None, allowed_types: CredentialType
    ) -> pygit2.UserPass:
        """Return the token, for the repository that it is for.

        Raises:
            CodeHostError: There is none, the remote is another one or is not spoken with over
                HTTPS, or it has refused the token.
        """
        del username_from_url
        address = self._known.address
        by_password = bool(allowed_types & CredentialType.USERPASS_PLAINTEXT)
        if not by_password or not self._known.are_for(url):
            raise CodeHostError(
                f"the remote wants to know who reads it, and only {address} is told: "
                f"git remote set-url origin {address}"
            )
        if self._asked:
            raise CodeHostError(
                f"{address} refuses the token: whoever it is for has to be able to read the "
                "contents of the repository"
            )
        self._asked = True
        return pygit2.UserPass(USER, self._token())

    def _token(self) -> str:
        try:
            return self._known.token()
        except CodeHostError:
            raise
        except ServiceError as error:
            raise CodeHostError(f"no token to read {self._known.address} with: {error}") from error


def _parts(url: str) -> tuple[str, str, int | None, str]:
    """Return what the addresses of one repository have in common: case and `.git` do not count."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return ("", "", None, url)
    path = parts.path.rstrip("/").removesuffix(".git").lower()
    return (parts.scheme, parts.hostname or "", port, path)
