"""The pages about bisects: a list of them, and one of each with all that it knows.

A database comes in, a router goes out. Sentence, tables and chart are those that issue, thread and
command line have; what the search knows was written down with its last observation. Templates
escape everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query

from reports.bisect import again_command, bisect_chart, explain_command, notes
from reports.bisect_tables import author_name, belief, commits_table, jobs_table
from service.core.bisections import UNDER_WAY, BisectState
from service.core.errors import NotFoundError
from service.flows.bisect_evidence import stored_evidence
from service.store import bisect_jobs, bisects
from service.web.pages import PageRoute, render_page

if TYPE_CHECKING:
    from fastapi.responses import HTMLResponse
    from sqlalchemy.orm import Session

    from bisects.document import BisectCommit, BisectDocument
    from reports.tables import Table
    from service.core.bisections import Bisect, BisectJob
    from service.store.database import Database

LIST_ROWS_MAX: Final = 100
#: Culprits that are named above the tables; more are not told apart, and are in the table.
CULPRITS_MAX: Final = 20

_Id = Annotated[str | None, Query(max_length=200)]


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """A commit that may be the first of a new level."""

    commit: BisectCommit
    author: str
    #: In percent.
    probability: str
    #: Whether it has a page of its own.
    known: bool


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a bisect knows, laid out."""

    document: BisectDocument
    chart: dict[str, Any]
    tables: tuple[Table, ...]
    culprits: tuple[Culprit, ...]
    notes: tuple[str, ...]
    #: That nothing changed, in percent.
    nothing: str
    #: Does it again on the reader's own machine.
    command: str
    #: Tells what the culprit does more of; empty where none is named.
    explain: str


@dataclass(frozen=True, kw_only=True)
class BisectPage:
    """Everything on the page of a bisect."""

    bisect: Bisect
    #: What is known, or what is being waited for.
    sentence: str
    found: Found | None
    #: Jobs that have said nothing: under way, or in vain.
    silent: tuple[BisectJob, ...]


@dataclass(frozen=True, kw_only=True)
class AskedFor:
    """What the form of the list says; empty where nobody has filled it in."""

    good: str = ""
    bad: str = ""
    workload: str = ""
    minutes: str = ""
    alert: str = ""


def bisect_pages_router(database: Database, *, orders: bool = False) -> APIRouter:
    """Return the router of the pages about bisects; with `orders` they have forms."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/bisects")
    def listed(fork: _Id = None, alert: _Id = None, before: _Id = None) -> HTMLResponse:
        asked = AskedFor(alert=_plain(alert) or "")
        with database.reading() as session:
            return list_page(
                session, fork=_plain(fork), before=_plain(before), asked=asked, orders=orders
            )

    @router.get("/bisects/{bisect_id}")
    def one(bisect_id: str) -> HTMLResponse:
        with database.reading() as session:
            return one_page(session, bisect_id, orders=orders)

    return router


def list_page(
    session: Session,
    *,
    asked: AskedFor,
    orders: bool,
    fork: str | None = None,
    before: str | None = None,
    fault: str = "",
    status: int = 200,
) -> HTMLResponse:
    """Return the list, with the form as it was filled in and what is wrong with it."""
    found = bisects.newest(
        session, fork, alert=asked.alert or None, before=before, limit=LIST_ROWS_MAX
    )
    more = found[-1].id if len(found) == LIST_ROWS_MAX else None
    return render_page(
        "bisects.html",
        status=status,
        bisects=found,
        fork=fork,
        asked=asked,
        more=more,
        orders=orders,
        fault=fault,
    )


def one_page(
    session: Session, bisect_id: str, *, orders: bool, fault: str = "", status: int = 200
) -> HTMLResponse:
    """Return the page of a bisect, and what is wrong with what somebody wants of it.

    Raises:
        NotFoundError: There is no such bisect.
    """
    page = _page(session, bisect_id)
    can_end = orders and page.bisect.state in UNDER_WAY
    return render_page("bisect.html", status=status, page=page, can_end=can_end, fault=fault)


def _page(session: Session, bisect_id: str) -> BisectPage:
    """Return the page of a bisect.

    Raises:
        NotFoundError: There is no such bisect.
    """
    bisect = bisects.find(session, bisect_id) if "\0" not in bisect_id else None
    if bisect is None:
        raise NotFoundError(f"There is no bisect {bisect_id}.")
    document = bisects.document(session, bisect_id)
    jobs = bisect_jobs.of_bisect(session, bisect_id)
    return BisectPage(
        bisect=bisect,
        sentence=bisect.said or _waiting(bisect),
        found=_found(session, document) if document else None,
        silent=tuple(job for job in jobs if job.observation is None),
    )


def _found(session: Session, document: BisectDocument) -> Found:
    named = [place for place in document.culprits if place][:CULPRITS_MAX]
    hashes = [document.commits[place].sha for place in named]
    known = bisects.on_branch(session, document.question.fork, hashes)
    evidence = stored_evidence(session, document)
    counted = (evidence.counters,) if evidence and evidence.counters.lines else ()
    return Found(
        document=document,
        chart=bisect_chart(document),
        tables=(commits_table(document), *counted, jobs_table(document)),
        culprits=tuple(
            Culprit(
                commit=commit,
                author=author_name(commit.author),
                probability=belief(commit.posterior),
                known=commit.sha in known,
            )
            for commit in (document.commits[place] for place in named)
        ),
        notes=tuple(notes(document)),
        nothing=belief(document.nothing),
        command=again_command(document),
        explain=explain_command(document),
    )


def _waiting(bisect: Bisect) -> str:
    if bisect.state is BisectState.WAITING:
        return "Waits for the bisect before it."
    return "Has begun; nothing is measured yet."


def _plain(text: str | None) -> str | None:
    """Return a text that PostgreSQL takes: it has no zero byte."""
    return text.replace("\0", "") if text else None
