"""Settings of identities that a CI proves: whose tokens are accepted, and for what.

Read from `FORKWATCH_OIDC_...` variables; a wrong value is an error that names the variable and what
it may be. None of them is a secret: an issuer's keys are public.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.core.errors import SettingsError
from service.core.identity import CiSystem, Issuer

PREFIX: Final = "FORKWATCH_OIDC_"
#: Where keys may come from unencrypted: a double on this machine.
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class OidcSettings(BaseSettings):
    """Everything the operator can choose; without an audience no token of a CI is accepted."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    audience: str | None = Field(
        default=None,
        pattern=r"^\S{1,200}$",
        description="What tokens of a CI have to be for, such as this service's address; no such "
        "token is accepted where not set.",
    )
    github_repository: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}$",
        description="Repository on GitHub whose Actions may bring runs, as owner/name and in "
        "GitHub's own spelling.",
    )
    github_repository_id: str | None = Field(
        default=None,
        pattern=r"^[0-9]{1,20}$",
        description="Number of that repository: a name can be taken by somebody else once it is "
        "free, a number cannot.",
    )
    github_workflow: str | None = Field(
        default=None,
        pattern=r"^[^@\s/]+/[^@\s/]+/\.github/workflows/[^@\s]+@\S+$",
        max_length=500,
        description="The one workflow whose jobs may bring runs, such as "
        "owner/name/.github/workflows/forkwatch.yml@refs/heads/main; any of the repository where "
        "not set.",
    )
    github_issuer: str = Field(
        default="https://token.actions.githubusercontent.com",
        description="Issuer of GitHub's tokens; another one for GitHub Enterprise Server.",
    )
    buildkite_pipeline: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_-]{1,100}/[A-Za-z0-9_.-]{1,200}$",
        description="Pipeline on Buildkite whose jobs may bring runs, as organization/pipeline.",
    )
    buildkite_issuer: str = Field(
        default="https://agent.buildkite.com", description="Issuer of Buildkite's tokens."
    )

    @property
    def issuers(self) -> tuple[Issuer, ...]:
        """Whose tokens are accepted, and what they have to say."""
        found = []
        if self.audience and self.github_repository:
            claims = {
                "repository": self.github_repository,
                "repository_id": self.github_repository_id,
                "job_workflow_ref": self.github_workflow,
            }
            found.append(self._issuer(CiSystem.GITHUB, self.github_issuer, claims))
        if self.audience and self.buildkite_pipeline:
            organization, _, pipeline = self.buildkite_pipeline.partition("/")
            names: dict[str, str | None] = {
                "organization_slug": organization,
                "pipeline_slug": pipeline,
            }
            found.append(self._issuer(CiSystem.BUILDKITE, self.buildkite_issuer, names))
        return tuple(found)

    def _issuer(self, system: CiSystem, url: str, claims: dict[str, str | None]) -> Issuer:
        assert self.audience is not None, "without one there are no issuers"
        chosen = {name: value for name, value in claims.items() if value is not None}
        return Issuer(system=system, url=url, audience=self.audience, claims=chosen)


def load_oidc_settings(**chosen: Any) -> OidcSettings:
    """Return the settings; `chosen` beats the environment.

    Raises:
        SettingsError: A value is wrong, or they do not go together; says what would be right.
    """
    try:
        settings = OidcSettings(**chosen)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(fault) for fault in error.errors())) from error
    for name in ("github_issuer", "buildkite_issuer"):
        _check_issuer(name, getattr(settings, name))
    _check_together(settings)
    return settings


def _check_together(settings: OidcSettings) -> None:
    named = [
        name
        for name in ("github_repository", "buildkite_pipeline")
        if getattr(settings, name) is not None
    ]
    if settings.audience is None and named:
        raise SettingsError(
            f"{_variable(named[0])} needs {_variable('audience')}: the audience that your jobs ask "
            "their tokens for, such as this service's address"
        )
    if settings.audience is not None and not named:
        raise SettingsError(
            f"{_variable('audience')} needs {_variable('github_repository')} or "
            f"{_variable('buildkite_pipeline')}: whose jobs may bring runs"
        )
    for name in ("github_repository_id", "github_workflow"):
        if getattr(settings, name) is not None and settings.github_repository is None:
            raise SettingsError(f"{_variable(name)} needs {_variable('github_repository')}")


def _check_issuer(name: str, url: str) -> None:
    """Refuse an address whose keys somebody on the way could replace, or that is none."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    safe = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    bare = not (parts.query or parts.fragment or "@" in parts.netloc or url.endswith("/"))
    if not (host and safe and bare):
        raise SettingsError(
            f"{_variable(name)}={url!r} is no issuer: write https://host or https://host/path, "
            "without a slash at the end"
        )


def _explain(fault: Any) -> str:
    """Return one fault as a line that says what to do."""
    name = ".".join(str(step) for step in fault["loc"])
    field = OidcSettings.model_fields.get(name)
    meaning = f" ({field.description})" if field and field.description else ""
    return f"{_variable(name)}={fault['input']!r}: {fault['msg']}{meaning}"


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"
