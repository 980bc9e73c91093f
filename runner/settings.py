"""Settings of the runner: where it keeps things. The only place here that reads the environment."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class RunnerSettings(BaseSettings):
    """Taken from arguments, then from FORKWATCH_... variables, then from the defaults."""

    model_config = SettingsConfigDict(env_prefix="FORKWATCH_", extra="ignore")

    home: Path = Field(
        default=Path("~/.cache/forkwatch"),
        description="Folder for artifacts, datasets, compiler cache and jobs.",
    )
    host_class: str = Field(
        default="default", description="Machines of one class may be compared with each other."
    )
    build_jobs: int = Field(default=0, ge=0, description="Compiler processes; 0 is one per CPU.")
    ccache_size: str = Field(default="20G", description="Upper limit of the compiler cache.")


class Home:
    """Folders below the runner's home, made when first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()

    def folder(self, *names: str) -> Path:
        """Return a folder below the home, making it if needed."""
        path = self.root.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        return path
