"""Tokens of people and programs: what they look like, how they are kept, what they are good for.

A token is `fw_ID_SECRET`. The id finds its row; the secret is 256 random bits, of which only the
SHA-256 is kept. A slow hash such as scrypt is for passwords, which can be guessed; nobody guesses
256 bits, and a slow hash on every request would be a gift to whoever sends many.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  the API makes its schema from these classes
from enum import StrEnum
from typing import Final

PREFIX: Final = "fw"
_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
#: Our own are 59 letters long; more than this is not looked at.
_LENGTH_MAX: Final = 200


class Scope(StrEnum):
    """What a token may be used for; none includes another."""

    #: See what the service knows, where that is not public.
    READ = "read"
    #: Bring the runs of jobs.
    SUBMIT = "submit"
    #: Give orders about alerts and baselines.
    ACT = "act"
    #: Spend machine time: backfills.
    OPERATE = "operate"


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token as the store keeps it, without its secret."""

    id: str
    #: Who or what uses it; actions are logged as `token:NAME`.
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    #: To the minute.
    last_used_at: datetime | None

    def good(self, at: datetime) -> bool:
        """Whether it is neither revoked nor past its time."""
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


@dataclass(frozen=True, kw_only=True)
class MintedSecret:
    """A new token's id and secret; the only time that the secret is seen."""

    id: str
    secret: str

    @property
    def text(self) -> str:
        """What its owner sends."""
        return f"{PREFIX}_{self.id}_{self.secret}"


def mint() -> MintedSecret:
    """Return a new secret from the system's generator."""
    return MintedSecret(
        id=secrets.token_hex(_ID_BYTES), secret=secrets.token_urlsafe(_SECRET_BYTES)
    )


def read_secret(text: str) -> MintedSecret | None:
    """Return the id and secret in what somebody sent, None if it is none of our tokens."""
    if len(text) > _LENGTH_MAX or not text.isascii():
        return None
    prefix, _, rest = text.partition("_")
    token_id, _, secret = rest.partition("_")
    if prefix != PREFIX or not token_id.isalnum() or not secret:
        return None
    return MintedSecret(id=token_id, secret=secret)


def hash_of(secret: str) -> str:
    """Return the form in which a secret is kept."""
    return hashlib.sha256(secret.encode()).hexdigest()
