"""OIDC of a CI: a signed token comes in, the identity that it proves goes out.

Keys are fetched from the issuers of the settings alone, and kept: where a token says that its key
lies is never read. Who may do what with an identity is not decided here.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import httpx
import jwt

from service.core.errors import CredentialMissingError, TransientError
from service.core.identity import identity_of, is_identity_token

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from jwt.types import Options

    from service.core.clock import Clock
    from service.core.identity import Identity, Issuer
    from service.core.oidc_settings import OidcSettings

_log = logging.getLogger("forkwatch.oidc")

#: What both systems sign with. Everything else, `none` and shared secrets above all, is refused
#: before a key is looked for.
ALGORITHMS: Final = ("RS256", "ES256")
#: Tokens of both systems have about two thousand characters.
TOKEN_LENGTH_MAX: Final = 16 * 1024
#: Key sets have a few keys of about two kilobytes, certificates included.
KEYS_BYTES_MAX: Final = 256 * 1024
KEYS_MAX: Final = 100
#: For each read from the issuer, and for the whole of its answer.
READ_SECONDS_MAX: Final = 5.0
FETCH_SECONDS_MAX: Final = 10.0
#: A key that its issuer takes back is refused after this.
REFRESH_AFTER: Final = timedelta(hours=1)
#: Anybody can send tokens with keys of made-up names: the issuer hears of one in a minute.
REFRESH_PAUSE: Final = timedelta(minutes=1)
#: Keys live for months; an issuer that was away for a day is a reason to look, not to go on.
STALE_MAX: Final = timedelta(days=1)
#: Times and names are checked by `core.identity`, against our own clock.
_SIGNATURE_ONLY: Final[Options] = {
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
    "enforce_minimum_key_length": True,
}
_UNREADABLE: Final = "this is no token of a CI that this service knows"


class IssuerAwayError(TransientError):
    """The issuer's keys cannot be had now."""


class OidcIdentities:
    """The identities that tokens of some issuers prove."""

    def __init__(self, issuers: Sequence[Issuer], *, clock: Clock) -> None:
        """Remember whom to ask; nobody is asked yet."""
        self._clock = clock
        self._issuers = {one.url: one for one in issuers}
        self._keys = {one.url: IssuerKeys(one.keys_url, clock=clock) for one in issuers}

    def check(self, text: str) -> Identity:
        """Return the identity that a token proves.

        Raises:
            CredentialMissingError: It is not signed by an issuer of ours, not for us, or too old.
            CredentialRefusedError: It is good, and not of what the settings name.
            IssuerAwayError: The issuer's keys cannot be had now.
        """
        header, claims = _peek(text)
        url = claims.get("iss")
        issuer = self._issuers.get(url) if isinstance(url, str) else None
        if issuer is None:
            raise CredentialMissingError(_UNREADABLE)
        key = self._keys[issuer.url].key(_key_name(header))
        try:
            verified = jwt.decode(text, key, algorithms=ALGORITHMS, options=_SIGNATURE_ONLY)
        except jwt.PyJWTError:
            raise CredentialMissingError("the token's signature is not its issuer's") from None
        # Without the signature: of an elliptic curve, anybody can make a second one from the first.
        signed = text.rpartition(".")[0]
        digest = hashlib.sha256(signed.encode()).hexdigest()
        return identity_of(verified, issuer, digest=digest, at=self._clock.now())


