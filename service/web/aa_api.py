"""The API about A/A checks: asking for one, and seeing what they said of a host class.

Routes translate HTTP to calls and back; they decide nothing about the domain. Asking costs machine
time and needs a token with the scope `operate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends

from service.core.aa_checks import AaCheck  # noqa: TC001  the schema is made from this class
from service.core.alert_actions import OrderVia
from service.core.tokens import Scope
from service.web.credentials import Bearer  # noqa: TC001  routes read their annotations
from service.web.parameters import PathName  # noqa: TC001  as above
from service.web.problems import documented

if TYPE_CHECKING:
    from service.flows.aa_checks import AaChecks
    from service.web.credentials import Guard


def aa_router(asks: AaChecks, *, guard: Guard) -> APIRouter:
    """Return the router that takes orders about A/A checks and tells what came of them."""
    router = APIRouter(prefix="/api/v1/host-classes/{host_class}/aa-checks", tags=["hosts"])

    @router.get(
        "",
        summary="A/A checks of a host class, newest first",
        responses=documented(401, 403, 422),
        dependencies=[Depends(guard.reader())],
    )
    def list_checks(host_class: PathName) -> list[AaCheck]:
        return asks.newest(host_class)

    @router.post(
        "",
        status_code=201,
        summary="Measure the newest measured commit against itself; one check at a time",
        responses=documented(401, 403, 404, 409, 422, 503),
    )
    def ask(host_class: PathName, bearer: Bearer) -> AaCheck:
        token = guard.require(bearer, None, Scope.OPERATE)
        return asks.ask(host_class, actor=f"token:{token.name}", via=OrderVia.API.value)

    return router
