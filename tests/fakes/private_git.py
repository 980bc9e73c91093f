"""A private repository over HTTP: git's own `http-backend` behind a name and a password.

A folder with bare repositories comes in, an application goes out that remembers who knocked. Over
a socket of this machine it is what a forge is to git.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess  # noqa: TID251  tests start programs
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request


@dataclass
class PrivateGit:
    """Repositories of a folder, for whoever brings this name and password."""

    folder: Path
    user: str
    password: str
    #: Name and password of each request; empty ones where none were sent.
    heard: list[tuple[str, str]] = field(default_factory=list)

    @property
    def app(self) -> Starlette:
        """The application."""
        return Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "POST"])])

    async def _answer(self, request: Request) -> Response:
        told = _basic(request.headers.get("authorization", ""))
        self.heard.append(told)
        if told != (self.user, self.password):
            asks = {"WWW-Authenticate": 'Basic realm="private"'}
            return Response("who is there?", status_code=401, headers=asks)
        body = await request.body()
        told_by_git = _git(self._environment(request, length=len(body)), body)
        return _response(told_by_git)

    def _environment(self, request: Request, *, length: int) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": request.url.path,
            "QUERY_STRING": request.url.query,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(length),
            "REMOTE_USER": self.user,
            "REMOTE_ADDR": "127.0.0.1",
        }


def _git(environment: dict[str, str], body: bytes) -> bytes:
    command = [shutil.which("git") or "git", "http-backend"]
    done = subprocess.run(
        command, input=body, env=environment, check=True, capture_output=True, timeout=60
    )
    return done.stdout


def _basic(header: str) -> tuple[str, str]:
    """Return name and password of a header, empty ones where it has none."""
    scheme, _, packed = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    name, _, password = base64.b64decode(packed).decode().partition(":")
    return name, password


def _response(told: bytes) -> Response:
    """Return what a CGI program says as an answer."""
    head, _, content = told.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    status = int(headers.pop("Status", "200").split()[0])
    return Response(content, status_code=status, headers=headers)
