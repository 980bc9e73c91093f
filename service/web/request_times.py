"""How long requests take: a layer around the application that tells of each, by its route.

It hears what passes and changes nothing. What is done with the times is for whoever asks for them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The route of a request that no route knows, or that was refused before one was looked for.
NO_ROUTE: Final = "none"
_SERVER_ERROR: Final = 500


class Served(Protocol):
    """Hears of a request that is over."""

    def __call__(self, method: str, route: str, *, status: int, seconds: float) -> None:
        """Hear of it; `route` is the template, such as `/api/v1/runs/{run_id}`."""
        ...


class RequestTimes:
    """Measures every request, refused ones and failed ones too."""

    def __init__(self, app: ASGIApp, *, served: Served) -> None:
        """Stand around an application.

        Args:
            app: Answers the requests.
            served: Hears of each when it is over.
        """
        self._app = app
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and tell how long it took."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        # What ends without an answer ended in a bug.
        status = _SERVER_ERROR

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            self._served(
                scope["method"],
                _template(scope),
                status=status,
                seconds=time.perf_counter() - began,
            )


def _template(scope: Scope) -> str:
    """Return the route's path as it was declared, not as it was asked for."""
    route = scope.get("route")
    found = getattr(route, "path_format", None)
    return found if isinstance(found, str) else NO_ROUTE
