"""GitHub put together from the settings: its parts, or nothing where no repository is set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import jwt

from service.channels.github.checks import GitHubChecks, GitHubStatuses
from service.channels.github.client import AppCredential, GitHubClient, TokenCredential
from service.channels.github.comments import GitHubComments
from service.channels.github.issues import GitHubIssues
from service.channels.github.permissions import GitHubPermissions
from service.core.errors import SettingsError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from service.core.ports import CheckSink, Permissions, PullRequestComments
    from service.core.settings import Settings

#: Where a credential may travel unencrypted: to a double on this machine.
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
#: An RSA key in PEM is some 3 kB.
_KEY_BYTES_MAX: Final = 32 * 1024


@dataclass(frozen=True, kw_only=True)
class GitHubChannel:
    """Everything that the service does on GitHub."""

    client: GitHubClient
    #: Check runs with an App, commit statuses with a token.
    checks: CheckSink
    comments: PullRequestComments
    issues: GitHubIssues
    permissions: Permissions


def connect(
    settings: Settings, *, alone: AbstractContextManager[object] | None = None
) -> GitHubChannel | None:
    """Return the channel, or None where no repository is set; nothing is asked of GitHub yet.

    Args:
        settings: Of the service.
        alone: Held by whoever looks and then writes; of this process where absent.

    Raises:
        SettingsError: The settings do not go together, or the App's key cannot be used.
    """
    if settings.github_repository is None:
        return None
    client = GitHubClient(
        settings.github_repository,
        _credential(settings),
        api_url=_api_url(settings.github_api_url),
        alone=alone,
    )
    comments = GitHubComments(client)
    return GitHubChannel(
        client=client,
        checks=GitHubChecks(client) if client.is_app else GitHubStatuses(client),
        comments=comments,
        issues=GitHubIssues(client, comments),
        permissions=GitHubPermissions(client),
    )


def _credential(settings: Settings) -> AppCredential | TokenCredential:
    token, app, key = (
        settings.github_token,
        settings.github_app_id,
        settings.github_private_key_file,
    )
    if token is not None and app is None and key is None:
        return TokenCredential(token=token.get_secret_value())
    if token is None and app is not None and key is not None:
        return AppCredential(app_id=app, private_key=_private_key(key))
    raise SettingsError(
        "FORKWATCH_GITHUB_REPOSITORY needs either FORKWATCH_GITHUB_APP_ID with "
        "FORKWATCH_GITHUB_PRIVATE_KEY_FILE, or FORKWATCH_GITHUB_TOKEN; not both, and nothing less"
    )


def _private_key(path: Path) -> str:
    """Return the App's key, once it is sure that it signs."""
    name = "FORKWATCH_GITHUB_PRIVATE_KEY_FILE"
    try:
        if path.stat().st_size > _KEY_BYTES_MAX:
            raise SettingsError(f"{name}: {path} is too large for a key")
        key = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name}: {path} cannot be read as a key: {error}") from None
    try:
        jwt.encode({"iss": "trial"}, key, algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError):
        # What the libraries say may quote the key.
        raise SettingsError(
            f"{name}: {path} is no RSA key in PEM; download it again from the App's page"
        ) from None
    return key


def _api_url(url: str) -> str:
    """Return the address without a slash at its end.

    Raises:
        SettingsError: Our credential would travel there in the clear.
    """
    parts = urlsplit(url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not safe or not parts.hostname:
        raise SettingsError(f"FORKWATCH_GITHUB_API_URL={url!r} is no https:// address")
    return url.rstrip("/")
