"""An issuer of OIDC tokens on loopback, which signs by RFC 7515 alone and shares no line with us.

It has keys of its own, publishes the public halves over HTTP, and signs whatever it is told to, so
that a test can have every token that an honest issuer would never make. What it answers can be
replaced, and what it was asked is counted.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.loopback import Loopback

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.requests import Request

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
KEYS_PATH: Final = "/.well-known/jwks"
AUDIENCE: Final = "https://perf.example"
REPOSITORY, PIPELINE = "acme/mysql", "acme/mysql-perf"


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return a key; the same for the same name, because making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@cache
def ec_key(name: str, curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    """Return a key on a curve; the same for the same name."""
    return ec.generate_private_key(curve())


class OidcIssuer:
    """Use it as a context: it listens for that long."""

    def __init__(self) -> None:
        self.keys: dict[str, PrivateKey] = {"rsa-1": rsa_key("1"), "ec-1": ec_key("1")}
        #: Takes the place of the key set when it is there.
        self.answer: Callable[[], Response] | None = None
        #: How often somebody asked for keys.
        self.asked = 0
        self._server = Loopback(Starlette(routes=[Route(KEYS_PATH, self._show)]))
        self.url = self._server.url

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()

    def github(self, at: datetime, **changes: Any) -> dict[str, Any]:
        """Return the claims of a push to main, as GitHub makes them."""
        return {
            "jti": "3c4b6a1e",
            "sub": f"repo:{REPOSITORY}:ref:refs/heads/main",
            "repository": REPOSITORY,
            "repository_id": "74",
            "repository_owner": "acme",
            "actor": "ada",
            "event_name": "push",
            "ref": "refs/heads/main",
            "ref_type": "branch",
            "sha": "b" * 40,
            "run_id": "9001",
            "run_attempt": "1",
            "job_workflow_ref": f"{REPOSITORY}/.github/workflows/forkwatch.yml@refs/heads/main",
            "runner_environment": "self-hosted",
            **self._times(at),
            **changes,
        }

    def buildkite(self, at: datetime, **changes: Any) -> dict[str, Any]:
        """Return the claims of a build of main, as Buildkite makes them."""
        organization, _, pipeline = PIPELINE.partition("/")
        return {
            "sub": f"organization:{organization}:pipeline:{pipeline}:ref:refs/heads/main",
            "organization_slug": organization,
            "pipeline_slug": pipeline,
            "build_number": 17,
            "build_branch": "main",
            "build_tag": None,
            "build_commit": "b" * 40,
            "build_source": "webhook",
            "step_key": None,
            "job_id": "0184990a-477b-4fa8-9968-496074483cee",
            "runner_environment": "self-hosted",
            **self._times(at),
            **changes,
        }

    def _times(self, at: datetime) -> dict[str, Any]:
        now = int(at.timestamp())
        return {"iss": self.url, "aud": AUDIENCE, "iat": now, "nbf": now, "exp": now + 300}

    def sign(
        self,
        claims: dict[str, Any] | bytes,
        *,
        kid: str | None = "rsa-1",
        key: PrivateKey | bytes | None = None,
        **header: Any,
    ) -> str:
        """Return a token with these claims.

        Args:
            claims: What it says; bytes are taken as they are.
            kid: Name of the key.
            key: Signs in place of the key of that name; bytes are a shared secret.
            header: What else the header says; `alg` replaces what would be true, None leaves out.
        """
        signer = self.keys[kid or ""] if key is None else key
        told = {"alg": _algorithm_of(signer), "kid": kid, "typ": "JWT", **header}
        text = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        kept = {name: value for name, value in told.items() if value is not None}
        signed = f"{encoded(json.dumps(kept).encode())}.{encoded(text)}"
        return f"{signed}.{encoded(_signature(signed.encode(), signer))}"

    def _show(self, _request: Request) -> Response:
        self.asked += 1
        if self.answer is not None:
            return self.answer()
        return key_set(*(published(name, key) for name, key in self.keys.items()))


def key_set(*keys: Any) -> Response:
    """Return the answer that publishes these keys."""
    return Response(json.dumps({"keys": keys}), media_type="application/json")


def published(name: str, key: PrivateKey) -> dict[str, Any]:
    """Return the public half of a key as RFC 7517 has it."""
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = key.public_key().public_numbers()
        facts = {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
        return {"kid": name, "use": "sig", "alg": "RS256", **facts}
    point = key.public_key().public_numbers()
    size = (key.curve.key_size + 7) // 8
    return {
        "kid": name,
        "use": "sig",
        "kty": "EC",
        "crv": {"secp256r1": "P-256", "secp384r1": "P-384"}[key.curve.name],
        "x": encoded(point.x.to_bytes(size, "big")),
        "y": encoded(point.y.to_bytes(size, "big")),
    }


def public_pem(key: PrivateKey) -> bytes:
    """Return the public half of a key as a text, which everybody has."""
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def encoded(raw: bytes) -> str:
    """Return bytes as they are in a token."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Return the bytes of a part of a token."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _number(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _algorithm_of(key: PrivateKey | bytes) -> str:
    if isinstance(key, bytes):
        return "HS256"
    return "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"


def _signature(signed: bytes, key: PrivateKey | bytes) -> bytes:
    if isinstance(key, bytes):
        # The empty secret is for tokens that nobody signs.
        return hmac.new(key, signed, hashlib.sha256).digest() if key else b""
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    pair = decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
    size = (key.curve.key_size + 7) // 8
    return b"".join(number.to_bytes(size, "big") for number in pair)
