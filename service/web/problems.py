"""Problem details (RFC 9457): every error of the API as the same small JSON object."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

MEDIA_TYPE: Final = "application/problem+json"


class Problem(BaseModel):
    """What went wrong, for programs and for people."""

    type: str = Field(default="about:blank", description="Kind of problem; the status says it all.")
    title: str = Field(description="The status in words.")
    status: int
    detail: str = Field(description="What is wrong here, and what would be right.")


def problem_response(
    status: int, detail: str, *, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return a problem as a response."""
    problem = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail)
    return JSONResponse(
        problem.model_dump(), status_code=status, media_type=MEDIA_TYPE, headers=headers
    )


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return these statuses as an OpenAPI description."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            "model": Problem,
        }
        for status in statuses
    }
