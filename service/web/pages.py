"""The pages that people look at: server-rendered, readable without JavaScript but for the charts.

A database comes in, a router goes out. Routes gather values through the views and hand them to a
template; they decide nothing about the domain. Templates escape everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from service.core.clock import SystemClock
from service.web import overview_views, trend_views, views
from service.web.alert_pages import alert_pages_router
from service.web.assets import asset
from service.web.host_pages import host_pages_router
from service.web.precision_pages import precision_pages_router
from service.web.rendering import CONTENT_SECURITY_POLICY, PageRoute, missing_page, render_page
from service.web.trend_views import LAST_MAX, LAST_MIN, TrendRange

if TYPE_CHECKING:
    from service.core.aa_checks import AaSchedule
    from service.core.clock import Clock
    from service.store.database import Database
    from service.web.alert_pages import AlertDesk

__all__ = [
    "CONTENT_SECURITY_POLICY",
    "PageRoute",
    "missing_page",
    "pages_router",
    "render_page",
]

#: For addresses with a version in them: they change with the content.
_KEPT_FOR_EVER: Final = "public, max-age=31536000, immutable"
#: The longest hash that git has.
_SHA_LENGTH_MAX: Final = 64
_Last = Annotated[int | None, Query(ge=LAST_MIN, le=LAST_MAX)]
#: PostgreSQL's texts have no zero byte, so nothing there is called by one.
_NAMED: Final = r"^[^\x00]+$"
_Sha = Annotated[str | None, Query(max_length=_SHA_LENGTH_MAX, pattern=_NAMED)]
_First = Annotated[str | None, Query(alias="from", max_length=_SHA_LENGTH_MAX, pattern=_NAMED)]


def pages_router(
    database: Database,
    *,
    clock: Clock | None = None,
    desk: AlertDesk | None = None,
    against: str | None = None,
    schedule: AaSchedule | None = None,
) -> APIRouter:
    """Return the router of all pages and the files they load.

    Args:
        database: What is shown.
        clock: Tells the age of things.
        desk: Takes orders about alerts; without one, pages only show.
        against: Commit that the first page compares with; the first measured one where None.
        schedule: On which host class the service measures, and how often it is checked.
    """
    watch: Clock = clock or SystemClock()
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/")
    def overview() -> HTMLResponse:
        with database.reading() as session:
            page = overview_views.overview(session, now=watch.now(), against=against)
            return render_page("overview.html", page=page)

    @router.get("/forks/{fork}/commits/{sha}")
    def commit(fork: str, sha: str) -> HTMLResponse:
        with database.reading() as session:
            return render_page("commit.html", page=views.commit_page(session, fork, sha))

    @router.get("/forks/{fork}/workloads/{workload}")
    def workload(
        fork: str, workload: str, last: _Last = None, first: _First = None, to: _Sha = None
    ) -> HTMLResponse:
        chosen = TrendRange(last=last, first_sha=first, last_sha=to)
        with database.reading() as session:
            page = trend_views.trend_page(session, fork, workload, chosen)
            return render_page("workload.html", page=page)

    @router.get("/static/{name}")
    def static(name: str, request: Request) -> Response:
        return _file(name, request)

    router.include_router(alert_pages_router(database, clock=watch, desk=desk))
    router.include_router(host_pages_router(database, clock=watch, schedule=schedule))
    router.include_router(precision_pages_router(database))
    return router


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
