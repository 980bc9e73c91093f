"""How a page is made: templates filled in, everything escaped, every answer guarded.

Values come in, HTML goes out with the headers that keep a browser from obeying what it shows. It
knows nothing of what pages are about.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports.markup import LINE_LENGTH_MAX, lines, one_line
from reports.numbers import mark, rate, ratio, short, tone
from service.core.errors import NotFoundError
from service.web import addresses
from service.web.assets import asset_path

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

    from fastapi import Request

#: Nothing but our own files, no inline script or style, no frame; forms send to us alone. Vega runs
#: its expressions in its interpreter (charts.js), so that `unsafe-eval` is not needed either.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


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


async def missing_page(request: Request, _error: Exception) -> Response:
    """Return the 404 page for an address that no route knows; a handler for the application."""
    what = f"There is no page at {one_line(request.url.path)}."
    return _guarded(render_page("missing.html", status=404, what=what))


def render_page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a template filled in."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(values), status_code=status)


def _guarded(response: Response) -> Response:
    response.headers.update(_HEADERS)
    return response


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
    # A chart has thousands of values: no blanks between them, and in the order they were made.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
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
            "alert_path": addresses.alert_path,
            "asset_path": asset_path,
            "commit_path": addresses.commit_path,
            "compare_path": addresses.compare_path,
            "host_path": addresses.host_path,
            "workload_path": addresses.workload_path,
        }
    )
    return environment


_TEMPLATES: Final = _environment()
