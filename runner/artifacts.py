"""Artifacts: install prefixes that were made once and are found again by their identity.

What makes an artifact comes in as a function, the installed folder with its facts goes out. Which
commands build it, or where it is copied from, is not known here.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pydantic import ValidationError

from results.document import Artifact
from runner import leavings, locks, tree_copies
from runner.host.storage import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner.settings import Home

MANIFEST: Final = "forkwatch-artifact.json"
#: Where artifacts lie that were made here, or by jobs of the fleet that may be relied on.
_OURS: Final = "artifacts"
#: What the fleet's jobs of strangers have made: no trusted job looks there.
_OUTSIDE: Final = "artifacts-outside"
#: Part of every artifact's identity: raise it when the way of building changes.
RECIPE: Final = "1"
#: Installed, but never part of what a server runs: a change here is no change of the software.
_NOT_RUN: Final = ("include", "man", "mysql-test", "share/doc", "share/info", "share/man")


@dataclass(frozen=True, kw_only=True)
class Installed:
    """An artifact with the folder that holds its installed files."""

    facts: Artifact
    folder: Path


class Elsewhere(Protocol):
    """Where else an artifact may be: at the other machines of a fleet."""

    @property
    def takes_strangers(self) -> bool:
        """Whether this job may use what jobs of strangers have made."""

    def fetch(self, partial: Path, *, strangers: bool = False) -> Artifact | None:
        """Fill an empty folder with the artifact, every byte checked; None where it is not."""

    def bring(self, folder: Path, facts: Artifact) -> None:
        """Offer others what was made here; whether it is taken is no matter of the job's."""


def once(
    home: Home,
    identity: str,
    variant_name: str,
    make: Callable[[Path], Artifact],
    *,
    elsewhere: Elsewhere | None = None,
) -> Installed:
    """Return the artifact called `identity`, made by `make` in an empty folder if not there yet.

    It is looked for `elsewhere` before it is made. Whatever `make` raises leaves nothing behind.
    """
    # One process at a time makes an artifact; the second finds it ready.
    with locks.exclusive(home.folder(_OURS) / f"{identity}.lock"):
        ready = _found(home, identity, elsewhere)
        if ready is not None:
            # Another plan may have another name for the same thing.
            facts = ready.facts.model_copy(update={"cached": True, "variant": variant_name})
            return Installed(facts=facts, folder=ready.folder)
        folder = home.folder(_OURS) / identity
        made = _fill(folder, make)
        assert made is not None, "it makes an artifact or raises"
        if elsewhere is not None:
            elsewhere.bring(folder, made.facts)
        return made


def _found(home: Home, identity: str, elsewhere: Elsewhere | None) -> Installed | None:
    """Return the artifact if it is here already, or could be fetched."""
    folder = home.folder(_OURS) / identity
    here = _read_manifest(folder)
    if here is not None or elsewhere is None:
        return None if here is None else Installed(facts=here, folder=folder)
    fetched = _fill(folder, elsewhere.fetch)
    if fetched is not None or not elsewhere.takes_strangers:
        return fetched
    # A runner of strangers may have been taken over. What it says that these sources build must
    # never be what a trusted job finds under the same identity.
    outside = home.folder(_OUTSIDE) / identity
    there = _read_manifest(outside)
    if there is not None:
        return Installed(facts=there, folder=outside)
    return _fill(outside, lambda partial: elsewhere.fetch(partial, strangers=True))


def _fill(folder: Path, make: Callable[[Path], Artifact | None]) -> Installed | None:
    """Make an artifact beside its place and move it there when it is whole; None if it is not."""
    # What is there without being whole was left by a power cut or a broken disk.
    leavings.remove(folder)
    partial = folder.with_suffix(".partial")
    leavings.remove(partial)
    partial.mkdir()
    try:
        facts = make(partial)
        if facts is None:
            return None
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
