"""Storage: small files that are there whole or not at all, even after a power cut.

Tuning journals, profiles and histories go through here. It knows paths and text only.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from results.atomic import write_atomically

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replace a file, making its folder where needed; it is on the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Remove a file, for good even after a power cut."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make what was renamed or removed in a folder last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def why_not_written(path: Path, error: OSError) -> str:
    """Return why a file could not be written, with what is free where it should be."""
    there = next(folder for folder in path.parents if folder.exists())
    found = os.statvfs(there)
    free_mb = found.f_bavail * found.f_frsize / 1e6
    reason = error.strerror or error
    return f"{path} could not be written: {reason}, {free_mb:.0f} MB are free there"
