"""What GitHub's answers mean: a success, a no for good, or a time to come back.

Responses come in as the library gives them; a plain answer or one of this channel's errors goes
out. Nothing is sent or repeated here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from service.channels.github.errors import MissingError, RateLimitedError, RefusedError
from service.core.errors import CodeHostError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What GitHub asks for after a secondary limit that comes without a header.
LIMIT_SECONDS: Final = 60.0
#: Kept of what GitHub says about a refusal.
_SAID_LENGTH_MAX: Final = 300

_MOVED: Final = (301, 302, 307, 308)
_NOT_FOUND: Final = (404, 410)
_TOO_MANY: Final = 429
_LIMITED: Final = (403, _TOO_MANY)
_SERVER: Final = 500


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What GitHub answered."""

    status: int
    headers: Mapping[str, str]
    content: Any

    @property
    def ok(self) -> bool:
        """Whether it is a success, of whichever kind."""
        return self.status // 100 == 2  # noqa: PLR2004  that is how HTTP counts


def read_answer(response: Any) -> Answer:
    """Return what came back; a success without the JSON it should carry is no answer at all.

    Raises:
        CodeHostError: Something between us and GitHub answered in its stead.
    """
    headers = {name.lower(): value for name, value in response.headers.items()}
    try:
        content = response.json() if response.content else None
    except ValueError:
        content = None
        answer = Answer(status=response.status_code, headers=headers, content=None)
        if answer.ok:
            raise CodeHostError("GitHub's answer is not JSON; is a proxy in between?") from None
    return Answer(status=response.status_code, headers=headers, content=content)


def refusal(what: str, answer: Answer, *, now: float) -> RefusedError | CodeHostError:
    """Return the error that an answer means; `now` is in seconds since 1970."""
    said = _said(answer)
    told = f"{what}: {answer.status} {said}".strip()
    if answer.status >= _SERVER:
        return CodeHostError(told)
    if answer.status in _LIMITED:
        wait = _wait(answer, said, now=now)
        if wait is not None:
            return RateLimitedError(f"{told} (for {wait:.0f} s)", retry_after_s=wait)
    if answer.status in _MOVED:
        return RefusedError(f"{told}: the repository moved; correct FORKWATCH_GITHUB_REPOSITORY")
    if answer.status in _NOT_FOUND:
        return MissingError(told)
    return RefusedError(told)


def _wait(answer: Answer, said: str, *, now: float) -> float | None:
    """Return how many seconds GitHub wants to be left alone, or None where it simply says no."""
    headers = answer.headers
    if headers.get("retry-after", "").isdigit():
        return float(headers["retry-after"])
    if (
        headers.get("x-ratelimit-remaining") == "0"
        and headers.get("x-ratelimit-reset", "").isdigit()
    ):
        return max(1.0, float(headers["x-ratelimit-reset"]) - now)
    # A secondary limit may come without a header; then a minute is asked for.
    limited = answer.status == _TOO_MANY or "rate limit" in said.lower()
    return LIMIT_SECONDS if limited else None


def _said(answer: Answer) -> str:
    """Return what GitHub says about a failure, on one line."""
    if not isinstance(answer.content, dict):
        return ""
    faults = answer.content.get("errors")
    details = [
        str(fault.get("message") or fault.get("code") or "")
        if isinstance(fault, dict)
        else str(fault)
        for fault in (faults if isinstance(faults, list) else [])
    ]
    words = " ".join([str(answer.content.get("message") or ""), *details])
    return " ".join(words.split())[:_SAID_LENGTH_MAX]
