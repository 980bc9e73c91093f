"""Settings of the runner: where it keeps things. The only place here that reads the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import ByteSize, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from runner.limits import (
    DISK_BYTES,
    DISK_ENTRIES,
    DISK_RESERVE,
    FILE_BYTES,
    LOG_BYTES,
    OPEN_FILES,
    PROCESSES,
    Limits,
    limits,
)

#: Eighty datasets of ten million rows, or as many as the disk holds.
DATASETS_SIZE: Final = 200 * 10**9
#: A dataset of eighty million rows.
CACHE_PACK_SIZE: Final = 20 * 10**9
#: What loading sixteen million rows takes (docs/datasets.md): a store that crawls costs no more.
CACHE_SECONDS: Final = 600.0


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
    watch_host: bool = Field(
        default=True,
        description="Look at the canary before and after a job, and measure disturbed slices "
        "again.",
    )
    datasets_size: ByteSize = Field(
        default=ByteSize(DATASETS_SIZE),
        gt=0,
        description="Upper limit of all datasets kept; the least recently used go first.",
    )
    cache_url: str = Field(
        default="",
        description="Where machines share artifacts and datasets: a folder or s3://BUCKET/PREFIX.",
    )
    cache_endpoint: str = Field(
        default="", description="Address of an S3-compatible store that is not AWS'."
    )
    cache_writes: bool = Field(
        default=True, description="Whether what is made here goes into the shared cache."
    )
    cache_pack_size: ByteSize = Field(
        default=ByteSize(CACHE_PACK_SIZE),
        gt=0,
        description="Largest artifact or dataset that is shared.",
    )
    cache_seconds: float = Field(
        default=CACHE_SECONDS,
        gt=0,
        description="Longest time to fetch one of them, or to bring it.",
    )
    sandbox_memory: ByteSize = Field(
        default=ByteSize(0),
        description="Memory for all code in one sandbox; 0 is four fifths of the machine's.",
    )
    sandbox_processes: int = Field(
        default=PROCESSES, ge=16, description="Processes and threads in one sandbox."
    )
    sandbox_file_size: ByteSize = Field(
        default=ByteSize(FILE_BYTES), gt=0, description="Largest file written in a sandbox."
    )
    sandbox_open_files: int = Field(
        default=OPEN_FILES, ge=64, description="Open files of one process in a sandbox."
    )
    sandbox_disk_size: ByteSize = Field(
        default=ByteSize(DISK_BYTES), gt=0, description="What one sandbox may write to disk."
    )
    sandbox_disk_files: int = Field(
        default=DISK_ENTRIES, ge=1000, description="Files that one sandbox may make."
    )
    sandbox_tmp_size: ByteSize = Field(
        default=ByteSize(0),
        description="Size of /tmp in a sandbox; 0 is a quarter of the machine's memory.",
    )
    sandbox_log_size: ByteSize = Field(
        default=ByteSize(LOG_BYTES), gt=0, description="Longest log of one stage of a build."
    )
    disk_reserve: ByteSize = Field(
        default=ByteSize(DISK_RESERVE), description="What code in a sandbox leaves free on disk."
    )

    def sandbox_limits(self) -> Limits:
        """Return what code in a sandbox may use."""
        return limits(
            memory=self.sandbox_memory,
            processes=self.sandbox_processes,
            file_bytes=self.sandbox_file_size,
            open_files=self.sandbox_open_files,
            disk_bytes=self.sandbox_disk_size,
            disk_entries=self.sandbox_disk_files,
            tmp_bytes=self.sandbox_tmp_size,
            log_bytes=self.sandbox_log_size,
            disk_reserve=self.disk_reserve,
        )


class Home:
    """Folders below the runner's home, made when first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()

    def folder(self, *names: str) -> Path:
        """Return a folder below the home, making it if needed."""
        path = self.root.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        return path
