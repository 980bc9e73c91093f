"""The door for jobs of a CI: a token that the CI signed comes in, an order with its credential out.

What the token proves is for `core.identity` to say, and which job waits for `flows.ci_orders`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Query, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from service.core.errors import CredentialMissingError
from service.flows.ci_orders import HandedOrder  # noqa: TC001  the schema is made from this class
from service.web.problems import documented

if TYPE_CHECKING:
    from service.core.identity import Identities
    from service.flows.ci_orders import CiOrders

_BEARER: Final = HTTPBearer(
    auto_error=False, scheme_name="Identity", description="A token that the CI signed for its job."
)
CiToken = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
HostClass = Annotated[
    str,
    Query(
        min_length=1,
        max_length=64,
        # A class has a printable name, and PostgreSQL no text with a zero byte.
        pattern=r"^[^\x00-\x1f]+$",
        description="Host class of the machine that will measure.",
    ),
]


def oidc_router(orders: CiOrders, *, identities: Identities | None) -> APIRouter:
    """Return the router that hands orders to jobs of a CI; to nobody where no CI is named.

    Args:
        orders: The orders that they may ask for.
        identities: Tells whose token it is; None where no CI is named in the settings.
    """
    router = APIRouter(prefix="/api/v1/credentials", tags=["runs"])

    @router.post(
        "/oidc",
        summary="Take the order of a job that waits, with the credential for its run",
        responses=documented(401, 403, 404, 422, 503),
    )
    def exchange(token: CiToken, host_class: HostClass, response: Response) -> HandedOrder:
        if identities is None:
            raise CredentialMissingError(
                "no CI is named here: an operator sets FORKWATCH_OIDC_AUDIENCE and its repository "
                "or pipeline"
            )
        if token is None:
            raise CredentialMissingError(
                "send the token of your CI for this service as 'Authorization: Bearer ...'"
            )
        identity = identities.check(token.credentials)
        # Nobody on the way may keep an answer with a credential.
        response.headers["Cache-Control"] = "no-store"
        return orders.hand_over(identity, host_class)

    return router