class IssuerKeys:
    """The keys of one issuer, fetched when they are needed and no more often than is decent."""

    def __init__(self, url: str, *, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at: datetime | None = None
        self._tried_at: datetime | None = None
        self._fetching = threading.Lock()

    def key(self, name: str) -> jwt.PyJWK:
        """Return the key of that name.

        Raises:
            CredentialMissingError: The issuer has none.
            IssuerAwayError: It could not be asked, and what it said before is too old or lacks it.
        """
        now = self._clock.now()
        # Whoever finds the key goes on with it while another one asks for newer ones.
        if self._is_due(name, now) and self._fetching.acquire(blocking=name not in self._keys):
            try:
                if self._is_due(name, now):
                    self._refresh(now)
            finally:
                self._fetching.release()
        found = self._keys.get(name)
        if self._fetched_at is None or now - self._fetched_at > STALE_MAX:
            raise IssuerAwayError(f"the keys of {self._url} cannot be had now; try again")
        if found is None and self._tried_at != self._fetched_at:
            raise IssuerAwayError(f"{self._url} does not answer, and its last answer lacks the key")
        if found is None:
            raise CredentialMissingError("the token's key is none that its issuer publishes")
        return found

    def _is_due(self, name: str, now: datetime) -> bool:
        if self._tried_at is not None and now - self._tried_at < REFRESH_PAUSE:
            return False
        if name not in self._keys or self._fetched_at is None:
            return True
        return now - self._fetched_at >= REFRESH_AFTER

    def _refresh(self, now: datetime) -> None:
        """Take the issuer's keys in place of those that are there; a failure leaves those."""
        try:
            found = _read_keys(_fetch(self._url))
        except (httpx.HTTPError, httpx.InvalidURL, IssuerAwayError) as error:
            _log.warning("keys of %s: %s", self._url, str(error) or type(error).__name__)
        else:
            self._keys, self._fetched_at = found, now
        # Last, so that whoever comes meanwhile waits for the answer and does not go without.
        self._tried_at = now


def connect(settings: OidcSettings, *, clock: Clock) -> OidcIdentities | None:
    """Return what checks tokens, or None where no CI is named; nobody is asked yet."""
    return OidcIdentities(settings.issuers, clock=clock) if settings.issuers else None


def _peek(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a token says before anything of it is believed."""
    if len(text) > TOKEN_LENGTH_MAX or not text.isascii() or not is_identity_token(text):
        raise CredentialMissingError(_UNREADABLE)
    try:
        header = jwt.get_unverified_header(text)
        claims = jwt.decode(text, options={"verify_signature": False})
    except jwt.PyJWTError:
        raise CredentialMissingError(_UNREADABLE) from None
    return header, claims


def _key_name(header: dict[str, Any]) -> str:
    """Return the name of the key, of a token that is signed in a way that we accept."""
    if header.get("alg") not in ALGORITHMS:
        raise CredentialMissingError(f"tokens are signed with {' or '.join(ALGORITHMS)} here")
    # Whatever is critical, nobody here understands it.
    if "crit" in header or not header.get("kid"):
        raise CredentialMissingError(_UNREADABLE)
    return str(header["kid"])


def _fetch(url: str) -> bytes:
    """Return what an issuer answers, within bounds."""
    until = time.monotonic() + FETCH_SECONDS_MAX
    pieces, size = [], 0
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    with (
        httpx.Client(timeout=READ_SECONDS_MAX, follow_redirects=False, headers=headers) as client,
        client.stream("GET", url) as answer,
    ):
        if answer.status_code != httpx.codes.OK:
            raise IssuerAwayError(f"it answered {answer.status_code}")
        # As it came: what was packed could unpack to any size.
        for piece in answer.iter_raw():
            size += len(piece)
            if size > KEYS_BYTES_MAX:
                raise IssuerAwayError(f"its answer has more than {KEYS_BYTES_MAX} bytes")
            if time.monotonic() > until:
                raise IssuerAwayError(f"its answer takes more than {FETCH_SECONDS_MAX:g} s")
            pieces.append(piece)
    return b"".join(pieces)


def _read_keys(text: bytes) -> dict[str, jwt.PyJWK]:
    """Return the keys of a key set (RFC 7517) that tokens may be signed with, by name."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise IssuerAwayError("its answer is no JSON") from None
    listed = told.get("keys") if isinstance(told, dict) else None
    found = {}
    for one in listed[:KEYS_MAX] if isinstance(listed, list) else ():
        key = _read_key(one)
        if key is not None and key.key_id:
            found[key.key_id] = key
    if not found:
        raise IssuerAwayError("its answer has no key for signatures")
    return found


def _read_key(told: Any) -> jwt.PyJWK | None:
    """Return one key, or None where it is not for signatures that we accept."""
    if not isinstance(told, dict) or not isinstance(told.get("kid"), str) or "d" in told:
        return None
    algorithm = _algorithm_of(told)
    if algorithm is None or told.get("alg", algorithm) != algorithm:
        return None
    if told.get("use", "sig") != "sig":
        return None
    try:
        return jwt.PyJWK.from_dict(told, algorithm)
    except jwt.PyJWTError:
        return None


def _algorithm_of(told: dict[str, Any]) -> str | None:
    if told.get("kty") == "RSA":
        return "RS256"
    return "ES256" if told.get("kty") == "EC" and told.get("crv") == "P-256" else None
