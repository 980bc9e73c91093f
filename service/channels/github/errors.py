"""Errors of this channel, below those of the service.

CodeHostError                 503  it may have been done or not: look, then try again
└── RateLimitedError          503  it was not done: try again after `retry_after_s`
ServiceError                  500
├── RefusedError                   GitHub said no; trying again changes nothing
│   └── MissingError               there is no such thing, or we may not see it
├── SignatureError            401  a webhook that GitHub did not sign
└── NoSecretError             503  webhooks cannot be told from forged ones here
"""

from __future__ import annotations

from service.core.errors import CodeHostError, ServiceError


class RateLimitedError(CodeHostError):
    """GitHub asks to be left alone for a while."""

    def __init__(self, message: str | None = None, *, retry_after_s: float = 60.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RefusedError(ServiceError):
    """GitHub refused the request."""


class MissingError(RefusedError):
    """GitHub has no such thing, or does not show it to this credential."""


class SignatureError(ServiceError):
    """X-Hub-Signature-256 is missing or not of our secret: is it the same on both sides?"""

    status = 401


class NoSecretError(ServiceError):
    """No webhooks are taken here: set FORKWATCH_GITHUB_WEBHOOK_SECRET and the repository."""

    status = 503
