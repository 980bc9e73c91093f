"""What a CI system says of itself and of its job, in the variables it sets.

The only place of the door that reads them. Values come from a job and from whoever opened a pull
request: they are data, and no command is made of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

#: What Buildkite sets where a build is of no pull request.
NO_PULL_REQUEST: Final = "false"


class CiSettings(BaseSettings):
    """Taken from GITHUB_... and BUILDKITE_... variables; everything is off where there are none."""

    model_config = SettingsConfigDict(extra="ignore", env_ignore_empty=True)

    github_actions: bool = Field(default=False, description="Whether GitHub Actions runs us.")
    github_step_summary: Path | None = Field(
        default=None, description="File whose Markdown is shown on the page of the run."
    )
    github_output: Path | None = Field(
        default=None, description="File that takes the outputs of a step."
    )
    actions_id_token_request_url: str = Field(
        default="", description="Where a job with `id-token: write` asks for a token of its own."
    )
    actions_id_token_request_token: SecretStr | None = Field(
        default=None, description="What it asks with."
    )
    buildkite: bool = Field(default=False, description="Whether buildkite-agent runs us.")
    buildkite_pull_request: str = Field(
        default=NO_PULL_REQUEST, description="Number of the pull request, or `false`."
    )
    buildkite_pull_request_repo: str = Field(
        default="", description="Repository that a pull request comes from."
    )
    buildkite_repo: str = Field(default="", description="Repository of the pipeline.")
    buildkite_agent_meta_data_queue: str = Field(
        default="default", description="Queue of the agent that runs us."
    )

    @property
    def is_pull_request(self) -> bool:
        """Whether Buildkite builds a pull request."""
        return self.buildkite_pull_request != NO_PULL_REQUEST

    @property
    def is_from_outside(self) -> bool:
        """Whether the head of a pull request lies in another repository, or in none we know."""
        ours, theirs = (
            _owner_and_name(address)
            for address in (self.buildkite_repo, self.buildkite_pull_request_repo)
        )
        return self.is_pull_request and (not ours or ours != theirs)


def _owner_and_name(address: str) -> tuple[str, ...]:
    """Return the last two parts of a repository's address, however it is written."""
    plain = address.removesuffix("/").removesuffix(".git").replace(":", "/").lower()
    parts = [part for part in plain.split("/") if part]
    return tuple(parts[-2:])
