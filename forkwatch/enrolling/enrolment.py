"""An enrolment: what somebody said of a host, checked, with every name that follows from it.

Everything that ends up in a unit, a script or a configuration is held to a narrow form here, so
that the texts need no quoting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from forkwatch.errors import EnrolError

#: As the composite action of `.github/` takes a host class.
_CLASS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
#: What useradd of Debian takes.
_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_PATH: Final = re.compile(r"/[A-Za-z0-9_./+-]*")
_SLUG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
#: An organisation, or an owner and a repository.
_NAMES: Final = (1, 2)
_HOST: Final = re.compile(r"[a-z0-9][a-z0-9.-]*[a-z0-9](:[0-9]{1,5})?")

#: Everything of an enrolment that is configuration lies here.
CONFIG: Final = Path("/etc/forkwatch")
UNITS: Final = Path("/etc/systemd/system")
#: While it is there, no new job is taken.
DRAINING: Final = CONFIG / "draining"
TUNE_UNIT: Final = "forkwatch-tune.service"


class System(StrEnum):
    """The CI system that gives the host its jobs."""

    GITHUB = "github"
    BUILDKITE = "buildkite"


@dataclass(frozen=True, kw_only=True)
class Enrolment:
    """What a host is enrolled as.

    Raises:
        EnrolError: An answer has another form than it may have.
    """

    system: System
    #: Host class: the label, or the queue, and what its results are filed under.
    host_class: str
    #: GitHub's repository or organisation; empty for Buildkite.
    url: str = ""
    #: Buildkite's organisation; empty for GitHub.
    org: str = ""
    user: str = "forkwatch"
    #: Where the user's runner keeps artifacts and datasets.
    home: Path = Path("/var/lib/forkwatch")
    #: The program that the units call.
    program: Path = Path("/usr/local/bin/forkwatch")
    #: GitHub's runner as it was unpacked, which no job may write to.
    runner: Path = Path("/opt/actions-runner")
    #: The buildkite-agent.
    agent: Path = Path("/usr/bin/buildkite-agent")

    def __post_init__(self) -> None:
        """Refuse what a text would have to quote."""
        _need(_CLASS, self.host_class, "--class", "letters, digits, _ . and -, at most 64")
        _need(_USER, self.user, "--user", "the name of a user, such as forkwatch")
        for option in ("home", "program", "runner", "agent"):
            path = str(getattr(self, option))
            _need(_PATH, path, f"--{option}", "an absolute path of letters, digits and _ . / + -")
        if self.home.parent != Path("/var/lib"):
            raise EnrolError("--home has to be a folder of /var/lib: systemd makes it for the user")
        if self.system is System.GITHUB:
            self._check_url()
        else:
            _need(_SLUG, self.org, "--org", "Buildkite's name of the organisation, as in its URL")

    def _check_url(self) -> None:
        parts = urlsplit(self.url)
        names = parts.path.strip("/").split("/")
        rest = parts.query or parts.fragment
        named = len(names) in _NAMES and all(_SLUG.fullmatch(name) for name in names)
        if parts.scheme != "https" or not _HOST.fullmatch(parts.netloc) or rest or not named:
            raise EnrolError(
                f"--url is {self.url!r}: it has to be a repository or an organisation, such as "
                "https://github.com/acme/server"
            )

    @property
    def unit(self) -> str:
        """Name of the unit that takes jobs."""
        if self.system is System.GITHUB:
            return "forkwatch-github-runner.service"
        return "forkwatch-buildkite-agent.service"

    @property
    def secret(self) -> Path:
        """Where whoever runs the host puts what the system gives them; never written here."""
        name = "github-token" if self.system is System.GITHUB else "buildkite-token.env"
        return CONFIG / name

    @property
    def registration_api(self) -> str:
        """Address that gives a token which registers one runner, for an hour."""
        parts = urlsplit(self.url)
        base = f"https://{parts.netloc}/api/v3"
        if parts.netloc == "github.com":
            base = "https://api.github.com"
        path = parts.path.strip("/")
        kind = "repos" if "/" in path else "orgs"
        return f"{base}/{kind}/{path}/actions/runners/registration-token"


def _need(form: re.Pattern[str], value: str, option: str, wanted: str) -> None:
    if not form.fullmatch(value):
        raise EnrolError(f"{option} is {value!r}: it has to be {wanted}")
