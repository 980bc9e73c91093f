"""Programs called db_bench in artifacts: the system's, and shell scripts that only look like it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.runner import installed_trees

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner.servers.engine import OptionValue, ServerSpec

#: Debian's package rocksdb-tools has it.
SYSTEMS = shutil.which("db_bench")
#: Files of one megabyte, so that few rows make a tree of several levels.
SMALL_TREE: dict[str, OptionValue] = {
    "write_buffer_size": 1024**2,
    "target_file_size_base": 1024**2,
    "max_bytes_for_level_base": 4 * 1024**2,
}


def spec_of(
    folder: Path, *, engine: str = "rocksdb", options: Mapping[str, OptionValue] | None = None
) -> ServerSpec:
    """Return the program `bin/db_bench` of an artifact with these options."""
    chosen = SMALL_TREE if options is None else options
    return installed_trees.spec_of(engine, folder, "bin/db_bench", options=chosen)


def systems_artifact(folder: Path) -> Path:
    """Make an artifact whose db_bench is the system's."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "db_bench").symlink_to(str(SYSTEMS))
    return folder


def scripted_artifact(folder: Path, script: str) -> Path:
    """Make an artifact whose db_bench is a shell script."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "db_bench"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder
