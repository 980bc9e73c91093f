"""Who asks: an App by a signed token, its installation, or a person; nobody else gets in."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

APP_ID: Final = "4242"
SLUG: Final = "forkwatch"
INSTALLATION: Final = 77
USER_TOKEN: Final = "a-machine-account's-token"
USER: Final = "fw-machine"
#: GitHub takes no token that is good for longer.
JWT_SECONDS_MAX: Final = 600


@cache
def private_key() -> str:
    """Return the App's key in PEM; one for all tests, because making one takes a while."""
    return new_key()


def new_key() -> str:
    """Return a fresh key in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


@cache
def _public_key() -> rsa.RSAPublicKey:
    key = serialization.load_pem_private_key(private_key().encode(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key.public_key()


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Who asks."""

    #: app, installation or user.
    kind: str
    login: str


@dataclass
class Doorkeeper:
    """Tells who asks by the Authorization header."""

    #: Installation tokens by when they end.
    tokens: dict[str, float] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def who(self, header: str) -> Actor | None:
        """Return who asks, or None for nobody we know."""
        scheme, _, secret = header.partition(" ")
        if scheme.lower() not in {"bearer", "token"}:
            return None
        if secret == USER_TOKEN:
            return Actor(kind="user", login=USER)
        if self.tokens.get(secret, 0) > time.time():
            return Actor(kind="installation", login=f"{SLUG}[bot]")
        return Actor(kind="app", login=SLUG) if _signed(secret) else None

    def mint(self) -> tuple[str, float]:
        """Return a new installation token and when it ends."""
        token, until = f"ghs_{next(self._numbers)}", time.time() + 3600
        self.tokens[token] = until
        return token, until


def _signed(secret: str) -> bool:
    try:
        claims = jwt.decode(secret, _public_key(), algorithms=["RS256"], issuer=APP_ID)
    except jwt.PyJWTError:
        return False
    return bool(claims["exp"] - claims["iat"] <= JWT_SECONDS_MAX)
