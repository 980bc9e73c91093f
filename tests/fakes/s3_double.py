"""A bucket of our own on loopback, as far as obstore uses one.

Objects come in by PUT and go out by GET and HEAD. Signatures are not looked at: `tests/ci` has a
server that does. It can be told to hang, to fail and to refuse the conditional write.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

AT: Final = "Sun, 22 Nov 2026 04:00:00 GMT"


class S3Double:
    """Objects by path, bucket included; `app` goes on a socket."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        #: Its address, once it is on a socket.
        self.url = ""
        #: Whether requests get no answer; set it back before the socket closes.
        self.hangs = False
        #: Status of every answer, where it is not 0.
        self.fails_with = 0
        #: Whether `If-None-Match` is answered with 501.
        self.refuses_condition = False
        self.app = Starlette(
            routes=[Route("/{path:path}", self._answer, methods=["GET", "HEAD", "PUT"])]
        )

    async def _answer(self, request: Request) -> Response:
        path = request.path_params["path"]
        self.requests.append(f"{request.method} {path}")
        body = await request.body()
        while self.hangs:  # noqa: ASYNC110  a test sets it from another thread
            await asyncio.sleep(0.02)
        if self.fails_with:
            return _error(self.fails_with)
        if request.method == "PUT":
            return self._put(path, body, condition=request.headers.get("if-none-match"))
        if path not in self.objects:
            return _error(404)
        content = self.objects[path]
        headers = {"ETag": _tag(content), "Last-Modified": AT}
        if request.method == "HEAD":
            return Response(headers={**headers, "Content-Length": str(len(content))})
        return Response(content, headers=headers, media_type="application/octet-stream")

    def _put(self, path: str, body: bytes, *, condition: str | None) -> Response:
        if condition and self.refuses_condition:
            return _error(501)
        if condition == "*" and path in self.objects:
            return _error(412)
        self.objects[path] = body
        return Response(headers={"ETag": _tag(body)})


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _error(status: int) -> Response:
    text = f"<Error><Code>Code{status}</Code><Message>as the test says</Message></Error>"
    return Response(text, status_code=status, media_type="application/xml")
