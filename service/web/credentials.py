"""Who may read and who may act: tokens on requests.

A token comes as `Authorization: Bearer TOKEN`, or as the password of a browser's login. Reading may
be public; acting never is. What a token may do is for `flows.tokens` to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Depends, Security
from fastapi.security import (
    HTTPAuthorizationCredentials,
    HTTPBasic,
    HTTPBasicCredentials,
    HTTPBearer,
)

from service.core.errors import CredentialMissingError
from service.core.tokens import Scope
from service.web.problems import documented

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.core.tokens import Token
    from service.flows.tokens import Tokens

_BEARER: Final = HTTPBearer(auto_error=False, scheme_name="Token", description="A token.")
_BASIC: Final = HTTPBasic(
    auto_error=False, scheme_name="Login", description="A token as the password; any name."
)
Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
Basic = Annotated[HTTPBasicCredentials | None, Security(_BASIC)]


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Lets requests in."""

    tokens: Tokens
    #: Whether reading needs no token.
    public_read: bool

    def reader(self) -> Callable[..., None]:
        """Return the dependency of routes that show something."""

        def check(bearer: Bearer, basic: Basic) -> None:
            if not self.public_read:
                self.require(bearer, basic, Scope.READ)

        return check

    def readable(self, routers: Sequence[APIRouter]) -> APIRouter:
        """Return routers of what can be read as one that lets only readers in."""
        together = APIRouter(dependencies=[Depends(self.reader())], responses=documented(401, 403))
        for router in routers:
            together.include_router(router)
        return together

    def require(
        self,
        bearer: HTTPAuthorizationCredentials | None,
        basic: HTTPBasicCredentials | None,
        scope: Scope,
    ) -> Token:
        """Return the token of a request, if it is good for a scope.

        Raises:
            CredentialMissingError: There is none, or it is no longer good.
            CredentialRefusedError: It is good, and not for this.
        """
        if bearer is not None:
            return self.tokens.check(bearer.credentials, scope)
        # A browser sends its login with whatever another site has it send: good for reading alone.
        if basic is not None and scope is Scope.READ:
            return self.tokens.check(basic.password, scope)
        raise CredentialMissingError(
            f"send a token with the scope {scope.value!r} as 'Authorization: Bearer ...'; "
            "`forkwatch token create` makes one"
        )
