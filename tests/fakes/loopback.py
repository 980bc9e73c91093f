"""An application on a free port of this machine, for as long as a context lasts."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Final, Self

import uvicorn

if TYPE_CHECKING:
    from starlette.applications import Starlette

START_SECONDS_MAX: Final = 120


class Loopback:
    """Use it as a context."""

    def __init__(self, app: Starlette) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        sockets = {"sockets": [self._listening]}
        self._thread = threading.Thread(target=self._server.run, kwargs=sockets)

    @property
    def url(self) -> str:
        """Base address."""
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        until = time.monotonic() + START_SECONDS_MAX
        while not self._server.started:
            assert time.monotonic() < until, "the application did not start"
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(START_SECONDS_MAX)
        self._listening.close()
