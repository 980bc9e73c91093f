"""The archive of weekly digests: a page of all weeks, and one of each week.

A database comes in, a router goes out. A page shows the sections as they were worded when the
digest was written, so that it says what was sent. Templates escape everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from reports.digest_chart import digest_chart
from service.core.errors import NotFoundError
from service.core.weeks import parse_week
from service.store import digests
from service.web.pages import PageRoute, render_page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi.responses import HTMLResponse
    from sqlalchemy.orm import Session

    from service.core.digests import StoredDigest
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class DigestPart:
    """A digest on the page of its week."""

    digest: StoredDigest
    #: What moved; None where nothing did.
    chart: dict[str, Any] | None


def digests_router(database: Database) -> APIRouter:
    """Return the router of the pages about digests."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/digests")
    def archive() -> HTMLResponse:
        with database.reading() as session:
            return render_page("digests.html", weeks=_by_week(digests.newest(session)))

    @router.get("/digests/{week}")
    def week(week: str) -> HTMLResponse:
        with database.reading() as session:
            return render_page("digest.html", week=week, parts_of=_of_week(session, week))

    return router


def _of_week(session: Session, name: str) -> list[DigestPart]:
    """Return the digests of a week.

    Raises:
        NotFoundError: There is no such week, or nothing was written about it.
    """
    try:
        found = digests.of_week(session, parse_week(name))
    except ValueError as error:
        raise NotFoundError(f"There is no digest of that week: {error}.") from error
    if not found:
        raise NotFoundError(f"No digest was written about the week {name}.")
    return [DigestPart(digest=one, chart=_chart(one.document)) for one in found]


def _chart(document: Mapping[str, Any]) -> dict[str, Any] | None:
    return None if document["quiet"] else digest_chart(document["facts"])


def _by_week(found: list[StoredDigest]) -> dict[str, list[StoredDigest]]:
    """Return digests by the name of their week, in the order they come."""
    weeks: dict[str, list[StoredDigest]] = {}
    for digest in found:
        weeks.setdefault(digest.week.name, []).append(digest)
    return weeks
