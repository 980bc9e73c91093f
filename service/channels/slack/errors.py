"""Errors of this channel, below those of the service.

TransientError                503
└── SlackUnavailableError     503  it may have been done or not: look, then try again
    └── SlackLimitedError     503  it was not done: try again after `retry_after_s`
ServiceError                  500
└── SlackRefusedError              Slack said no; trying again changes nothing
    └── SlackGoneError             the message is no longer there, or may no longer be edited
"""

from __future__ import annotations

from service.core.errors import ServiceError, TransientError


class SlackUnavailableError(TransientError):
    """Slack gave no answer that can be relied on."""


class SlackLimitedError(SlackUnavailableError):
    """Slack asks to be left alone for a while."""

    def __init__(self, message: str | None = None, *, retry_after_s: float = 30.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class SlackRefusedError(ServiceError):
    """Slack refused the request."""


class SlackGoneError(SlackRefusedError):
    """The message is no longer there, or may no longer be edited."""
