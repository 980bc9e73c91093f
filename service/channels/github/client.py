"""One repository on GitHub, asked politely: one request at a time, waiting where it says so.

Method, path and values come in, JSON goes out, or an error that says whether trying again helps.
A write is never repeated here when it may have been done: its caller looks first and tries again.
Only this module knows the library that signs and sends.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import httpx
from githubkit import AppAuthStrategy, GitHub, TokenAuthStrategy
from githubkit.cache import MemCacheStrategy
from githubkit.exception import GitHubException, RequestFailed

from service.channels.github.answers import Answer, read_answer, refusal
from service.channels.github.errors import MissingError, RateLimitedError, RefusedError
from service.core.errors import CodeHostError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

_log = logging.getLogger("forkwatch.github")

TIMEOUT_SECONDS: Final = 30.0
#: GitHub asks for a second between writes.
WRITE_PAUSE_SECONDS: Final = 1.0
#: A wait that GitHub asks for is kept here if it is no longer; a flow waits better than a thread.
WAIT_SECONDS_MAX: Final = 60.0
#: Tries of one request: reads after any failure, writes only after being told to wait.
TRIES_MAX: Final = 3
#: A token of an App is good for an hour; a fetch takes minutes.
GIT_TOKEN_SECONDS: Final = 50 * 60.0
PER_PAGE: Final = 100
#: Ten thousand comments; what is older than that is not looked for.
PAGES_MAX: Final = 100


@dataclass(frozen=True, kw_only=True)
class AppCredential:
    """A GitHub App: it has checks, permissions of its own, and a name ending in `[bot]`."""

    app_id: str
    private_key: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class TokenCredential:
    """A person's or a machine account's token: no checks, commit statuses instead."""

    token: str = field(repr=False)


class GitHubClient:
    """The API of one repository."""

    def __init__(
        self,
        repository: str,
        credential: AppCredential | TokenCredential,
        *,
        api_url: str,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        alone: AbstractContextManager[object] | None = None,
    ) -> None:
        """Remember where and as whom; nothing is asked yet.

        Args:
            repository: As `owner/name`.
            credential: As whom.
            api_url: Base address of the API.
            sleep: Waits; a seam for tests.
            monotonic: Measures pauses; a seam for tests.
            wall: Seconds since 1970, in which GitHub says when a limit ends; a seam for tests.
            alone: Held by whoever looks and then writes; of this process where absent.
        """
        owner, _, name = repository.partition("/")
        self.path: Final = f"/repos/{segment(owner)}/{segment(name)}"
        #: Where people find the repository; None where the API's address does not tell.
        self.site_url: Final = _site_url(api_url, f"{segment(owner)}/{segment(name)}")
        #: Where they find commits: a slash and a hash are added.
        self.commits_url: Final = f"{self.site_url}/commit" if self.site_url else None
        self._repository = repository
        self._credential = credential
        self._sleep, self._monotonic, self._wall = sleep, monotonic, wall
        self._outer = _open(credential, api_url)
        self._inner: GitHub[Any] | None = None
        self._login = ""
        self._git_token: str | None = None
        self._git_token_until = float("-inf")
        self._last_write = float("-inf")
        #: Held by whoever looks and then writes, so that no other thread writes in between, nor a
        #: replica of this service.
        self.alone: Final[AbstractContextManager[object]] = alone or threading.RLock()

    @property
    def is_app(self) -> bool:
        """Whether checks can be written."""
        return isinstance(self._credential, AppCredential)

    def login(self) -> str:
        """Return the name that our comments and issues carry."""
        with self.alone:
            if not self._login:
                if self.is_app:
                    self._login = f"{self._send(self._outer, 'GET', '/app').content['slug']}[bot]"
                else:
                    self._login = str(self._send(self._outer, "GET", "/user").content["login"])
            return self._login

    def git_token(self) -> str:
        """Return a token that reads the contents of the repository, for git.

        That of an App can do nothing else.

        Raises:
            CodeHostError: GitHub does not give one now.
            RefusedError: It never does, such as without the permission.
        """
        if isinstance(self._credential, TokenCredential):
            return self._credential.token
        with self.alone:
            now = self._monotonic()
            if self._git_token is None or now >= self._git_token_until:
                self._git_token = self._new_git_token()
                self._git_token_until = now + GIT_TOKEN_SECONDS
            return self._git_token

    def get(self, path: str, **params: str | int) -> Any:
        """Return what is there.

        Raises:
            MissingError: Nothing is, or we may not see it.
        """
        return self._send(self._authorised(), "GET", path, params=params).content

    def items(self, path: str, *, key: str | None = None, **params: str | int) -> Iterator[Any]:
        """Give the items of a list, page by page; `key` names the list inside its object.

        Raises:
            RefusedError: The list is longer than anybody looks through.
        """
        for page in range(1, PAGES_MAX + 1):
            asked = {**params, "per_page": PER_PAGE, "page": page}
            answer = self._send(self._authorised(), "GET", path, params=asked)
            yield from answer.content if key is None else answer.content[key]
            # Only whether there is more is read from the header: where, we know ourselves.
            if 'rel="next"' not in answer.headers.get("link", ""):
                return
        raise RefusedError(f"{path} is longer than {PAGES_MAX * PER_PAGE} items")

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Make something; look first whether it is there, because a failure may have made it."""
        return self._write("POST", path, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Change something."""
        return self._write("PATCH", path, body)

    def delete(self, path: str) -> None:
        """Remove something; what is gone already stays so."""
        try:
            self._write("DELETE", path, None)
        except MissingError:
            _log.debug("%s was gone already", path)

    def _write(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        with self.alone:
            rest = self._last_write + WRITE_PAUSE_SECONDS - self._monotonic()
            if rest > 0:
                self._sleep(rest)
            try:
                return self._send(self._authorised(), method, path, body=body).content
            finally:
                self._last_write = self._monotonic()

    def _authorised(self) -> GitHub[Any]:
        """Return the connection for the repository: a token's own, or the App's installation."""
        with self.alone:
            if self._inner is None:
                self._inner = self._installation() if self.is_app else self._outer
            return self._inner

    def _installation(self) -> GitHub[Any]:
        auth = self._outer.auth
        assert isinstance(auth, AppAuthStrategy), "an App's credential signs as the App"
        return self._outer.with_auth(auth.as_installation(self._installation_id()))

    def _installation_id(self) -> int:
        try:
            found = self._send(self._outer, "GET", f"{self.path}/installation").content
        except MissingError as error:
            raise RefusedError(
                f"the GitHub App is not installed on {self._repository}: install it there, "
                "or correct FORKWATCH_GITHUB_REPOSITORY"
            ) from error
        return int(found["id"])

    def _new_git_token(self) -> str:
        path = f"/app/installations/{self._installation_id()}/access_tokens"
        name = self._repository.partition("/")[2]
        wanted = {"repositories": [name], "permissions": {"contents": "read"}}
        try:
            return str(self._send(self._outer, "POST", path, body=wanted).content["token"])
        except RefusedError as error:
            raise RefusedError(
                f"{error}; git reads {self._repository} with the App's permission Contents: read"
            ) from error

    def _send(
        self,
        connection: GitHub[Any],
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Ask until there is an answer, as often as that is safe and no longer than is decent."""
        for tries_left in range(TRIES_MAX - 1, -1, -1):
            try:
                with self.alone:
                    return self._ask(connection, method, path, params=params, body=body)
            except RateLimitedError as error:
                if not tries_left or error.retry_after_s > WAIT_SECONDS_MAX:
                    raise
                _log.warning("%s %s: %s", method, path, error)
                self._sleep(error.retry_after_s)
            except CodeHostError as error:
                if not tries_left or method != "GET":
                    raise
                _log.warning("%s %s: %s", method, path, error)
                self._sleep(2.0 ** (TRIES_MAX - 1 - tries_left))
        raise AssertionError("the last try returns or raises")

    def _ask(
        self,
        connection: GitHub[Any],
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None,
        body: Mapping[str, Any] | None,
    ) -> Answer:
        what = f"{method} {path}"
        try:
            response = connection.request(
                method,
                path,
                params=dict(params) if params else None,
                json=None if body is None else dict(body),
            )
        except RequestFailed as error:
            answer = read_answer(error.response)
        except GitHubException as error:
            # No answer: a time-out, a lost connection. Its text may quote the request's headers.
            raise CodeHostError(f"{what}: no answer ({type(error).__name__})") from None
        else:
            answer = read_answer(response)
        if answer.ok:
            return answer
        raise refusal(what, answer, now=self._wall())


def segment(text: str | int) -> str:
    """Return a value as one segment of a path, whatever is in it."""
    return quote(str(text), safe="")


def _site_url(api_url: str, path: str) -> str | None:
    """Return the address of a repository on the site that an API belongs to.

    GitHub Enterprise Server has its API below its own address, the others beside it.
    """
    parts = urlsplit(api_url)
    below = parts.path.rstrip("/")
    if below == "/api/v3":
        return f"{parts.scheme}://{parts.netloc}/{path}"
    if not below and parts.netloc.startswith("api."):
        return f"{parts.scheme}://{parts.netloc.removeprefix('api.')}/{path}"
    return None


def _open(credential: AppCredential | TokenCredential, api_url: str) -> GitHub[Any]:
    if isinstance(credential, AppCredential):
        strategy: Any = AppAuthStrategy(credential.app_id, credential.private_key)
    else:
        strategy = TokenAuthStrategy(credential.token)
    return GitHub(
        strategy,
        base_url=api_url,
        user_agent="forkwatch",
        timeout=TIMEOUT_SECONDS,
        # The library repeats writes after server errors; that is how things are posted twice.
        auto_retry=False,
        http_cache=False,
        # The default one is shared by all Apps of the process, by name and not by key.
        cache_strategy=MemCacheStrategy(),
        # A redirect would carry a write, and our credential, to where nobody asked for it.
        follow_redirects=False,
        # The library opens a connection for each request; reading the authorities' certificates
        # for each of them took 50 ms, two thirds of a request to this machine.
        ssl_verify=_authorities(),
    )


@cache
def _authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context()
