"""Settings of the service: with `oidc_settings` the only place in it that reads the environment.

Arguments come first, then `FORKWATCH_...` variables, then the defaults; a wrong value is an error
that names the variable and what it may be. Every setting is described in its own words here.
"""

from __future__ import annotations

import ipaddress
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ByteSize, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from results.log_lines import LogForm
from service.core.errors import SettingsError

PREFIX: Final = "FORKWATCH_"
#: A century: more days than that are a slip of the hand.
DAYS_MAX: Final = 36_500
#: A wrong, missing or doubled letter or two; `FORKWATCH_HOME_DIR` is nobody's misspelt `_HOME`.
_LIKENESS: Final = 0.92
#: Addresses that mean "every interface"; a runner on this machine uses the loopback instead.
ANY_ADDRESS: Final = ("0.0.0.0", "::", "")  # noqa: S104  compared with, not listened on
_SECRETS: Final = (SecretStr, SecretStr | None)
#: Settings that are secrets, lead to one, or hold one.
_SERVICE_ONLY: Final = (
    "buildkite_webhook_secret",
    "database_url",
    "dbos_url",
    "dispatch_buildkite_token",
    "github_app_id",
    "github_private_key_file",
    "github_token",
    "github_webhook_secret",
    "slack_signing_secret",
    "slack_token",
)


