"""Buildkite's webhooks: what it says unasked, once it is sure that Buildkite said it.

Headers and a raw body come in; the end of a build goes out, or why there is nothing to do. Nothing
in a payload is trusted beyond its type and length, and fields and events that are not known here
are nobody's fault. What the end of a build leads to is for the flows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from service.core.errors import BadDocumentError, CredentialMissingError

#: Buildkite names no limit. A build's meta data and the words of its commit are some kilobytes.
BODY_BYTES_MAX: Final = 1024 * 1024
#: A signature is good for so long, either way: clocks differ by less, and it is made anew for each
#: attempt to deliver.
AGE_SECONDS_MAX: Final = 300
#: States in which no more comes of a build. `blocked` is none: somebody may unblock it.
ENDED_STATES: Final = frozenset({"passed", "failed", "canceled", "skipped", "not_run"})
_SIGNATURE: Final = re.compile(r"timestamp=([0-9]{1,10}),signature=([0-9a-f]{64})")
#: Events after which nothing more comes of a build.
_ENDS: Final = frozenset({"build.finished", "build.skipped"})
_PIPELINE_URL: Final = re.compile(r"/organizations/([A-Za-z0-9-]{1,100})/pipelines/")
_SLUG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
#: Numbers of builds, in a column of 32 bits.
_NUMBER_MAX: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class BuildEnded:
    """No more comes of a build."""

    #: As organization/pipeline.
    pipeline: str
    number: int
    #: One of `ENDED_STATES`.
    state: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class NothingToDo:
    """Nothing follows from it."""

    why: str


def check_form(signature: str, token: str) -> None:
    """Return quietly if headers look like Buildkite's at all, before any body is read.

    Args:
        signature: The header `X-Buildkite-Signature`; empty where there is none.
        token: The header `X-Buildkite-Token`, which is sent in its place.

    Raises:
        CredentialMissingError: They do not.
    """
    if not _SIGNATURE.fullmatch(signature) and (signature or not token):
        raise CredentialMissingError(
            "X-Buildkite-Signature or X-Buildkite-Token is missing or not Buildkite's"
        )


def verify(body: bytes, *, signature: str, token: str, secret: str, now: datetime) -> None:
    """Return quietly if whoever knows the secret sent this body; takes as long for any other.

    Where there is a signature it alone counts, for it says when and what was sent.

    Args:
        body: As it came, before any decoding.
        signature: As above: `timestamp=SECONDS,signature=HEX` over time and body.
        token: As above: the secret itself.
        secret: What Buildkite calls the webhook's token.
        now: The time.

    Raises:
        CredentialMissingError: Somebody else did, or nobody, or it is too old.
    """
    check_form(signature, token)
    found = _SIGNATURE.fullmatch(signature)
    if found is None:
        if not hmac.compare_digest(secret.encode(), token.encode(errors="replace")):
            raise CredentialMissingError("X-Buildkite-Token is not ours")
        return
    signed = found[1].encode() + b"." + body
    wanted = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(wanted.encode(), found[2].encode()):
        raise CredentialMissingError(
            "X-Buildkite-Signature is not of our secret: is it the same on both sides?"
        )
    if abs(now.timestamp() - int(found[1])) > AGE_SECONDS_MAX:
        raise CredentialMissingError("the signature is too old, or from the future")


def read_news(body: bytes) -> BuildEnded | NothingToDo:
    """Return what a body says that Buildkite sent.

    The event is the body's own: the header that names it too is not signed.

    Args:
        body: JSON.

    Raises:
        BadDocumentError: The body is not JSON.
    """
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadDocumentError("the body is not JSON") from error
    event = _at(payload, "event")
    if event == "ping":
        return NothingToDo(why="pong")
    if event == "job.finished":
        # Its step may have it retried, and the step that uploads the others finishes as well.
        return NothingToDo(why="what comes of a job is known when its build ends")
    if not isinstance(event, str) or event not in _ENDS:
        return NothingToDo(why="nothing follows from this event")
    pipeline = _pipeline(payload)
    if pipeline is None:
        return NothingToDo(why="it does not say which pipeline it is about")
    if _at(payload, "build", "blocked") is True:
        return NothingToDo(why="the build is blocked and goes on when somebody unblocks it")
    return _ended(payload, pipeline)


def _ended(payload: Any, pipeline: str) -> BuildEnded | NothingToDo:
    number, state = _at(payload, "build", "number"), _at(payload, "build", "state")
    # True is an int, too.
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= _NUMBER_MAX:
        return NothingToDo(why="its build.number is no number of a build")
    if not isinstance(state, str) or state not in ENDED_STATES:
        return NothingToDo(why="its build.state is none in which a build has ended")
    at = _when(_at(payload, "build", "finished_at")) or _when(_at(payload, "build", "created_at"))
    if at is None:
        return NothingToDo(why="its build has no time")
    return BuildEnded(pipeline=pipeline, number=number, state=state, at=at)


def _pipeline(payload: Any) -> str | None:
    """Return organization/pipeline, None where a payload does not say it."""
    slug = _at(payload, "pipeline", "slug")
    if not isinstance(slug, str) or not _SLUG.fullmatch(slug):
        return None
    for named in (_at(payload, "organization", "slug"), _organization(payload)):
        if isinstance(named, str) and _SLUG.fullmatch(named):
            return f"{named}/{slug}"
    return None


def _organization(payload: Any) -> str | None:
    """Return the organization in the address of the pipeline, or of the build."""
    for part in ("pipeline", "build"):
        url = _at(payload, part, "url")
        found = _PIPELINE_URL.search(url) if isinstance(url, str) else None
        if found:
            return found[1]
    return None


def _at(value: Any, *path: str) -> Any:
    """Return what lies at a path of keys, None where it ends early."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _when(value: Any) -> datetime | None:
    """Return a time as Buildkite writes it: ISO 8601, or `2026-11-03 06:30:00 UTC`."""
    if not isinstance(value, str):
        return None
    text = f"{value.removesuffix(' UTC')}+00:00" if value.endswith(" UTC") else value
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
