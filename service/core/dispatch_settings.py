"""Settings of dispatch: which host classes have their machines in a CI, and how to ask it for runs.

Read from `FORKWATCH_DISPATCH...` variables; a wrong value is an error that names the variable and
what it may be. The token among them stays in the service.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.core.errors import SettingsError
from service.core.identity import CiSystem

PREFIX: Final = "FORKWATCH_"
HERE: Final = "this-machine"
#: What each word stands for; None is this machine.
_PLACES: Final[dict[str, CiSystem | None]] = {
    HERE: None,
    "github": CiSystem.GITHUB,
    "buildkite": CiSystem.BUILDKITE,
}
#: Where a token may travel unencrypted: to a double on this machine.
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class DispatchSettings(BaseSettings):
    """Everything the operator can choose; every job is done on this machine where nothing is."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    dispatch: str = Field(
        default=HERE,
        max_length=2_000,
        description="Who does the jobs: this-machine, github or buildkite; or by host class, such "
        "as small=github,large=buildkite, and this machine for any other.",
    )
    dispatch_wait_minutes: int = Field(
        default=120,
        ge=1,
        le=7 * 24 * 60,
        description="Longest time from asking a CI for a run until a runner comes for the order.",
    )
    dispatch_github_workflow: str = Field(
        default="forkwatch-job.yml",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\.ya?ml$",
        description="File of the workflow, below .github/workflows of the watched branch.",
    )
    dispatch_buildkite_pipeline: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_-]{1,100}/[A-Za-z0-9_.-]{1,200}$",
        description="Pipeline whose builds do jobs, as organization/pipeline.",
    )
    dispatch_buildkite_token: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="API access token of Buildkite that may read and write builds.",
    )
    dispatch_buildkite_api_url: str = Field(
        default="https://api.buildkite.com", description="Base address of Buildkite's REST API."
    )

    @field_validator("dispatch")
    @classmethod
    def _are_places(cls, value: str) -> str:
        _places(value)
        return value

    @property
    def systems(self) -> frozenset[CiSystem]:
        """The CIs that do jobs."""
        named, otherwise = _places(self.dispatch)
        return frozenset(place for place in (*named.values(), otherwise) if place is not None)

    def system_of(self, host_class: str) -> CiSystem | None:
        """Return the CI that does the jobs of a host class; None where this machine does."""
        named, otherwise = _places(self.dispatch)
        return named.get(host_class, otherwise)

    @property
    def secret_values(self) -> tuple[str, ...]:
        """The secrets among these settings, to keep them out of logs."""
        token = self.dispatch_buildkite_token
        return () if token is None else (token.get_secret_value(),)


def load_dispatch_settings(**chosen: Any) -> DispatchSettings:
    """Return the settings; `chosen` beats the environment.

    Raises:
        SettingsError: A value is wrong, or they do not go together; says what would be right.
    """
    try:
        settings = DispatchSettings(**chosen)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(fault) for fault in error.errors())) from error
    _check_together(settings)
    return settings


def _places(text: str) -> tuple[dict[str, CiSystem | None], CiSystem | None]:
    """Return the place of each host class that is named, and that of all others."""
    if text in _PLACES:
        return {}, _PLACES[text]
    named = {}
    for part in text.split(","):
        host_class, _, place = part.strip().partition("=")
        if not host_class or place not in _PLACES:
            raise ValueError(
                f"write {', '.join(_PLACES)}, or CLASS=SYSTEM with one of these for each host "
                "class, such as small=github,large=buildkite"
            )
        if host_class in named:
            raise ValueError(f"{host_class!r} is there twice")
        named[host_class] = _PLACES[place]
    return named, None


def _check_together(settings: DispatchSettings) -> None:
    if CiSystem.BUILDKITE in settings.systems:
        for name in ("dispatch_buildkite_pipeline", "dispatch_buildkite_token"):
            if getattr(settings, name) is None:
                raise SettingsError(f"FORKWATCH_DISPATCH=...buildkite needs {_variable(name)}")
    url = settings.dispatch_buildkite_api_url
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host, parts = None, urlsplit("")
    safe = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    if not safe or not host or url.endswith("/"):
        raise SettingsError(
            f"{_variable('dispatch_buildkite_api_url')}={url!r} is no https:// address without a "
            "slash at the end"
        )


def _explain(fault: Any) -> str:
    """Return one fault as a line that says what to do."""
    name = ".".join(str(step) for step in fault["loc"])
    field = DispatchSettings.model_fields.get(name)
    meaning = f" ({field.description})" if field and field.description else ""
    # A secret with a fault in it is a secret still.
    value = "..." if name == "dispatch_buildkite_token" else repr(fault["input"])
    message = fault["msg"].removeprefix("Value error, ")
    return f"{_variable(name)}={value}: {message}{meaning}"


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"
