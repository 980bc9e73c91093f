"""Buildkite's REST API for the builds of one pipeline: requests in, responses out.

Buildkite publishes no description of this API. What a request may hold, and what a build has, is
written down here after Buildkite's own client in Go (go-buildkite, version 4, `CreateBuild` and
`Build`); anything else is refused, so that a field which nobody knows cannot go unnoticed.
"""

from __future__ import annotations

import json
import re
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import httpx
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

TOKEN: Final = "bkua_the-api-access-token"
PIPELINE: Final = "acme/mysql-perf"
BASE: Final = "https://api.buildkite.example"
#: Fields of a request for a build, with their types in JSON.
CREATE_BUILD: Final[dict[str, type]] = {
    "commit": str,
    "branch": str,
    "message": str,
    "author": dict,
    "clean_checkout": bool,
    "env": dict,
    "meta_data": dict,
    "ignore_pipeline_branch_filters": bool,
    "pull_request_base_branch": str,
    "pull_request_id": int,
    "pull_request_repository": str,
}
REQUIRED: Final = ("commit", "branch")
#: Fields of a build.
BUILD: Final = frozenset(
    {
        *("id", "graphql_id", "url", "web_url", "number", "state", "blocked", "message", "commit"),
        *("branch", "author", "env", "created_at", "scheduled_at", "started_at", "finished_at"),
        *("meta_data", "creator", "source", "jobs", "pipeline", "rebuilt_from", "pull_request"),
        "triggered_from",
    }
)
_AT: Final = "2026-11-03T06:30:00.000Z"
_LIST_PARAMETERS: Final = re.compile(
    r"meta_data\[[A-Za-z0-9_.-]+\]|per_page|page|branch(\[\])?|state(\[\])?|commit|creator"
    r"|created_from|created_to|finished_from|include_retried_jobs"
)
_OVER: Final = ("passed", "failed", "canceled", "skipped", "not_run")


class BuildkiteRest:
    """The builds of one pipeline; `transport` is the wire to it, or `app` on a socket."""

    def __init__(self) -> None:
        #: Oldest first.
        self.builds: list[dict[str, Any]] = []
        #: As (method, path), in order.
        self.asked: list[tuple[str, str]] = []
        self.transport = httpx.MockTransport(self._answer)
        self.app = Starlette(
            routes=[Route("/{path:path}", self._ask, methods=["GET", "POST", "PUT"])]
        )
        #: Takes each build that is made through this API.
        self.begin: Callable[[dict[str, Any]], None] | None = None
        self._numbers = count(12)
        self._mishaps: list[tuple[str, Callable[[], httpx.Response], bool]] = []

    def go_wrong(
        self, method: str, answer: Callable[[], httpx.Response], *, after: bool = False
    ) -> None:
        """Answer the next such request so; with `after`, do first what it asks."""
        self._mishaps.append((method, answer, after))

    def made(self) -> int:
        """Return how many builds were made."""
        return len(self.builds)

    def new_build(self, values: dict[str, Any], *, source: str = "api") -> dict[str, Any]:
        """Make a build."""
        number = next(self._numbers)
        owner, _, slug = PIPELINE.partition("/")
        build = {
            "id": f"00000000-0000-4000-8000-{number:012}",
            "graphql_id": f"QnVpbGQ-{number}",
            "url": f"{BASE}/v2/organizations/{owner}/pipelines/{slug}/builds/{number}",
            "web_url": f"https://buildkite.com/{PIPELINE}/builds/{number}",
            "number": number,
            "state": "scheduled",
            "blocked": False,
            "message": values.get("message", ""),
            "commit": values["commit"],
            "branch": values["branch"],
            "env": dict(values.get("env", {})),
            "meta_data": dict(values.get("meta_data", {})),
            "source": source,
            "created_at": _AT,
            "scheduled_at": _AT,
            "started_at": None,
            "finished_at": None,
            "jobs": [],
        }
        assert set(build) <= BUILD
        self.builds.append(build)
        return build

    async def _ask(self, asked: Request) -> Response:
        """Answer what came over a socket."""
        body = await asked.body()
        answer = self._answer(
            httpx.Request(asked.method, str(asked.url), headers=asked.headers.items(), content=body)
        )
        return Response(answer.content, answer.status_code, media_type="application/json")

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.method, request.url.path))
        mishap = next((one for one in self._mishaps if one[0] == request.method), None)
        if mishap is None:
            return self._do(request)
        self._mishaps.remove(mishap)
        if mishap[2]:
            self._do(request)
        return mishap[1]()

    def _do(self, request: httpx.Request) -> httpx.Response:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return said(401, "Authentication required. Please supply a valid API Access Token")
        owner, _, slug = PIPELINE.partition("/")
        begin = f"/v2/organizations/{owner}/pipelines/{slug}/builds"
        rest = request.url.path.removeprefix(begin)
        if not request.url.path.startswith(begin):
            return said(404, "No pipeline found")
        if not rest and request.method == "POST":
            return self._create(request)
        if not rest and request.method == "GET":
            return self._list(request)
        return self._one(request.method, rest)

    def _one(self, method: str, rest: str) -> httpx.Response:
        """Answer what is about one build."""
        found = re.fullmatch(r"/([0-9]+)(/cancel)?", rest)
        build = self._numbered(found[1]) if found else None
        if found is None or build is None:
            return said(404, "No build found")
        if (method, found[2]) == ("PUT", "/cancel"):
            if build["state"] in _OVER:
                return said(422, "Build can't be canceled because it's already finished.")
            build["state"] = "canceled"
        elif (method, found[2]) != ("GET", None):
            return said(405, "Method not allowed")
        return httpx.Response(200, json=build)

    def _create(self, request: httpx.Request) -> httpx.Response:
        values = json.loads(request.content)
        fault = fault_of(values)
        if fault:
            return said(422, f"Validation failed: {fault}")
        build = self.new_build(values)
        if self.begin is not None:
            self.begin(build)
        return httpx.Response(201, json=build)

    def _list(self, request: httpx.Request) -> httpx.Response:
        asked = dict(parse_qsl(request.url.query.decode()))
        unknown = [name for name in asked if not _LIST_PARAMETERS.fullmatch(name)]
        if unknown:
            return said(422, f"unknown parameters {unknown}")
        wanted = {
            name.removeprefix("meta_data[").removesuffix("]"): value
            for name, value in asked.items()
            if name.startswith("meta_data[")
        }
        found = [
            build
            for build in reversed(self.builds)
            if all(build["meta_data"].get(name) == value for name, value in wanted.items())
        ]
        return httpx.Response(200, json=found[: int(asked.get("per_page", "30"))])

    def _numbered(self, number: str) -> dict[str, Any] | None:
        return next((one for one in self.builds if str(one["number"]) == number), None)


def fault_of(values: dict[str, Any]) -> str:
    """Return what is wrong with a request for a build, or nothing."""
    missing = [name for name in REQUIRED if not values.get(name)]
    if missing:
        return f"{missing} can't be blank"
    for name, value in values.items():
        kind = CREATE_BUILD.get(name)
        if kind is None:
            return f"{name} is no field of a build"
        # A truth value is a number in Python and none in JSON.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            return f"{name} has to be {kind.__name__}"
    for name in ("env", "meta_data"):
        for key, value in values.get(name, {}).items():
            if not isinstance(value, str) or not value:
                return f"{name}.{key} has to be a text"
    return ""


def said(status: int, message: str) -> httpx.Response:
    """Return a refusal in Buildkite's form."""
    return httpx.Response(status, json={"message": message})
