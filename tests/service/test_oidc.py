"""Tokens of a CI: what an issuer of ours signed is an identity, and nothing else is."""

from __future__ import annotations

import gzip
import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.responses import RedirectResponse, Response

from service.channels.oidc import (
    KEYS_BYTES_MAX,
    REFRESH_AFTER,
    REFRESH_PAUSE,
    STALE_MAX,
    TOKEN_LENGTH_MAX,
    IssuerAwayError,
    OidcIdentities,
    connect,
)
from service.core.errors import CredentialMissingError, CredentialRefusedError
from service.core.identity import CiSystem, Issuer
from service.core.oidc_settings import load_oidc_settings
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.oidc_issuer import (
    AUDIENCE,
    PIPELINE,
    REPOSITORY,
    OidcIssuer,
    decoded,
    ec_key,
    encoded,
    key_set,
    public_pem,
    published,
    rsa_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: P-256: a signature (r, s) is as good as (r, order - s).
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


@pytest.fixture(scope="module")
def server() -> Iterator[OidcIssuer]:
    with OidcIssuer() as server:
        yield server


@pytest.fixture
def issuer(server: OidcIssuer) -> OidcIssuer:
    server.keys = {"rsa-1": rsa_key("1"), "ec-1": ec_key("1")}
    server.answer, server.asked = None, 0
    return server


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


def ours(issuer: OidcIssuer) -> Issuer:
    return Issuer(
        system=CiSystem.GITHUB,
        url=issuer.url,
        audience=AUDIENCE,
        claims={"repository": REPOSITORY},
    )


@pytest.fixture
def identities(issuer: OidcIssuer, clock: StillClock) -> OidcIdentities:
    return OidcIdentities([ours(issuer)], clock=clock)


@pytest.mark.parametrize("kid", ["rsa-1", "ec-1"])
def test_what_the_issuer_signed_is_an_identity(
    issuer: OidcIssuer, identities: OidcIdentities, kid: str
) -> None:
    found = identities.check(issuer.sign(issuer.github(AT), kid=kid))

    assert (found.system, found.commit, found.branch) == (CiSystem.GITHUB, "b" * 40, "main")
    assert found.run == "github run 9001, attempt 1"
    assert found.expires_at == AT + timedelta(seconds=300)
    assert issuer.asked == 1


def test_the_settings_name_both_systems(issuer: OidcIssuer, clock: StillClock) -> None:
    both = connect(
        load_oidc_settings(
            audience=AUDIENCE,
            github_repository=REPOSITORY,
            github_issuer="https://github.example/_services/token",
            buildkite_pipeline=PIPELINE,
            buildkite_issuer=issuer.url,
        ),
        clock=clock,
    )
    assert both is not None
    found = both.check(issuer.sign(issuer.buildkite(AT)))
    job = "0184990a-477b-4fa8-9968-496074483cee"

    assert (found.system, found.commit, found.branch) == (CiSystem.BUILDKITE, "b" * 40, "main")
    assert found.run == f"buildkite build 17, job {job}"
    assert connect(load_oidc_settings(), clock=clock) is None


def altered(token: str, **changes: Any) -> str:
    """Return a token with other claims under the same signature."""
    header, claims, signature = token.split(".")
    told = {**json.loads(decoded(claims)), **changes}
    return f"{header}.{encoded(json.dumps(told).encode())}.{signature}"


FORGERIES: dict[str, Callable[[OidcIssuer, dict[str, Any]], str]] = {
    "unsigned": lambda one, claims: one.sign(claims, key=b"", alg="none"),
    "unsigned, written otherwise": lambda one, claims: one.sign(claims, key=b"", alg="nOnE"),
    "a shared secret": lambda one, claims: one.sign(claims, key=b"secret" * 8),
    # The public key, which everybody has, taken as a shared secret.
    "the public key as a secret": lambda one, claims: one.sign(
        claims, key=public_pem(one.keys["rsa-1"])
    ),
    "the public key as a secret, named RS256": lambda one, claims: one.sign(
        claims, key=public_pem(one.keys["rsa-1"]), alg="RS256"
    ),
    "another way of signing": lambda one, claims: one.sign(claims, alg="RS512"),
    "the way of the other key": lambda one, claims: one.sign(claims, alg="ES256"),
    "no way of signing": lambda one, claims: one.sign(claims, alg=None),
    "a key of somebody else": lambda one, claims: one.sign(claims, key=rsa_key("thief")),
    "the same name on the other curve": lambda one, claims: one.sign(claims, key=ec_key("thief")),
    "no name of a key": lambda one, claims: one.sign(claims, kid=None, key=rsa_key("1")),
    "a name that is none": lambda one, claims: one.sign(
        claims, kid="no such key", key=rsa_key("1")
    ),
    "its own key brought along": lambda one, claims: one.sign(
        claims, key=rsa_key("thief"), jwk=published("rsa-1", rsa_key("thief"))
    ),
    "something critical": lambda one, claims: one.sign(claims, crit=["exp"], exp=1),
    "a payload that is not there": lambda one, claims: one.sign(claims, b64=False, crit=["b64"]),
    "another commit under the signature": lambda one, claims: altered(
        one.sign(claims), sha="c" * 40
    ),
    "a signature that is cut": lambda one, claims: one.sign(claims)[:-8],
    "no signature": lambda one, claims: one.sign(claims).rpartition(".")[0] + ".",
    "two parts": lambda one, claims: one.sign(claims).rpartition(".")[0],
    "four parts": lambda one, claims: one.sign(claims) + ".e30",
    "another issuer": lambda one, claims: one.sign({**claims, "iss": "https://evil.example"}),
    "no issuer": lambda one, claims: one.sign({**claims, "iss": None}),
    "a list of issuers": lambda one, claims: one.sign({**claims, "iss": [one.url]}),
    "a list of claims": lambda one, _: one.sign(b"[]"),
    "claims that are no JSON": lambda one, _: one.sign(b"claims"),
    "an endless token": lambda one, claims: one.sign({**claims, "more": "x" * TOKEN_LENGTH_MAX}),
    "letters of elsewhere": lambda one, claims: one.sign(claims) + "ü",
    "nothing": lambda _, __: "..",
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_what_the_issuer_did_not_sign_is_nothing(
    issuer: OidcIssuer,
    identities: OidcIdentities,
    forgery: Callable[[OidcIssuer, dict[str, Any]], str],
) -> None:
    honest = issuer.github(AT)
    identities.check(issuer.sign(honest))
    with pytest.raises(CredentialMissingError):
        identities.check(forgery(issuer, honest))


def test_a_key_is_not_looked_for_where_the_token_says(
    issuer: OidcIssuer, identities: OidcIdentities
) -> None:
    with OidcIssuer() as thief:
        thief.keys = {"rsa-1": rsa_key("thief")}
        named = {"jku": f"{thief.url}/.well-known/jwks", "x5u": f"{thief.url}/cert"}
        token = issuer.sign(issuer.github(AT), key=rsa_key("thief"), **named)
        with pytest.raises(CredentialMissingError, match="signature is not its issuer's"):
            identities.check(token)
        # Nor is it asked because a token claims to be its own.
        with pytest.raises(CredentialMissingError, match="no token of a CI that this service"):
            identities.check(thief.sign(thief.github(AT)))
        assert thief.asked == 0


def test_a_key_that_is_too_short_signs_nothing(
    issuer: OidcIssuer, identities: OidcIdentities
) -> None:
    issuer.keys["short"] = rsa_key("short", 1024)
    with pytest.raises(CredentialMissingError):
        identities.check(issuer.sign(issuer.github(AT), kid="short"))


def test_the_same_token_has_the_same_digest_whatever_its_signature_looks_like(
    issuer: OidcIssuer, identities: OidcIdentities
) -> None:
    token = issuer.sign(issuer.github(AT), kid="ec-1")
    signed, _, signature = token.rpartition(".")
    raw = decoded(signature)
    r, s = (int.from_bytes(half, "big") for half in (raw[:32], raw[32:]))
    mirrored = r.to_bytes(32, "big") + (ORDER - s).to_bytes(32, "big")

    twin = f"{signed}.{encoded(mirrored)}"
    assert twin != token
    assert identities.check(twin) == identities.check(token)
    other = issuer.sign(issuer.github(AT, jti="another"), kid="ec-1")
    assert identities.check(other).digest != identities.check(token).digest


# The keys of an issuer


def test_keys_are_fetched_once_and_again_after_an_hour(
    issuer: OidcIssuer, identities: OidcIdentities, clock: StillClock
) -> None:
    for _ in range(3):
        identities.check(issuer.sign(issuer.github(AT)))
    assert issuer.asked == 1

    clock.advance(REFRESH_AFTER)
    identities.check(issuer.sign(issuer.github(clock.now())))
    assert issuer.asked == 2


def test_a_new_key_is_found_and_made_up_names_ask_once_a_minute(
    issuer: OidcIssuer, identities: OidcIdentities, clock: StillClock
) -> None:
    identities.check(issuer.sign(issuer.github(AT)))
    issuer.keys["rsa-2"] = rsa_key("2")
    for number in range(5):
        with pytest.raises(CredentialMissingError, match="none that its issuer publishes"):
            token = issuer.sign(issuer.github(AT), kid=f"made-up-{number}", key=rsa_key("thief"))
            identities.check(token)
    assert issuer.asked == 1

    clock.advance(REFRESH_PAUSE)
    assert identities.check(issuer.sign(issuer.github(clock.now()), kid="rsa-2")).branch == "main"
    assert issuer.asked == 2


def test_a_key_that_was_taken_back_is_refused_after_an_hour(
    issuer: OidcIssuer, identities: OidcIdentities, clock: StillClock
) -> None:
    identities.check(issuer.sign(issuer.github(AT)))
    stolen = issuer.keys.pop("rsa-1")

    clock.advance(REFRESH_AFTER)
    with pytest.raises(CredentialMissingError, match="none that its issuer publishes"):
        identities.check(issuer.sign(issuer.github(clock.now()), kid="rsa-1", key=stolen))


def test_keys_go_on_for_a_day_while_the_issuer_is_away(
    issuer: OidcIssuer, identities: OidcIdentities, clock: StillClock
) -> None:
    identities.check(issuer.sign(issuer.github(AT)))
    issuer.answer = lambda: Response("away", 503)

    clock.advance(STALE_MAX)
    assert identities.check(issuer.sign(issuer.github(clock.now()))).branch == "main"
    # A key that may be new by now is no reason to say that there is none.
    with pytest.raises(IssuerAwayError, match="its last answer lacks the key"):
        identities.check(issuer.sign(issuer.github(clock.now()), kid="new", key=rsa_key("2")))
    clock.advance(timedelta(seconds=1))
    with pytest.raises(IssuerAwayError, match="cannot be had now"):
        identities.check(issuer.sign(issuer.github(clock.now())))
    issuer.answer = None
    clock.advance(REFRESH_PAUSE)
    assert identities.check(issuer.sign(issuer.github(clock.now()))).branch == "main"


UNFIT: dict[str, Callable[[], Response]] = {
    "an error": lambda: Response("no", 500),
    "nothing there": lambda: Response("no", 404),
    "elsewhere": lambda: RedirectResponse("/.well-known/jwks?again"),
    "no JSON": lambda: Response("<html>"),
    "no object": lambda: Response("[]"),
    "no list": lambda: Response('{"keys": {"kid": "rsa-1"}}'),
    "no keys": key_set,
    "nested beyond reason": lambda: Response("[" * 100_000),
    "longer than any key set": lambda: Response(b" " * (KEYS_BYTES_MAX + 1)),
    "packed": lambda: Response(
        gzip.compress(bytes(key_set(published("rsa-1", rsa_key("1"))).body)),
        headers={"Content-Encoding": "gzip"},
    ),
    "a key without a name": lambda: key_set({**published("rsa-1", rsa_key("1")), "kid": None}),
    "a key that is a number": lambda: key_set(7, "rsa-1", None),
    "a key for secrets": lambda: key_set({**published("rsa-1", rsa_key("1")), "use": "enc"}),
    "a shared secret": lambda: key_set({"kid": "rsa-1", "kty": "oct", "k": encoded(b"k" * 32)}),
    "a key for another way": lambda: key_set({**published("rsa-1", rsa_key("1")), "alg": "PS256"}),
    "half a key": lambda: key_set({"kid": "rsa-1", "kty": "RSA", "e": "AQAB"}),
    "a key of numbers": lambda: key_set({"kid": "rsa-1", "kty": "RSA", "e": 3, "n": 5}),
    "another curve": lambda: key_set(published("rsa-1", ec_key("1", ec.SECP384R1))),
    "a point beside the curve": lambda: key_set({**published("rsa-1", ec_key("1")), "y": "AAAA"}),
    "a private key": lambda: key_set({**published("rsa-1", rsa_key("1")), "d": "AQAB"}),
}


@pytest.mark.parametrize("answer", UNFIT.values(), ids=UNFIT.keys())
def test_an_answer_that_has_no_fit_key_is_as_good_as_none(
    issuer: OidcIssuer, identities: OidcIdentities, answer: Callable[[], Response]
) -> None:
    issuer.answer = answer
    with pytest.raises(IssuerAwayError) as caught:
        identities.check(issuer.sign(issuer.github(AT)))
    assert caught.value.status == 503
    assert issuer.asked == 1


def test_an_issuer_that_nobody_answers_for_is_away(clock: StillClock) -> None:
    with OidcIssuer() as gone:
        token = gone.sign(gone.github(AT))
        identities = OidcIdentities([ours(gone)], clock=clock)
    with pytest.raises(IssuerAwayError):
        identities.check(token)


def test_whoever_comes_while_keys_are_fetched_waits_for_them(
    issuer: OidcIssuer, identities: OidcIdentities
) -> None:
    def take_a_while() -> Response:
        time.sleep(0.2)
        return key_set(published("rsa-1", rsa_key("1")))

    issuer.answer = take_a_while
    token = issuer.sign(issuer.github(AT))
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(identities.check, [token] * 4))
    assert len(set(found)) == 1
    assert issuer.asked == 1


def test_one_unfit_key_does_not_spoil_the_others(
    issuer: OidcIssuer, identities: OidcIdentities
) -> None:
    issuer.answer = lambda: key_set(
        {"kid": "odd", "kty": ["RSA"]}, None, published("rsa-1", rsa_key("1"))
    )
    assert identities.check(issuer.sign(issuer.github(AT))).branch == "main"


def test_a_good_token_of_another_repository_is_refused_and_not_unknown(
    issuer: OidcIssuer, identities: OidcIdentities
) -> None:
    with pytest.raises(CredentialRefusedError, match="'evil/mysql'; this service takes"):
        identities.check(issuer.sign(issuer.github(AT, repository="evil/mysql")))
