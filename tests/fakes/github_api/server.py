"""The double's socket: one server for a file of tests, which each bring a double of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.loopback import Loopback

if TYPE_CHECKING:
    from starlette.requests import Request

    from tests.fakes.github_api.double import GitHubDouble

_METHODS: Final = ["GET", "POST", "PATCH", "PUT", "DELETE"]


class DoubleServer(Loopback):
    """Use it as a context; whoever is `double` at the moment answers."""

    def __init__(self) -> None:
        self.double: GitHubDouble | None = None
        app = Starlette(routes=[Route("/{path:path}", self._endpoint, methods=_METHODS)])
        super().__init__(app)

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
