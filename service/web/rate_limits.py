"""Rate limits: how often one address, and one token, may ask for what changes or costs something.

A layer around the application: requests come in, and some leave as 429 with the time to come back.
It keeps one number for each caller in memory and asks no store, so refusing costs next to nothing.
Reading what is cheap is never refused.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import re
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from service.web.problems import problem_response

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: A whole minute's requests may come at once: pages load in bursts, and runners end together.
BURST_SECONDS: Final = 60.0
#: Callers remembered; a million strange addresses shall not fill the memory. Whoever has not asked
#: for longest is forgotten first, which is the one who has the least to wait for.
CALLERS_MAX: Final = 20_000
#: Whoever has a network of IPv6 has all addresses in it.
_NETWORK_BITS: Final = 64
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: Read whole documents, judge anew, or draw charts.
_COSTLY: Final = re.compile(
    r"/(?:api/v1/(?:runs|series|compare|export|bisects|releases)(?:/|$)"
    r"|compare|releases|bisects|metrics|forks/.+/workloads/)"
)
#: Their senders sign what they bring; who cannot is the one that is limited.
_SIGNED: Final = "/hooks/"
#: What becomes of a request that its sender did not sign, or that is none of theirs.
_FAILED: Final = frozenset({400, 401, 403, 413, 415, 422})
_TOO_MANY: Final = 429


class Limiter:
    """So many requests a minute for each caller, with a burst of a minute's worth.

    It is the generic cell rate algorithm: a bucket that is filled all the time, kept as the one
    moment at which it will be full again.
    """

    def __init__(
        self,
        per_minute: int,
        *,
        callers_max: int = CALLERS_MAX,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with nobody known.

        Args:
            per_minute: Requests, at least one.
            callers_max: Callers remembered.
            monotonic: Tells the time.
        """
        self._pause = BURST_SECONDS / per_minute
        self._callers_max = callers_max
        self._monotonic = monotonic
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, caller: str) -> float:
        """Return how long a caller has to wait for the next request; 0 where it may come now."""
        now = self._monotonic()
        full_at = max(self._full_at.get(caller, now), now)
        # Sums of fractions miss a whole number by a hair.
        return max(0.0, round(full_at + self._pause - now - BURST_SECONDS, 6))

    def spend(self, caller: str) -> None:
        """Count a request."""
        now = self._monotonic()
        self._full_at[caller] = max(self._full_at.pop(caller, now), now) + self._pause
        while len(self._full_at) > self._callers_max:
            self._full_at.popitem(last=False)


class RateLimits:
    """Refuses callers that ask too often."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        per_minute: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stand around an application.

        Args:
            app: Answers what is let through.
            per_minute: Requests of one caller that change or cost something.
            monotonic: Tells the time.
        """
        self._app = app
        self._per_minute = per_minute
        self._requests = Limiter(per_minute, monotonic=monotonic)
        self._failures = Limiter(per_minute, monotonic=monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"].startswith(_SIGNED):
            await self._signed(scope, receive, send)
        elif scope["method"] in _READING and not _COSTLY.match(scope["path"]):
            await self._app(scope, receive, send)
        else:
            await self._counted(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        callers = [address_of(scope), *tokens_of(scope)]
        wait_s = max(map(self._requests.wait_s, callers))
        if wait_s > 0:
            await self._refuse(wait_s, scope, receive, send)
            return
        for caller in callers:
            self._requests.spend(caller)
        await self._app(scope, receive, send)

    async def _signed(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = address_of(scope)
        wait_s = self._failures.wait_s(caller)
        if wait_s > 0:
            await self._refuse(wait_s, scope, receive, send)
            return

        async def heard(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _FAILED:
                self._failures.spend(caller)
            await send(message)

        await self._app(scope, receive, heard)

    async def _refuse(self, wait_s: float, scope: Scope, receive: Receive, send: Send) -> None:
        seconds = math.ceil(wait_s)
        answer = problem_response(
            _TOO_MANY,
            f"more than {self._per_minute} requests a minute; come back in {seconds} s "
            "(FORKWATCH_REQUESTS_PER_MINUTE)",
            headers={"Retry-After": str(seconds)},
        )
        await answer(scope, receive, send)


def address_of(scope: Scope) -> str:
    """Return whom a request comes from: an address, or the network that one IPv6 user has."""
    host = scope["client"][0] if scope.get("client") else "local"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # A socket of the file system, or what a trusted proxy says of one.
        return f"host {host}"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return f"host {address.ipv4_mapped}"
        return f"host {ipaddress.ip_network((address, _NETWORK_BITS), strict=False)}"
    return f"host {address}"


def tokens_of(scope: Scope) -> Sequence[str]:
    """Return the credential of a request as a caller, if it brings one; never the secret itself."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    return [f"token {hashlib.sha256(value).hexdigest()[:32]}" for value in sent[:1]]
