"""Artifacts: install prefixes that were made once and are found again by their identity.

What makes an artifact comes in as a function, the installed folder with its facts goes out. Which
commands build it, or where it is copied from, is not known here.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from results.document import Artifact
from runner import leavings, locks, tree_copies
from runner.host.storage import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner.settings import Home

MANIFEST: Final = "forkwatch-artifact.json"
#: Part of every artifact's identity: raise it when the way of building changes.
RECIPE: Final = "1"
#: Installed, but never part of what a server runs: a change here is no change of the software.
_NOT_RUN: Final = ("include", "man", "mysql-test", "share/doc", "share/info", "share/man")


@dataclass(frozen=True, kw_only=True)
class Installed:
    """An artifact with the folder that holds its installed files."""

    facts: Artifact
    folder: Path


def once(
    home: Home, identity: str, variant_name: str, make: Callable[[Path], Artifact]
) -> Installed:
    """Return the artifact called `identity`, made by `make` in an empty folder if not there yet.

    Whatever `make` raises leaves nothing behind.
    """
    folder = home.folder("artifacts") / identity
    # One process at a time makes an artifact; the second finds it ready.
    with locks.exclusive(home.folder("artifacts") / f"{identity}.lock"):
        ready = _read_manifest(folder)
        if ready is not None:
            # Another plan may have another name for the same thing.
            facts = ready.model_copy(update={"cached": True, "variant": variant_name})
            return Installed(facts=facts, folder=folder)
        # What is there without being whole was left by a power cut or a broken disk.
        leavings.remove(folder)
        partial = folder.with_suffix(".partial")
        leavings.remove(partial)
        partial.mkdir()
        try:
            facts = make(partial)
            _write_manifest(partial, facts)
            # On the device before it counts as made: a power cut would leave empty programs behind.
            tree_copies.settle([partial])
            partial.rename(folder)
            sync_folder(folder.parent)
        finally:
            leavings.remove(partial)
        return Installed(facts=facts, folder=folder)


def holds_program(folder: Path, program: str) -> bool:
    """Whether `program` is a file of the artifact and not of the host."""
    path = folder / program
    return path.is_file() and path.resolve().is_relative_to(folder.resolve())


def content_hash(folder: Path, *, server: str = "") -> str:
    """Return a digest over every installed file that a running server may read.

    Documentation, headers, test suites and files at the top of the prefix (README, COPYING) are
    left out: they cannot change how the server runs, unless `server` itself lies there.
    """
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        name = relative.as_posix()
        if len(relative.parts) == 1 and not path.is_dir() and name != server:
            continue
        if any(name == skip or name.startswith(f"{skip}/") for skip in _NOT_RUN):
            continue
        if path.is_symlink():
            total.update(f"{name}\0link\0{path.readlink()}\0".encode())
        elif path.is_file():
            with path.open("rb") as file:
                part = hashlib.file_digest(file, "sha256").hexdigest()
            executable = bool(path.stat().st_mode & 0o111)
            total.update(f"{name}\0{executable}\0{part}\0".encode())
    return total.hexdigest()


def installed_bytes(folder: Path) -> int:
    """Return what all files of an artifact add up to."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _write_manifest(folder: Path, facts: Artifact) -> None:
    """Write what the artifact is, whatever the build has put in that place."""
    path = folder / MANIFEST
    if os.path.lexists(path):
        leavings.remove(path)
    # Exclusively: never through a link.
    with path.open("x") as file:
        file.write(facts.model_dump_json(indent=2))


def _read_manifest(folder: Path) -> Artifact | None:
    """Return the facts of an artifact that is there and has lost nothing."""
    path = folder / MANIFEST
    try:
        facts = Artifact.model_validate_json(path.read_bytes())
        there = installed_bytes(folder) - path.stat().st_size
    except (OSError, ValidationError):
        return None
    return facts if there == facts.installed_bytes else None
