"""Tokens: made, listed, revoked, and checked on every request that brings one.

Words come in, tokens go out. A secret is returned once, when it is made, and is neither stored nor
logged.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from service.core.alert_actions import OrderVia
from service.core.alert_records import AuditSubject
from service.core.errors import CredentialMissingError, CredentialRefusedError, TokenError
from service.core.tokens import Token, hash_of, mint, read_secret
from service.store import audit, tokens
from service.store.audit import NewEntry

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.clock import Clock
    from service.core.tokens import Scope
    from service.store.database import Database

#: Names are read aloud in logs and issues.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
#: The last use is kept to the minute: reading must not cost a write each time.
USE_NOTED_EVERY: Final = timedelta(minutes=1)
#: Ten years; more days than that are a slip of the hand.
DAYS_MAX: Final = 3650
#: Compared with where there is no token of the id, so that both take the same time.
_NO_HASH: Final = hash_of("no token has this secret")


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The tokens of a store."""

    database: Database
    clock: Clock

    def create(
        self, name: str, scopes: Collection[Scope], *, days: int | None = None
    ) -> tuple[Token, str]:
        """Make a token; return it, and the text that its owner sends, which is not kept.

        Raises:
            TokenError: The name is taken or no name, there is no scope, or the days are odd.
        """
        if not _NAME.fullmatch(name):
            raise TokenError(
                f"{name!r} is no name: letters, digits, dots, dashes and underscores, 63 at most"
            )
        if not scopes:
            raise TokenError("a token without a scope is good for nothing")
        if days is not None and not 0 < days <= DAYS_MAX:
            raise TokenError(f"a token is good for 1 to {DAYS_MAX} days, or for ever")
        now, minted = self.clock.now(), mint()
        token = Token(
            id=minted.id,
            name=name,
            scopes=tuple(sorted(set(scopes))),
            created_at=now,
            expires_at=None if days is None else now + timedelta(days=days),
            revoked_at=None,
            last_used_at=None,
        )
        with self.database.writing() as session:
            tokens.create(session, token, secret_hash=hash_of(minted.secret))
            _log(session, token, "create", at=now)
        return token, minted.text

    def everything(self) -> list[Token]:
        """Return all tokens, good or not, oldest first."""
        with self.database.reading() as session:
            return tokens.everything(session)

    def revoke(self, name: str) -> Token:
        """Revoke a token, from the next request on.

        Raises:
            NotFoundError: There is none of that name.
        """
        now = self.clock.now()
        with self.database.writing() as session:
            token = tokens.revoke(session, name, at=now)
            if token.revoked_at == now:
                _log(session, token, "revoke", at=now)
        return token

    def check(self, text: str, scope: Scope) -> Token:
        """Return the token that somebody sent, if it is good for a scope.

        Raises:
            CredentialMissingError: It is none of ours, or no longer good.
            CredentialRefusedError: It is good, and not for this.
        """
        sent, now = read_secret(text), self.clock.now()
        found = None
        if sent is not None:
            with self.database.reading() as session:
                found = tokens.with_hash(session, sent.id)
        kept = found[1] if found else _NO_HASH
        right = hmac.compare_digest(hash_of(sent.secret if sent else ""), kept)
        if found is None or not right or not found[0].good(now):
            raise CredentialMissingError("this token is not known, or no longer good")
        token = found[0]
        if scope not in token.scopes:
            has = ", ".join(token.scopes)
            raise CredentialRefusedError(
                f"this needs the scope {scope.value!r}; the token has {has}"
            )
        self._note_use(token, at=now)
        return token

    def _note_use(self, token: Token, *, at: datetime) -> None:
        if token.last_used_at is None or at - token.last_used_at >= USE_NOTED_EVERY:
            with self.database.writing() as session:
                tokens.mark_used(session, token.id, at=at)


def _log(session: Session, token: Token, what: str, *, at: datetime) -> None:
    audit.append(
        session,
        NewEntry(
            at=at,
            subject=AuditSubject.TOKEN,
            about=token.name,
            what=what,
            # Whoever has a shell on the service's machine has everything.
            actor="operator",
            via=OrderVia.SHELL.value,
            details={"scopes": [scope.value for scope in token.scopes]},
        ),
    )
