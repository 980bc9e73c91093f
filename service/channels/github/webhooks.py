"""Webhooks: what GitHub says unasked, once it is sure that GitHub said it.

Headers and a raw body come in; small values of our own go out, or why there is nothing to do.
Nothing in a payload is trusted beyond its type and length, and fields, events and actions that are
not known here are nobody's fault. What the news leads to is for the flows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from service.channels.github.errors import SignatureError
from service.core.dispatching import RunEnded
from service.core.errors import BadDocumentError
from service.core.identity import CiSystem

if TYPE_CHECKING:
    from collections.abc import Callable

#: GitHub caps its payloads at 25 MB, and so sends none that is larger.
BODY_BYTES_MAX: Final = 25 * 1024 * 1024
_SIGNATURE: Final = re.compile(r"sha256=[0-9a-f]{64}")
_SHA: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ALERT_TOPIC: Final = re.compile(r"<!-- forkwatch alert:([A-Za-z0-9_.-]{1,200}) -->")
_BRANCH_REF: Final = "refs/heads/"
_LOGIN_LENGTH_MAX: Final = 100
_NAME_LENGTH_MAX: Final = 200
#: GitHub's own limit of a comment and of an issue's text.
_TEXT_LENGTH_MAX: Final = 65_536
#: What JSON's numbers hold exactly, and a column of 64 bits easily.
_NUMBER_MAX: Final = 2**53
#: Numbers of issues, in a column of 32 bits.
_ISSUE_MAX: Final = 2**31 - 1
#: Times in seconds since 1970 end with the year 2099; anything later is no time.
_SECONDS_MAX: Final = 4_102_444_800


@dataclass(frozen=True, kw_only=True)
class Push:
    """Somebody pushed to a branch."""

    branch: str
    at: datetime | None


@dataclass(frozen=True, kw_only=True)
class PullRequestChanged:
    """Something about a pull request is new; the values are as they were after that."""

    number: int
    #: As GitHub calls it: `opened`, `synchronize`, `closed`, ...
    action: str
    head_sha: str
    #: The head before a `synchronize`.
    before_sha: str | None
    base: str
    #: The head lies in another repository, or in one that is gone.
    outside: bool
    draft: bool
    open: bool
    at: datetime


@dataclass(frozen=True, kw_only=True)
class CommentMade:
    """Somebody wrote a comment on a pull request or an issue."""

    #: Of the pull request or issue.
    number: int
    #: Id of the comment.
    comment: int
    login: str
    text: str
    on_pull_request: bool
    #: Who opened the issue, and the alert that its first line names, if any: ours if it was us.
    issue_login: str
    alert: str | None
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Ignored:
    """There is nothing to do."""

    why: str


News = Push | PullRequestChanged | CommentMade | RunEnded


class _LackingError(Exception):
    """A payload has not what its event needs."""


def check_signature_form(signature: str) -> None:
    """Return quietly if a header looks like a signature at all, before any body is read.

    Raises:
        SignatureError: It does not.
    """
    if not _SIGNATURE.fullmatch(signature):
        raise SignatureError


def verify(body: bytes, signature: str, *, secret: str) -> None:
    """Return quietly if whoever knows the secret signed this body; takes as long for any other.

    Args:
        body: As it came, before any decoding.
        signature: The header `X-Hub-Signature-256`.
        secret: The webhook's secret.

    Raises:
        SignatureError: Somebody else did, or nobody.
    """
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    given = signature.encode(errors="replace")
    if not hmac.compare_digest(f"sha256={expected}".encode(), given):
        raise SignatureError


def read_news(event: str, body: bytes, *, repository: str) -> News | Ignored:
    """Return what a signed body says.

    Args:
        event: The header `X-GitHub-Event`.
        body: JSON.
        repository: The watched one as `owner/name`; news of others is nothing to us.

    Raises:
        BadDocumentError: The body is not JSON.
    """
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadDocumentError(
            "the body is not JSON; set the webhook's content type to application/json"
        ) from error
    found = _at(payload, "repository", "full_name")
    if not isinstance(found, str) or found.casefold() != repository.casefold():
        return Ignored(why="it is not about the watched repository")
    reader = _READERS.get(event)
    if reader is None:
        return Ignored(why="nothing follows from this event")
    try:
        return reader(payload)
    except _LackingError as error:
        return Ignored(why=str(error))


def _push(payload: Any) -> Push | Ignored:
    ref = _text(payload, "ref", length_max=len(_BRANCH_REF) + _NAME_LENGTH_MAX)
    if not ref.startswith(_BRANCH_REF):
        return Ignored(why="it is not a branch that was pushed to")
    return Push(
        branch=ref.removeprefix(_BRANCH_REF), at=_when(_at(payload, "repository", "pushed_at"))
    )


def _pull_request(payload: Any) -> PullRequestChanged:
    pull = _at(payload, "pull_request")
    ours = _text(payload, "repository", "full_name")
    head_repository = _at(pull, "head", "repo", "full_name")
    return PullRequestChanged(
        number=_number(pull, "number", most=_ISSUE_MAX),
        action=_text(payload, "action"),
        head_sha=_sha(_at(pull, "head", "sha")),
        before_sha=_sha_or_none(_at(payload, "before")),
        base=_text(pull, "base", "ref"),
        # A repository that is not named is one that we know nothing good of.
        outside=head_repository != ours,
        draft=_at(pull, "draft") is True,
        open=_text(pull, "state") == "open",
        at=_time(pull, "updated_at"),
    )


def _comment(payload: Any) -> CommentMade | Ignored:
    # Whoever may edit a comment need not be who wrote it: only what was written first is an order.
    if _at(payload, "action") != "created":
        return Ignored(why="only a new comment gives orders")
    issue, comment = _at(payload, "issue"), _at(payload, "comment")
    text = _at(comment, "body")
    if not isinstance(text, str):
        return Ignored(why="the comment has no text")
    return CommentMade(
        number=_number(issue, "number", most=_ISSUE_MAX),
        comment=_number(comment, "id"),
        login=_text(comment, "user", "login", length_max=_LOGIN_LENGTH_MAX),
        text=text[:_TEXT_LENGTH_MAX],
        on_pull_request=isinstance(_at(issue, "pull_request"), dict),
        issue_login=_text(issue, "user", "login", length_max=_LOGIN_LENGTH_MAX),
        alert=_alert_of(_at(issue, "body")),
        at=_time(comment, "created_at"),
    )


def _workflow_run(payload: Any) -> RunEnded | Ignored:
    if _at(payload, "action") != "completed":
        return Ignored(why="the run goes on")
    run = _at(payload, "workflow_run")
    return RunEnded(
        system=CiSystem.GITHUB,
        external_id=str(_number(run, "id")),
        how=_text(run, "conclusion"),
        at=_time(run, "updated_at"),
    )


_READERS: Final[dict[str, Callable[[Any], News | Ignored]]] = {
    "push": _push,
    "pull_request": _pull_request,
    "issue_comment": _comment,
    "workflow_run": _workflow_run,
}


def _alert_of(body: Any) -> str | None:
    """Return the alert that the first line of an issue names, as `markers` writes it."""
    if not isinstance(body, str):
        return None
    first = body[:_TEXT_LENGTH_MAX].replace("\r\n", "\n").partition("\n")[0].strip()
    found = _ALERT_TOPIC.fullmatch(first)
    return found[1] if found else None


def _at(value: Any, *path: str) -> Any:
    """Return what lies at a path of keys, None where it ends early."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _text(value: Any, *path: str, length_max: int = _NAME_LENGTH_MAX) -> str:
    found = _at(value, *path)
    if not isinstance(found, str) or not 0 < len(found) <= length_max or not found.isprintable():
        raise _LackingError(f"its {'.'.join(path)} is no text of its length")
    return found


def _number(value: Any, *path: str, most: int = _NUMBER_MAX) -> int:
    found = _at(value, *path)
    # True is an int, too.
    if not isinstance(found, int) or isinstance(found, bool) or not 0 < found <= most:
        raise _LackingError(f"its {'.'.join(path)} is no number of its size")
    return found


def _sha(value: Any) -> str:
    found = _sha_or_none(value)
    if found is None:
        raise _LackingError("its head is no commit")
    return found


def _sha_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and _SHA.fullmatch(value) else None


def _time(value: Any, *path: str) -> datetime:
    found = _when(_at(value, *path))
    if found is None:
        raise _LackingError(f"its {'.'.join(path)} is no time")
    return found


def _when(value: Any) -> datetime | None:
    """Return a time, which GitHub writes as ISO 8601 or in seconds since 1970."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _SECONDS_MAX:
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return found.astimezone(UTC) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