class Settings(BaseSettings):
    """Everything the operator can choose."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    home: Path = Field(
        default=Path("~/.local/share/forkwatch"),
        description="Folder for the databases, jobs and alert files.",
    )
    database_url: str | None = Field(
        default=None,
        description="SQLAlchemy URL of the service's data, sqlite or postgresql; "
        "service.sqlite in the home folder where not set.",
    )
    dbos_url: str | None = Field(
        default=None,
        description="URL of the durable flows' own tables; the same PostgreSQL database as the "
        "data (in the schema `dbos`), or flows.sqlite in the home folder.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8642, ge=1, le=65535, description="Port to listen on.")
    repository: Path | None = Field(
        default=None, description="The watched git repository on this machine."
    )
    suite: str = Field(default="commit", description="Suite of the plan that each commit runs.")
    host_class: str = Field(
        default="default",
        min_length=1,
        max_length=64,
        description="Class of the machine that measures; one measurement at a time in each.",
    )
    poll_seconds: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        description="Seconds between looks at the watched branch, and at a job nobody reports on.",
    )
    backfill_commits: int = Field(
        default=20, ge=1, le=500, description="Past commits measured when a fork is first seen."
    )
    waiting_commits_max: int = Field(
        default=50,
        ge=1,
        le=500,
        description="Commits that may wait to be measured; of more, some in between are skipped.",
    )
    bisect_automatically: bool = Field(
        default=False,
        description="Whether an alert whose range has more than one commit begins a bisect by "
        "itself.",
    )
    bisect_builds_ahead: int = Field(
        default=0,
        ge=0,
        le=4,
        description="Builds of commits that a bisect will probably want next, which other machines "
        "of the host class may do at once while one of them measures; 0 for none.",
    )
    runner_attempts_max: int = Field(
        default=3, ge=1, le=20, description="Runners started for one job before it is given up."
    )
    replica: str = Field(
        default="service",
        min_length=1,
        max_length=64,
        description="Name of this process among several; the same after every restart.",
    )
    job_timeout_minutes: int = Field(
        default=360,
        ge=1,
        le=7 * 24 * 60,
        description="Longest time one job may take, builds included.",
    )
    aa_check_days: int = Field(
        default=0,
        ge=0,
        le=DAYS_MAX,
        description="Days from one A/A check of the host class to the next; 0 for none.",
    )
    public_read: bool = Field(
        default=True,
        description="Whether pages and API may be read without a token; alerts are changed with "
        "one only, whatever this says.",
    )
    public_url: str | None = Field(
        default=None,
        max_length=500,
        description="Address of the pages in comments, issues, messages and digests, such as "
        "https://perf.example.org; the one listened on where not set.",
    )
    trusted_proxies: str = Field(
        default="127.0.0.1,::1",
        max_length=2_000,
        description="Addresses and networks of proxies whose X-Forwarded-For is believed; empty "
        "for none.",
    )
    requests_per_minute: int = Field(
        default=600,
        ge=0,
        le=1_000_000,
        description="Requests that change or cost something, for each address and each token; 0 "
        "for no limit.",
    )
    log_format: LogForm = Field(
        default="text", description="Form of the log's lines on stderr: text or json."
    )
    disk_free_min: ByteSize = Field(
        default=ByteSize(2**30),
        ge=0,
        description="Space left on the home folder's disk below which the service is not ready.",
    )
    keep_seconds_days: int = Field(
        default=0,
        ge=0,
        le=DAYS_MAX,
        description="Days for which throughput by the second is kept in run documents; 0 for ever.",
    )
    keep_samples_days: int = Field(
        default=0,
        ge=0,
        le=DAYS_MAX,
        description="Days for which every slice is a sample of its own; then one for each start "
        "stays. 0 for ever.",
    )
    github_repository: str | None = Field(
        default=None,
        # Neither part can lead out of its segment of a path.
        pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{0,99}[A-Za-z0-9_-]$",
        description="The watched repository on GitHub as owner/name; nothing is told there where "
        "not set.",
    )
    github_app_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9.]{1,64}$",
        description="App id or client id of the GitHub App that speaks for forkwatch.",
    )
    github_private_key_file: Path | None = Field(
        default=None, description="File with the private key of the GitHub App, in PEM."
    )
    github_token: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="Token to use in place of an App: commit statuses instead of checks.",
    )
    github_api_url: str = Field(
        default="https://api.github.com",
        description="Base address of the API; another one for GitHub Enterprise Server.",
    )
    github_commit_checks: bool = Field(
        default=True,
        description="Whether each commit of the branch has a check, or with a token a status; "
        "heads of pull requests always have one.",
    )
    github_webhook_secret: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="Secret that signs GitHub's webhooks; without one, none are accepted.",
    )
    buildkite_webhook_secret: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="Token of Buildkite's webhooks, which signs them; without one, none are "
        "accepted.",
    )
    slack_token: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="Token of the Slack app's bot, xoxb-...; nothing is told there where not set.",
    )
    slack_channel: str | None = Field(
        default=None,
        # Slack refuses names where messages are looked for.
        pattern=r"^[CG][A-Z0-9]{2,20}$",
        description="Id of the Slack channel that hears of alerts, such as C0123456789.",
    )
    slack_signing_secret: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="Secret that signs what Slack sends; without one, no button works.",
    )
    slack_writers: str = Field(
        default="",
        pattern=r"^([UW][A-Z0-9]{2,20}(, ?|$))*$",
        max_length=10_000,
        description="Ids of the people on Slack whose buttons count, such as U0123ABCD,U0456EFGH.",
    )
    slack_api_url: str = Field(
        default="https://slack.com/api/",
        description="Base address of Slack's API; another one for GovSlack.",
    )

    digest_time_zone: str = Field(
        default="UTC", description="Time zone of the weekly digest's weeks."
    )
    digest_against: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{7,64}$",
        description="Commit that the weekly digest compares with; the first measured one where "
        "not set.",
    )

    @field_validator("public_url")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None:
            _check_address(value)
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        for name in _listed(value):
            _check_network(name)
        return value

    @property
    def home_folder(self) -> Path:
        """The home as an absolute path."""
        return self.home.expanduser().resolve()

    @property
    def data_url(self) -> str:
        """URL of the service's own data."""
        return self.database_url or f"sqlite:///{self.home_folder / 'service.sqlite'}"

    @property
    def flows_url(self) -> str:
        """URL of the durable flows' tables."""
        if self.dbos_url:
            return self.dbos_url
        if make_url(self.data_url).get_backend_name() == "sqlite":
            return f"sqlite:///{self.home_folder / 'flows.sqlite'}"
        return self.data_url

    @property
    def base_url(self) -> str:
        """Where runners on this machine find the service."""
        host = "127.0.0.1" if self.host in ANY_ADDRESS else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def pages_url(self) -> str:
        """Where people find the pages, as comments, issues, messages and digests say it."""
        return self.public_url or self.base_url

    @property
    def trusted_proxy_names(self) -> tuple[str, ...]:
        """Addresses and networks of proxies that are believed."""
        return _listed(self.trusted_proxies)

    @property
    def secret_values(self) -> tuple[str, ...]:
        """The secrets among these settings, to keep them out of logs."""
        fields = [getattr(self, name) for name in type(self).model_fields]
        hidden = [field.get_secret_value() for field in fields if isinstance(field, SecretStr)]
        urls = [make_url(url) for url in (self.database_url, self.dbos_url) if url]
        return (*hidden, *(str(url.password) for url in urls if url.password))

    @property
    def slack_writer_ids(self) -> frozenset[str]:
        """The people on Slack whose buttons count."""
        return frozenset(_listed(self.slack_writers))


