"""Identities of CI jobs: who issues their tokens, what a token has to say, and what it is good for.

Claims come in whose signature was checked elsewhere; an identity goes out, or an error that says
what is not as it should be. Keys, sockets and rows it must not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from results.job import JobOrder
from service.core.errors import CredentialMissingError, CredentialRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.core.model import Job

#: How far two clocks may be apart; RFC 7519 (section 4.1.4) allows a few minutes at most.
LEEWAY: Final = timedelta(seconds=30)
#: Tokens of both systems are good for minutes where nobody asks for more. One that is good for
#: longer than this is a credential to be stolen and not the identity of a job.
LIFETIME_MAX: Final = timedelta(hours=1)
#: Events on GitHub whose jobs run what somebody with write access pushed. Everything about pull
#: requests, comments and other workflows is left out: `pull_request_target`, `issue_comment` and
#: `workflow_run` name the default branch in their tokens, and yet a stranger can cause them.
GITHUB_EVENTS: Final = ("push", "schedule", "workflow_dispatch", "repository_dispatch")
_BRANCHES: Final = "refs/heads/"
_HASH: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_WORD: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
#: Characters of a claim that an error quotes.
_QUOTED_MAX: Final = 200
#: The year 2242: times beyond it are nobody's.
_TIME_MAX: Final = 2**33


class CiSystem(StrEnum):
    """A CI whose tokens we can read."""

    GITHUB = "github"
    BUILDKITE = "buildkite"


@dataclass(frozen=True, kw_only=True)
class Issuer:
    """Who issues the tokens of one CI, and what they have to say."""

    system: CiSystem
    #: As tokens name it, without a slash at the end.
    url: str
    #: Whom a token has to be for: us, and nobody else besides.
    audience: str
    #: Claims that have to be exactly so: the repository, the pipeline.
    claims: Mapping[str, str]

    @property
    def keys_url(self) -> str:
        """Where it publishes its keys; both systems do it there."""
        return f"{self.url}/.well-known/jwks"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A job of a CI, as the issuer of its token swears."""

    system: CiSystem
    #: The commit that the job was started for.
    commit: str
    branch: str
    #: For people: "github run 17, attempt 1".
    run: str
    #: Digest over what was signed: the same token always has the same.
    digest: str
    expires_at: datetime
    #: Id of its run on GitHub, number of its build on Buildkite; empty where the token has none.
    run_id: str = ""


class Identities(Protocol):
    """Tells whose token it is."""

    def check(self, text: str) -> Identity:
        """Return the identity that a token proves.

        Raises:
            CredentialMissingError: It is not signed by an issuer of ours, not for us, or too old.
            CredentialRefusedError: It is good, and not of what the settings name.
            TransientError: The issuer's keys cannot be had now.
        """
        ...


def is_identity_token(text: str) -> bool:
    """Whether a credential has the form of a signed token; those that we make have no dot."""
    return text.count(".") == 2  # noqa: PLR2004  header, claims, signature


def identity_of(
    claims: Mapping[str, Any], issuer: Issuer, *, digest: str, at: datetime
) -> Identity:
    """Return the identity that the claims of a token prove; its signature is the issuer's.

    Raises:
        CredentialMissingError: It is of another issuer, not for us, or not good now.
        CredentialRefusedError: It is of another repository or pipeline, or of a build that brings
            nothing here.
    """
    if claims.get("iss") != issuer.url:
        raise CredentialMissingError("the token is of another issuer than the one that signed it")
    expires_at = _expiry(claims, at)
    # A token for somebody else too could be sent on to us by them.
    if claims.get("aud") not in (issuer.audience, [issuer.audience]):
        raise CredentialMissingError(
            f"the token is not for this service alone: ask your CI for the audience "
            f"{issuer.audience!r}"
        )
    for name, expected in issuer.claims.items():
        if claims.get(name) != expected:
            raise CredentialRefusedError(
                f"the token's {name} is {_quoted(claims.get(name))}; this service takes "
                f"{expected!r}"
            )
    commit, branch = _READERS[issuer.system](claims)
    if not _HASH.fullmatch(commit):
        raise CredentialRefusedError(f"the token is of {_quoted(commit)}, which is no commit")
    return Identity(
        system=issuer.system,
        commit=commit,
        branch=branch,
        run=_run(claims, issuer.system),
        digest=digest,
        expires_at=expires_at,
        run_id=_run_id(claims, issuer.system),
    )


