"""Where a verb works: the runner's home folder and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from runner.settings import Home, RunnerSettings


def open_home(home: Path | None, job: Path | None = None) -> tuple[Home, RunnerSettings]:
    """Return the runner's home and settings; a job's folder lies in the home it belongs to."""
    from runner.settings import Home, RunnerSettings

    settings = RunnerSettings()
    if home is None and job is not None:
        home = job.resolve().parent.parent
    return Home(home or settings.home), settings
