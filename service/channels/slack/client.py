"""One workspace on Slack, asked politely: one request at a time, waiting where it says so.

Method and values come in, JSON goes out, or an error that says whether trying again helps. A write
is never repeated here when it may have been done: its caller looks first and tries again. Only this
module knows the library that sends.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackRequestError

from service.channels.slack.answers import refusal
from service.channels.slack.errors import SlackLimitedError, SlackUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

_log = logging.getLogger("forkwatch.slack")

API_URL: Final = "https://slack.com/api/"
TIMEOUT_SECONDS: Final = 20
#: A wait that Slack asks for is kept here if it is no longer; a flow waits better than a thread.
WAIT_SECONDS_MAX: Final = 60.0
#: Tries of one request: reads after any failure, writes only after being told to wait.
TRIES_MAX: Final = 3
#: Of a list; Slack asks for no more than 200 at a time.
PER_PAGE: Final = 200


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who we are on Slack."""

    user: str
    bot: str
    #: Address of the workspace, with a slash at its end.
    url: str


class SlackClient:
    """The API of one workspace."""

    def __init__(
        self,
        token: str,
        *,
        api_url: str = API_URL,
        sleep: Callable[[float], None] = time.sleep,
        alone: AbstractContextManager[object] | None = None,
    ) -> None:
        """Remember where and as whom; nothing is asked yet.

        Args:
            token: Of the app's bot, `xoxb-...`.
            api_url: Base address of the API.
            sleep: Waits; a seam for tests.
            alone: Held by whoever looks and then writes; of this process where absent.
        """
        # Without handlers of its own: the library repeats writes after a lost connection, and that
        # is how things are posted twice.
        self._web = WebClient(
            token=token, base_url=api_url, timeout=TIMEOUT_SECONDS, retry_handlers=[]
        )
        self._sleep = sleep
        self._identity: Identity | None = None
        #: Held by whoever looks and then writes, so that no other thread writes in between, nor a
        #: replica of this service.
        self.alone: Final[AbstractContextManager[object]] = alone or threading.RLock()

    def identity(self) -> Identity:
        """Return who we are; asked once."""
        with self.alone:
            if self._identity is None:
                told = self.read("auth.test")
                self._identity = Identity(
                    user=str(told["user_id"]),
                    bot=str(told.get("bot_id", "")),
                    url=str(told["url"]),
                )
            return self._identity

    def read(self, method: str, **params: str | int) -> dict[str, Any]:
        """Return what is there."""
        return self._send(method, lambda: self._web.api_call(method, params=params), safe=True)

    def items(
        self, method: str, key: str, *, pages_max: int, **params: str | int
    ) -> Iterator[dict[str, Any]]:
        """Give the items of a list, page by page; what comes after `pages_max` is left."""
        cursor = ""
        for _ in range(pages_max):
            asked = {**params, "limit": PER_PAGE, **({"cursor": cursor} if cursor else {})}
            answer = self.read(method, **asked)
            yield from answer.get(key, ())
            cursor = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                return
        _log.info("%s: only the newest %d items were looked at", method, pages_max * PER_PAGE)

    def write(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        """Make or change something; look first, because a failure may have made it."""
        return self._send(method, lambda: self._web.api_call(method, json=body), safe=False)

    def upload(self, content: bytes, *, name: str, title: str, channel: str, thread: str) -> None:
        """Put a file into a thread; look first, as for a write."""
        self._send(
            "files.completeUploadExternal",
            lambda: self._web.files_upload_v2(
                content=content, filename=name, title=title, channel=channel, thread_ts=thread
            ),
            safe=False,
        )

    def _send(self, method: str, ask: Callable[[], Any], *, safe: bool) -> dict[str, Any]:
        """Ask until there is an answer, as often as that is safe and no longer than is decent."""
        for tries_left in range(TRIES_MAX - 1, -1, -1):
            try:
                with self.alone:
                    return _answer(method, ask)
            except SlackLimitedError as error:
                if not tries_left or error.retry_after_s > WAIT_SECONDS_MAX:
                    raise
                _log.warning("%s", error)
                self._sleep(error.retry_after_s)
            except SlackUnavailableError as error:
                if not tries_left or not safe:
                    raise
                _log.warning("%s", error)
                self._sleep(2.0 ** (TRIES_MAX - 1 - tries_left))
        raise AssertionError("the last try returns or raises")


def _answer(method: str, ask: Callable[[], Any]) -> dict[str, Any]:
    try:
        data = ask().data
    except SlackApiError as error:
        raise refusal(method, error) from None
    except (SlackRequestError, HTTPException, OSError, ValueError) as error:
        # No answer: a time-out, a lost connection, half an answer. Its text may quote the request.
        raise SlackUnavailableError(f"{method}: no answer ({type(error).__name__})") from None
    if not isinstance(data, dict):
        raise SlackUnavailableError(f"{method}: Slack's answer is not JSON")
    return data