def check_may_submit(identity: Identity, job: Job) -> None:
    """Check that a job of the CI may bring the run of a job of ours.

    Raises:
        CredentialRefusedError: It was started for another commit or branch.
    """
    branch = JobOrder.model_validate_json(job.order).branch
    pairs = (("commit", identity.commit, job.sha), ("branch", identity.branch, branch))
    for name, found, expected in pairs:
        if found != expected:
            raise CredentialRefusedError(
                f"the token is of the {name} {_quoted(found)}; job {job.id} is of {expected!r}"
            )


def _expiry(claims: Mapping[str, Any], at: datetime) -> datetime:
    """Return when a token ends that is good now."""
    issued_at, expires_at = _time(claims, "iat"), _time(claims, "exp")
    begins_at = _time(claims, "nbf") if claims.get("nbf") is not None else issued_at
    if at >= expires_at + LEEWAY:
        raise CredentialMissingError("the token is past its time: ask your CI for a new one")
    if max(issued_at, begins_at) > at + LEEWAY:
        raise CredentialMissingError("the token is not good yet: clocks are too far apart")
    if expires_at - issued_at > LIFETIME_MAX:
        raise CredentialMissingError(
            f"the token is good for longer than {LIFETIME_MAX}: ask your CI for a shorter one"
        )
    return expires_at


def _time(claims: Mapping[str, Any], name: str) -> datetime:
    found = claims.get(name)
    # A boolean is a number in Python, and nothing compares with what is not a number.
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found <= _TIME_MAX:
        raise CredentialMissingError(f"the token's {name} is no time")
    return datetime.fromtimestamp(found, tz=UTC)


def _github(claims: Mapping[str, Any]) -> tuple[str, str]:
    """Return commit and branch of a job of GitHub Actions."""
    event, ref = _text(claims, "event_name"), _text(claims, "ref")
    if event not in GITHUB_EVENTS:
        raise CredentialRefusedError(
            f"a job of the event {_quoted(event)} brings nothing here; those of "
            f"{', '.join(GITHUB_EVENTS)} do"
        )
    if not ref.startswith(_BRANCHES):
        raise CredentialRefusedError(f"the token's ref is {_quoted(ref)}, which is no branch")
    return _text(claims, "sha"), ref.removeprefix(_BRANCHES)


def _buildkite(claims: Mapping[str, Any]) -> tuple[str, str]:
    """Return commit and branch of a job of Buildkite.

    A build of a stranger's branch may carry the name of ours. Its commit is its own all the same.
    """
    return _text(claims, "build_commit"), _text(claims, "build_branch")


_READERS: Final = {CiSystem.GITHUB: _github, CiSystem.BUILDKITE: _buildkite}
_RUN_CLAIMS: Final = {
    CiSystem.GITHUB: (("run", "run_id"), ("attempt", "run_attempt")),
    CiSystem.BUILDKITE: (("build", "build_number"), ("job", "job_id")),
}


def _run(claims: Mapping[str, Any], system: CiSystem) -> str:
    words = []
    for word, name in _RUN_CLAIMS[system]:
        value = str(claims.get(name))
        words.append(f"{word} {value if _WORD.fullmatch(value) else '?'}")
    return f"{system.value} {', '.join(words)}"


def _run_id(claims: Mapping[str, Any], system: CiSystem) -> str:
    """Return which run of its CI a job is of; a job that was started again is of the same one."""
    (_, name), _ = _RUN_CLAIMS[system]
    value = str(claims.get(name, ""))
    return value if _WORD.fullmatch(value) else ""


def _text(claims: Mapping[str, Any], name: str) -> str:
    found = claims.get(name)
    if not isinstance(found, str):
        raise CredentialRefusedError(f"the token's {name} is {_quoted(found)}, which is no text")
    return found


def _quoted(value: Any) -> str:
    return repr(value)[:_QUOTED_MAX]
