"""The pages that people look at: server-rendered, readable without JavaScript but for the charts.

A database comes in, a router goes out. Routes gather values through `service.web.views` and hand
them to a template; they decide nothing about the domain. Templates escape everything.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports.markup import LINE_LENGTH_MAX, lines, one_line
from reports.numbers import mark, rate, ratio, short, tone
from service.core.errors import NotFoundError
from service.web import views
from service.web.assets import asset, asset_path

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

    from service.store.database import Database

#: Nothing but our own files, no inline script or style, no frame, no form. Vega runs its
#: expressions in its interpreter (charts.js), so that `unsafe-eval` is not needed either.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
#: For addresses with a version in them: they change with the content.
_KEPT_FOR_EVER: Final = "public, max-age=31536000, immutable"


class PageRoute(APIRoute):
    """A route for people: what is not there gets a page of its own, every answer is guarded."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler with the 404 page and the security headers around it."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                response = await handle(request)
            except NotFoundError as error:
                response = render_page("missing.html", status=404, what=str(error))
            return _guarded(response)

        return guarded


def pages_router(database: Database) -> APIRouter:
    """Return the router of all pages and the files they load."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/")
    def overview() -> HTMLResponse:
        with database.reading() as session:
            return render_page("overview.html", page=views.overview(session))

    @router.get("/forks/{fork}/commits/{sha}")
    def commit(fork: str, sha: str) -> HTMLResponse:
        with database.reading() as session:
            return render_page("commit.html", page=views.commit_page(session, fork, sha))

    @router.get("/forks/{fork}/workloads/{workload}")
    def workload(fork: str, workload: str) -> HTMLResponse:
        with database.reading() as session:
            return render_page("workload.html", page=views.trend_page(session, fork, workload))

    @router.get("/alerts/{alert_id}")
    def alert(alert_id: str) -> HTMLResponse:
        with database.reading() as session:
            return render_page("alert.html", page=views.alert_page(session, alert_id))

    @router.get("/static/{name}")
    def static(name: str, request: Request) -> Response:
        return _file(name, request)

    return router


async def missing_page(request: Request, _error: Exception) -> Response:
    """Return the 404 page for an address that no route knows; a handler for the application."""
    what = f"There is no page at {one_line(request.url.path)}."
    return _guarded(render_page("missing.html", status=404, what=what))


def _guarded(response: Response) -> Response:
    response.headers.update(_HEADERS)
    return response


def render_page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a template filled in."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(values), status_code=status)


def _file(name: str, request: Request) -> Response:
    """Return a file, packed where the browser can unpack; nothing where it has it already."""
    found = asset(name)
    kept = _KEPT_FOR_EVER if "v" in request.query_params else "no-cache"
    headers = {"ETag": found.etag, "Cache-Control": kept, "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == found.etag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(found.packed, media_type=found.media_type, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)


def _minute(moment: datetime) -> str:
    """Return a moment to the minute; everything in the store is in UTC."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _shown(text: str, length_max: int = LINE_LENGTH_MAX) -> str:
    """Return text on one line, in which no percent sign is torn from its number."""
    return one_line(text, length_max=length_max).replace(" %", "\N{NO-BREAK SPACE}%")


def _environment() -> Environment:
    folder = Path(__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {
            "line": _shown,
            "lines": lines,
            "mark": mark,
            "minute": _minute,
            "rate": rate,
            "ratio": ratio,
            "short": short,
            "tone": tone,
        }
    )
    environment.globals.update(
        {
            "asset_path": asset_path,
            "commit_path": views.commit_path,
            "workload_path": views.workload_path,
        }
    )
    return environment


_TEMPLATES: Final = _environment()
