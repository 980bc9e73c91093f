"""The API that compares: two stored versions of each other, or many with the first of them.

Routes translate HTTP to calls and back; they decide nothing about the domain. Numbers that are not
finite, such as the interval of a single start, are null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Query

from service.flows.comparisons import compare
from service.flows.named_runs import NAME_LENGTH_MAX
from service.flows.releases import releases
from service.web.compare_views import ComparisonView, comparison_view
from service.web.problems import documented
from service.web.release_views import ReleasesView, releases_view

if TYPE_CHECKING:
    from service.store.database import Database

#: PostgreSQL's texts have no zero byte, so nothing there is called by one.
_NAME: Final = r"^[^\x00]+$"
#: Twenty versions by their full names.
REFS_LENGTH_MAX: Final = 4_000
VersionName = Annotated[
    str,
    Query(
        max_length=NAME_LENGTH_MAX,
        pattern=_NAME,
        description="Id of a run, first digits of a commit's hash, or name of an imported commit.",
    ),
]
OptionalFork = Annotated[
    str | None,
    Query(
        max_length=NAME_LENGTH_MAX, pattern=_NAME, description="Where several forks could be meant."
    ),
]
ForkName = Annotated[
    str, Query(max_length=NAME_LENGTH_MAX, pattern=_NAME, description="Name of the fork.")
]
VersionNames = Annotated[
    str,
    Query(
        max_length=REFS_LENGTH_MAX,
        pattern=_NAME,
        description="Versions with commas between them, the base first.",
    ),
]


def compare_router(database: Database) -> APIRouter:
    """Return the router that compares what is stored."""
    router = APIRouter(prefix="/api/v1", tags=["comparisons"])

    @router.get(
        "/compare",
        summary="Two stored versions: throughput, intervals, verdicts, latency and counters",
        responses=documented(404, 422),
    )
    def compare_two(
        baseline: VersionName, candidate: VersionName, fork: OptionalFork = None
    ) -> ComparisonView:
        with database.reading() as session:
            found = compare(session, baseline=baseline, candidate=candidate, fork=fork)
        return comparison_view(found)

    @router.get(
        "/releases",
        summary="Relative throughput of stored versions of a fork, the base first",
        responses=documented(404, 422),
    )
    def compare_releases(fork: ForkName, refs: VersionNames) -> ReleasesView:
        with database.reading() as session:
            found = releases(session, fork=fork, refs=refs.split(","))
        return releases_view(found)

    return router
