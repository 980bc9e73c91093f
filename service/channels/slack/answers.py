"""What Slack's answers mean: a no for good, a time to come back, or no answer at all.

The library's exceptions come in, this channel's errors go out. Nothing is sent or repeated here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from service.channels.slack.errors import (
    SlackGoneError,
    SlackLimitedError,
    SlackRefusedError,
    SlackUnavailableError,
)

if TYPE_CHECKING:
    from slack_sdk.errors import SlackApiError

    from service.core.errors import ServiceError

#: Slack always names a time; this is for something in between that does not.
LIMIT_SECONDS: Final = 30.0
_TOO_MANY: Final = 429
_SERVER: Final = 500
#: Slack's own words for an error; anything else was said by somebody in between.
_WORD: Final = re.compile(r"[a-z0-9_]{1,80}")
#: By Slack's reference: something went wrong on their side, the deed may be done.
_THEIR_FAULT: Final = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
_GONE: Final = frozenset(
    {"message_not_found", "thread_not_found", "edit_window_closed", "cant_update_message"}
)
_WRONG_CHANNEL: Final = frozenset({"channel_not_found", "not_in_channel", "is_archived"})
_WRONG_TOKEN: Final = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"}
)


def refusal(method: str, error: SlackApiError) -> ServiceError:
    """Return the error that an answer means."""
    response: Any = error.response
    status = int(getattr(response, "status_code", 0) or 0)
    said = str(response.get("error") or "")
    if status == _TOO_MANY or said in {"ratelimited", "rate_limited"}:
        wait = _wait(getattr(response, "headers", {}))
        return SlackLimitedError(
            f"{method}: too many requests (for {wait:.0f} s)", retry_after_s=wait
        )
    if status >= _SERVER or said in _THEIR_FAULT or not _WORD.fullmatch(said):
        # What a proxy says may be a whole page, or quote our request.
        return SlackUnavailableError(f"{method}: no answer from Slack (status {status})")
    if said in _GONE:
        return SlackGoneError(f"{method}: {said}")
    return SlackRefusedError(f"{method}: {said}{_advice(said, response)}")


def _advice(said: str, response: Any) -> str:
    """Return what an operator can do about a refusal."""
    if said in _WRONG_CHANNEL:
        return "; invite the app into the channel, or correct its id"
    if said in _WRONG_TOKEN:
        return "; correct FORKWATCH_SLACK_TOKEN"
    if said == "missing_scope":
        needed = str(response.get("needed") or "")
        scope = needed if re.fullmatch(r"[a-z:,._ ]{1,200}", needed) else "a scope"
        return f"; the app needs {scope}"
    return ""


def _wait(headers: Any) -> float:
    """Return how many seconds Slack wants to be left alone."""
    named = {str(name).lower(): value for name, value in dict(headers).items()}
    value = named.get("retry-after", "")
    said = str(value[0] if isinstance(value, list) and value else value)
    return float(said) if said.isdigit() else LIMIT_SECONDS
