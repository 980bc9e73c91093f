"""The double's socket: one server for a file of tests, which each bring a double of their own."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import TYPE_CHECKING, Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

    from tests.fakes.github_api.double import GitHubDouble

START_SECONDS_MAX: Final = 30
_METHODS: Final = ["GET", "POST", "PATCH", "PUT", "DELETE"]


class DoubleServer:
    """Use it as a context; whoever is `double` at the moment answers."""

    def __init__(self) -> None:
        self.double: GitHubDouble | None = None
        app = Starlette(routes=[Route("/{path:path}", self._endpoint, methods=_METHODS)])
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        sockets = {"sockets": [self._listening]}
        self._thread = threading.Thread(target=self._server.run, kwargs=sockets)

    @property
    def url(self) -> str:
        """Base address of the API."""
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        until = time.monotonic() + START_SECONDS_MAX
        while not self._server.started:
            assert time.monotonic() < until, "the double did not start"
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(START_SECONDS_MAX)
        self._listening.close()

    async def _endpoint(self, asked: Request) -> Response:
        double = self.double
        assert double is not None, "a request came when no test was looking"
        reply = double.reply(
            asked.method,
            # An Enterprise server has the same API below a path.
            "/" + asked.path_params["path"].removeprefix("api/v3/"),
            query=dict(asked.query_params),
            authorization=asked.headers.get("authorization", ""),
            body=await asked.body(),
        )
        headers = dict(reply.headers)
        if isinstance(reply.body, str):
            return Response(reply.body, reply.status, headers, media_type="text/html")
        content = b"" if reply.status == 204 else json.dumps(reply.body).encode()
        return Response(content, reply.status, headers, media_type="application/json")
