"""The API about hosts: which machines measured, and how noisy each of them is, as JSON.

Routes translate HTTP to calls and back. Reading needs no credential, as the pages do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Query

from service.core.errors import NotFoundError
from service.core.hosts import Host, HostNoise  # noqa: TC001  the schema is made from these
from service.flows import host_noise
from service.store import hosts
from service.web.parameters import PathName, QueryName  # noqa: TC001  routes read these
from service.web.problems import documented

if TYPE_CHECKING:
    from service.store.database import Database

#: Records of one answer at most, and where nobody asks: a suite of three workloads 600 times.
LIMIT_MAX: Final = hosts.RECORDS_MAX
LIMIT_USUAL: Final = 2_000


def hosts_router(database: Database) -> APIRouter:
    """Return the router that tells about hosts."""
    router = APIRouter(prefix="/api/v1", tags=["hosts"])

    @router.get("/hosts", summary="All machines that sent runs")
    def list_hosts() -> list[Host]:
        with database.reading() as session:
            return hosts.everything(session)

    @router.get(
        "/hosts/{name}/noise",
        summary="How noisy a machine is, for each host class that it ran in",
        responses=documented(404, 422),
    )
    def show_noise(
        name: PathName,
        host_class: QueryName = None,
        workload: QueryName = None,
        limit: Annotated[
            int, Query(ge=1, le=LIMIT_MAX, description="Newest records of each history at most.")
        ] = LIMIT_USUAL,
    ) -> list[HostNoise]:
        with database.reading() as session:
            found = host_noise.of_host(
                session, name, host_class=host_class, workload=workload, limit=limit
            )
        if not found:
            raise NotFoundError(f"no host {name!r} has sent a run here")
        return found

    return router