def load_settings(**chosen: Any) -> Settings:
    """Return the settings; `chosen` (from a command line) beats the environment.

    Raises:
        SettingsError: A value is wrong; one line per fault, each saying what would be right.
    """
    try:
        settings = Settings(**{name: value for name, value in chosen.items() if value is not None})
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(fault) for fault in error.errors())) from error
    for name in ("database_url", "dbos_url"):
        _check_url(name, getattr(settings, name))
    return settings


def runner_environment() -> dict[str, str]:
    """Return this process' environment without what is none of a runner's business.

    A runner builds and starts code from anybody; it holds no secret but its job's credential.
    """
    ours = {f"{PREFIX}{name}".upper() for name in _SERVICE_ONLY}
    return {name: value for name, value in os.environ.items() if name.upper() not in ours}  # noqa: TID251  this is a settings module


def misspelt() -> list[str]:
    """Return a line for each variable of this process that is almost the name of a setting.

    Only almost: runners have settings of the same prefix, which are not known here.
    """
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    names = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)  # noqa: TID251  this is a settings module
    close = {name: get_close_matches(name, known, n=1, cutoff=_LIKENESS) for name in names}
    return [
        f"{name} is no setting; did you mean {found[0]}?" for name, found in close.items() if found
    ]


def _explain(fault: Any) -> str:
    """Return one fault as a line that says what to do."""
    name = ".".join(str(step) for step in fault["loc"])
    field = Settings.model_fields.get(name)
    meaning = f" ({field.description})" if field and field.description else ""
    # A secret with a fault in it is a secret still.
    value = "..." if field and field.annotation in _SECRETS else repr(fault["input"])
    message = fault["msg"].removeprefix("Value error, ")
    return f"{PREFIX}{name.upper()}={value}: {message}{meaning}"


def _listed(text: str) -> tuple[str, ...]:
    """Return what is listed with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    whole = parts.scheme in {"http", "https"} and parts.hostname and parts.username is None
    more = parts.path or parts.query or parts.fragment or any(map(str.isspace, url))
    # What does not come back as it was had something that was lost on the way, such as a lone `?`.
    if not whole or more or parts.port == 0 or parts.geturl() != url:
        raise ValueError("write scheme, host and port alone, such as https://perf.example.org")


def _check_network(name: str) -> None:
    try:
        ipaddress.ip_network(name)
    except ValueError:
        raise ValueError(
            f"{name!r} is no address or network; write such as 127.0.0.1,10.0.0.0/8"
        ) from None


def _check_url(name: str, url: str | None) -> None:
    if url is None:
        return
    example = "sqlite:////folder/file.sqlite or postgresql://user@host/database"
    try:
        backend = make_url(url).get_backend_name()
    except ArgumentError:
        raise SettingsError(f"{PREFIX}{name.upper()} is no URL; write {example}") from None
    if backend not in {"sqlite", "postgresql", "postgres"}:
        raise SettingsError(f"{PREFIX}{name.upper()} names {backend!r}; write {example}")
