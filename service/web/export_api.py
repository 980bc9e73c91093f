"""The API that gives raw numbers away: samples as a CSV or Parquet file, written while it is sent.

Routes translate HTTP to calls and back. How much one request may ask for is bounded; the command
line on the service's machine is not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime, StringConstraints

from service.flows.exports import ExportFormat, export_of
from service.store.exports import SampleChoice
from service.web.problems import documented

if TYPE_CHECKING:
    from service.store.database import Database

#: Runs of one answer: some ten million samples of a suite of 42 workloads, or years of a small one.
RUNS_MAX: Final = 5_000
_LENGTH_MAX: Final = 200
#: PostgreSQL's texts have no zero byte, so nothing there is called by one.
_NAME: Final = r"^[^\x00]+$"
_MEDIA_TYPES: Final = {
    ExportFormat.CSV: "text/csv; charset=utf-8",
    ExportFormat.PARQUET: "application/vnd.apache.parquet",
}
_FILES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The samples, one in each row, in the order their runs were stored.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
ForkName = Annotated[
    str, Query(max_length=_LENGTH_MAX, pattern=_NAME, description="Name of the fork.")
]
FormatName = Annotated[ExportFormat, Query(alias="format", description="Of the file.")]
Workloads = Annotated[
    list[Annotated[str, StringConstraints(max_length=_LENGTH_MAX, pattern=_NAME)]] | None,
    Query(alias="workload", max_length=100, description="Only these; may be repeated."),
]
OneName = Annotated[
    str | None,
    Query(max_length=_LENGTH_MAX, pattern=_NAME, description="Only this; all where absent."),
]
Since = Annotated[
    AwareDatetime | None, Query(description="Only of runs that were stored then or later.")
]


def exports_router(database: Database, *, runs_max: int = RUNS_MAX) -> APIRouter:
    """Return the router of exports."""
    router = APIRouter(prefix="/api/v1", tags=["exports"])

    @router.get(
        "/export/samples",
        summary="Samples of a fork as a file: raw numbers, one in each row",
        response_class=StreamingResponse,
        responses=_FILES | documented(404, 422),
    )
    def export_samples(
        fork: ForkName,
        form: FormatName = ExportFormat.CSV,
        workload: Workloads = None,
        metric: OneName = None,
        branch: OneName = None,
        host_class: OneName = None,
        since: Since = None,
    ) -> StreamingResponse:
        choice = SampleChoice(
            fork=fork,
            workloads=tuple(workload or ()),
            metric=metric,
            branch=branch,
            host_class=host_class,
            since=since,
        )
        found = export_of(database, choice, runs_max=runs_max)
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", fork)
        return StreamingResponse(
            found.pieces(form),
            media_type=_MEDIA_TYPES[form],
            headers={"Content-Disposition": f'attachment; filename="{name}.{form.value}"'},
        )

    return router
