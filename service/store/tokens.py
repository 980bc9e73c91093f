"""Queries about tokens: names, hashes and scopes, never a secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from service.core.errors import NotFoundError, TokenError
from service.core.tokens import Scope, Token
from service.store.token_tables import TokenRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

#: Tokens of one list. An operator makes them one by one.
LISTED_MAX: Final = 1_000


def create(session: Session, token: Token, *, secret_hash: str) -> None:
    """Store a new token.

    Raises:
        TokenError: There is, or was, one of that name; the log must not mix them up.
    """
    row = TokenRow(
        id=token.id,
        name=token.name,
        secret_hash=secret_hash,
        scopes=[scope.value for scope in token.scopes],
        created_at=token.created_at,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
        last_used_at=token.last_used_at,
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        raise TokenError(
            f"there is, or was, a token called {token.name!r}; take another name"
        ) from None


def with_hash(session: Session, token_id: str) -> tuple[Token, str] | None:
    """Return a token and the hash of its secret, if there is one of that id."""
    row = session.get(TokenRow, token_id)
    return (_value(row), row.secret_hash) if row else None


def everything(session: Session) -> list[Token]:
    """Return all tokens, good or not, oldest first."""
    query = select(TokenRow).order_by(TokenRow.created_at, TokenRow.name).limit(LISTED_MAX)
    return [_value(row) for row in session.scalars(query)]


def revoke(session: Session, name: str, *, at: datetime) -> Token:
    """Revoke a token and return it; the first time stays.

    Raises:
        NotFoundError: There is none of that name.
    """
    row = session.scalar(select(TokenRow).where(TokenRow.name == name))
    if row is None:
        raise NotFoundError(f"there is no token called {name!r}")
    if row.revoked_at is None:
        row.revoked_at = at
    session.flush()
    return _value(row)


def mark_used(session: Session, token_id: str, *, at: datetime) -> None:
    """Note that a token was used."""
    session.get_one(TokenRow, token_id).last_used_at = at
    session.flush()


def _value(row: TokenRow) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        scopes=tuple(Scope(scope) for scope in row.scopes),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )
