"""Prebuilt: an installed tree on this host that is measured as it is; no commit is built.

The folder of a build variant comes in; out go the artifact, a copy that nobody writes to any more,
and the commit that stands for it in orders and documents. That commit is in no repository: its hash
is the content hash of the tree, so that equal trees are the same candidate wherever they lie.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from results.document import Artifact, Commit, Toolchain
from runner import artifacts, leavings, tree_copies, trees
from runner.artifacts import RECIPE, Installed, content_hash, installed_bytes
from runner.errors import BuildError, DatasetError, OperatorError
from runner.limits import DISK_RESERVE
from runner.sandbox import INSIDE, hand_over

if TYPE_CHECKING:
    from runner.settings import Home
    from workloads.plan import BuildVariant

#: What a folder may say about itself; `make engines` writes it.
FACTS: Final = "engine.json"
#: Stands where a toolchain would: nobody here knows what compiled it.
TOOLCHAIN: Final = Toolchain(
    c_compiler="prebuilt",
    cxx_compiler="prebuilt",
    cmake="prebuilt",
    linker="prebuilt",
    digest="prebuilt",
)
_FACTS_BYTES_MAX: Final = 64 * 1024


def commit_of(name: str, variant: BuildVariant) -> Commit:
    """Return the commit that stands for a prebuilt variant in orders and documents.

    Its hash and its tree are the content hash of the folder, its subject says what the folder says
    of itself, and its date is that of the server program.

    Raises:
        OperatorError: The folder is not there, cannot be read or lacks a program.
    """
    folder = _folder(name, variant)
    found = _hash(name, folder, variant)
    built_at = datetime.fromtimestamp((folder / variant.server).stat().st_mtime, tz=UTC)
    return Commit(
        sha=found,
        tree=found,
        subject=f"prebuilt {name}: {_title(folder)}"[:500],
        committed_at=built_at,
    )


def is_prebuilt(artifact: Artifact | None) -> bool:
    """Whether an artifact of a document was copied and not built."""
    return artifact is not None and artifact.toolchain.digest == TOOLCHAIN.digest


def take(home: Home, name: str, variant: BuildVariant) -> Installed:
    """Return the artifact of a prebuilt variant, copied from its folder if it is not there yet.

    Raises:
        OperatorError: The folder is not there, cannot be read or lacks a program.
        BuildError: It cannot be copied, or holds what no artifact may hold.
    """
    folder = _folder(name, variant)
    found = _hash(name, folder, variant)
    identity = hashlib.sha256(f"{RECIPE}\x1fprebuilt\x1f{found}".encode()).hexdigest()[:32]

    def make(partial: Path) -> Artifact:
        began = time.monotonic()
        _copy(folder, partial, variant)
        leavings.inspect(partial, inside=str(INSIDE / "artifact"))
        if content_hash(partial, server=variant.server) != found:
            raise BuildError("install", f"{folder} changed while it was copied; try again")
        hand_over(partial)
        return Artifact(
            id=identity,
            variant=name,
            tree=found,
            toolchain=TOOLCHAIN,
            content_hash=found,
            installed_bytes=installed_bytes(partial),
            build_seconds=round(time.monotonic() - began, 3),
            cached=False,
        )

    return artifacts.once(home, identity, name, make)


def _folder(name: str, variant: BuildVariant) -> Path:
    """Return the variant's folder with the programs that the plan says it has."""
    assert variant.prefix is not None, "the plan checks this"
    folder = Path(variant.prefix)
    if not folder.is_dir():
        raise OperatorError(
            f"build {name!r}: there is no folder {folder}; put an installed tree there, or change "
            "its prefix in the plan"
        )
    for key, program in (("server", variant.server), ("loader", variant.loader)):
        if program is not None and not artifacts.holds_program(folder, program):
            raise OperatorError(f"build {name!r}: {folder} has no {program}; set its {key}")
    return folder


def _hash(name: str, folder: Path, variant: BuildVariant) -> str:
    try:
        return content_hash(folder, server=variant.server)
    except OSError as error:
        raise OperatorError(f"build {name!r}: {folder} cannot be read: {error}") from error


def _title(folder: Path) -> str:
    """Return what a folder says it is, or its own name."""
    try:
        with (folder / FACTS).open("rb") as file:
            facts: Any = json.loads(file.read(_FACTS_BYTES_MAX))
        return f"{facts['engine']} {facts['version']}"
    except (OSError, ValueError, KeyError, TypeError):
        return folder.name


def _copy(folder: Path, into: Path, variant: BuildVariant) -> None:
    """Copy a tree to the empty folder `into`, sharing blocks where the file system can.

    A hard link would be cheaper on other file systems, but the artifact gets another owner, and
    whoever writes to the folder later would write to the artifact.
    """
    try:
        needed, free = trees.allocated_bytes(folder), shutil.disk_usage(into).free
        if needed + DISK_RESERVE > free:
            raise BuildError(
                "install",
                f"{folder} takes {needed:,} bytes and {free:,} are free, of which "
                f"{DISK_RESERVE:,} stay free; make room",
            )
        share = tree_copies.can_share((folder / variant.server).resolve(), into)
        into.rmdir()
        tree_copies.copy(folder, trees.scan(folder), [into], share=share)
    except (OSError, DatasetError) as error:
        raise BuildError("install", f"{folder} cannot be copied: {error}") from error
