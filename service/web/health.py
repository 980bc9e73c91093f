"""Health for supervisors: alive, and able to work.

The parts that have to be right come in; each looks at itself and says what is wrong. What they are
is for whoever puts the service together.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import APIRouter

from service.core.errors import ServiceError
from service.web.problems import documented

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_log = logging.getLogger("forkwatch.health")


@dataclass(frozen=True, kw_only=True)
class Health:
    """Whether the service can do its work."""

    status: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """Something that the service cannot work without."""

    #: One word, such as `database`.
    name: str
    #: Returns what is wrong in words for an operator, None where nothing is.
    fault: Callable[[], str | None]


class NotReadyError(ServiceError):
    """The service is up and cannot do its work."""

    status = 503


def health_router(parts: Sequence[Part]) -> APIRouter:
    """Return the router; every part is looked at, so that all faults are said at once."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz", summary="Whether the process answers")
    def show_health() -> Health:
        return Health(status="ok")

    @router.get(
        "/readyz",
        summary="Whether every part of the service can work; the problem names those that cannot",
        responses=documented(503),
    )
    def show_readiness() -> Health:
        faults = list(_faults(parts))
        if faults:
            raise NotReadyError("; ".join(faults))
        return Health(status="ready")

    return router


def _faults(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        try:
            fault = part.fault()
        except Exception:  # noqa: BLE001  whatever it is, a part that cannot be looked at is not right
            # In the log alone: an error may say addresses that are nobody's business.
            _log.exception("%s cannot be looked at", part.name)
            fault = "does not answer; the log says why"
        if fault is not None:
            yield f"{part.name}: {fault}"
