"""The pages about hosts: which machines measure, what their canaries said, how noisy they are.

A database comes in, a router goes out. What is usual on a host is worked out by
`flows.host_noise`, from runs of its present fingerprint alone; what is shown, by `host_views`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Path

from service.core.aa_checks import AaSchedule
from service.core.clock import SystemClock
from service.core.errors import NotFoundError
from service.flows import host_noise
from service.store import hosts
from service.web.host_views import NEWEST_READINGS, class_lines, host_lines, host_part
from service.web.rendering import PageRoute, render_page

if TYPE_CHECKING:
    from fastapi.responses import HTMLResponse

    from service.core.clock import Clock
    from service.store.database import Database

_NAME_LENGTH_MAX: Final = 200
_Name = Annotated[str, Path(max_length=_NAME_LENGTH_MAX, pattern=r"^[^\x00]+$")]


def host_pages_router(
    database: Database, *, clock: Clock | None = None, schedule: AaSchedule | None = None
) -> APIRouter:
    """Return the router of the pages about hosts.

    Args:
        database: What is shown.
        clock: Tells the age of things.
        schedule: On which host class the service measures, and how often it is checked.
    """
    often = schedule or AaSchedule(host_class="", days=0)
    watch: Clock = clock or SystemClock()
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/hosts")
    def everything() -> HTMLResponse:
        now = watch.now()
        with database.reading() as session:
            lines = host_lines(session, now=now)
            classes = class_lines(session, lines, often, now=now)
            return render_page("hosts.html", lines=lines, classes=classes)

    @router.get("/hosts/{name}")
    def one(name: _Name) -> HTMLResponse:
        with database.reading() as session:
            found = host_noise.of_host(
                session,
                name,
                host_class=None,
                workload=None,
                limit=hosts.RECORDS_MAX,
                readings=NEWEST_READINGS,
            )
            if not found:
                raise NotFoundError(f"No host called {name} has sent a run here.")
            parts = [host_part(session, noise, now=watch.now()) for noise in found]
            return render_page("host.html", name=name, parts_of_host=parts)

    return router
