"""The sources of a server: which source files of a tree the built programs are not made of.

A build folder of CMake and Ninja comes in before it is removed; the names of source files that are
in no measured program go into a file at the top of the artifact, for whoever weighs commits by the
paths they touch. Where ninja cannot tell for sure, nothing is written. It weighs no commit.
"""

from __future__ import annotations

import logging
import os
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from runner import leavings
from runner.build_systems import BUILD, SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runner.sandbox import Sandbox
    from workloads.plan import BuildVariant

_log = logging.getLogger("forkwatch.build")

#: At the top of an artifact, where content hashes do not look.
FILE: Final = "forkwatch-sources.txt"
_HEADERS: Final = frozenset(
    {".h", ".hh", ".hpp", ".hxx", ".h++", ".ic", ".inc", ".inl", ".ipp", ".tcc"}
)
#: What compilers read, and ninja knows all of. Data, scripts and build files are never named: they
#: may matter in ways that ninja does not see.
SUFFIXES: Final = _HEADERS | {".c", ".cc", ".cpp", ".cxx", ".c++", ".l", ".ll", ".s", ".y", ".yy"}
#: Several times the sources of a database. A tree with more is told nothing of.
FILES_MAX: Final = 200_000
BYTES_MAX: Final = 32 * 1024 * 1024
#: For one question to ninja; it reads its own files and compiles nothing.
TIMEOUT_S: Final = 60.0
#: Objects asked about at once; a command line holds two megabytes, and a path may have 200 letters.
_OBJECTS_AT_ONCE: Final = 2_000
#: Headers come in again with every object; once each is some hundredths of that.
_DEPS: Final = 'ninja -C build -t deps "$@" | sort -u'
#: Part of the paths that only an external project has: its sources are built behind ninja's back.
_EXTERNAL: Final = "-stamp/"


class _NotToldError(Exception):
    """Ninja does not tell."""


@dataclass(frozen=True, kw_only=True)
class _MadeOf:
    """What programs are made of."""

    #: Relative to the source folder, as the compiler was given them.
    files: frozenset[str]
    #: Whether every object tells the headers it was compiled from.
    all_headers: bool


def keep(variant: BuildVariant, sandbox: Sandbox, *, source: Path, into: Path) -> None:
    """Write which source files are in no measured program of an artifact, where that is known.

    Measured may be the server, what prepares its data, and every library that is installed. A build
    never fails for this.

    Args:
        variant: How it was built.
        sandbox: In which it was built; the build folder is still there.
        source: The source folder, on the host.
        into: The artifact's folder, on the host.
    """
    path = into / FILE
    if os.path.lexists(path):
        # The build's own, whatever it says.
        leavings.remove(path)
    if variant.system != "cmake":
        return
    try:
        unread = _unread(source, _made_of(variant, sandbox, into))
        if unread:
            # Exclusively: never through a link.
            with path.open("x", encoding="utf-8") as file:
                file.writelines(f"{name}\n" for name in sorted(unread))
    except (_NotToldError, OSError, RecursionError, ValueError) as error:
        _log.info("which sources the server is made of is not known: %s", error)


def read(folder: Path) -> frozenset[str]:
    """Return the source files that are in no measured program of an artifact; none if not known."""
    path = folder / FILE
    try:
        if path.stat().st_size > BYTES_MAX:
            return frozenset()
        return frozenset(path.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):
        return frozenset()


def _unread(source: Path, made_of: _MadeOf) -> set[str]:
    """Return the source files of a tree that are not among those."""
    # A compiler names a file by the link it came through.
    root = source.resolve()
    real = {
        path.relative_to(root).as_posix()
        for path in ((root / name).resolve() for name in made_of.files)
        if path.is_relative_to(root)
    }
    unread: set[str] = set()
    for name in _source_files(source):
        told = made_of.all_headers or PurePosixPath(name).suffix.lower() not in _HEADERS
        if told and name not in made_of.files and name not in real:
            unread.add(name)
        if len(unread) > FILES_MAX:
            raise _NotToldError(f"the tree has more than {FILES_MAX} source files")
    return unread


def _source_files(source: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(source):
        folders[:] = [name for name in folders if name != ".git"]
        below = Path(folder).relative_to(source)
        for file in files:
            name = (below / file).as_posix()
            wanted = PurePosixPath(file).suffix.lower() in SUFFIXES
            # Other characters git writes in a way of its own, and a list has lines.
            if wanted and name.isprintable() and not (source / name).is_symlink():
                yield name


def _made_of(variant: BuildVariant, sandbox: Sandbox, into: Path) -> _MadeOf:
    """Return what ninja knows of the programs.

    Raises:
        _NotToldError: It does not know enough.
    """
    targets = _targets(variant, _ask(sandbox, "-t", "targets", "all"), into)
    lines = _ask(sandbox, "-t", "inputs", "build.ninja", *targets)
    inputs = [name for line in lines for name in shlex.split(line)]
    if any(_EXTERNAL in name for name in inputs):
        raise _NotToldError("an external project is a part of it")
    objects = [name for name in inputs if name.endswith(".o")]
    headers, told = _compiled_from(sandbox, objects)
    found = (_in_source(name) for name in (*inputs, *headers))
    return _MadeOf(
        files=frozenset(name for name in found if name), all_headers=told.issuperset(objects)
    )


def _targets(variant: BuildVariant, lines: Sequence[str], into: Path) -> list[str]:
    """Return the paths that ninja has for the programs and libraries of an artifact."""
    wanted = {PurePosixPath(path).name for path in (variant.server, variant.install_db) if path}
    wanted |= {name for _, _, files in os.walk(into) for name in files if ".so" in name}
    found = []
    for line in lines:
        path, _, rule = line.rpartition(": ")
        if rule != "phony" and PurePosixPath(path).name in wanted:
            found.append(path)
    server = PurePosixPath(variant.server).name
    if server not in {PurePosixPath(path).name for path in found}:
        raise _NotToldError(f"ninja links no {server}")
    return found


def _compiled_from(sandbox: Sandbox, objects: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return all that objects were compiled from, and the objects that tell it."""
    files: set[str] = set()
    told: set[str] = set()
    for first in range(0, len(objects), _OBJECTS_AT_ONCE):
        chunk = objects[first : first + _OBJECTS_AT_ONCE]
        for line in _said(sandbox, ["sh", "-c", _DEPS, "sh", *chunk]):
            if line.startswith("    "):
                files.add(line.strip())
            elif ": #deps " in line:
                told.add(line.partition(": #deps ")[0])
    return files, told


def _in_source(name: str) -> str:
    """Return a path relative to the source folder, empty where it is elsewhere."""
    path = os.path.normpath(name if name.startswith("/") else f"{BUILD}/{name}")
    return path.removeprefix(f"{SOURCE}/") if path.startswith(f"{SOURCE}/") else ""


def _ask(sandbox: Sandbox, *words: str) -> list[str]:
    return _said(sandbox, ["ninja", "-C", "build", *words])


def _said(sandbox: Sandbox, argv: Sequence[str]) -> list[str]:
    done = sandbox.run(argv, timeout_s=TIMEOUT_S)
    if not done.ok:
        said = (done.stderr or done.stopped_by or "it took too long").strip().splitlines()
        raise _NotToldError(said[0] if said else f"ninja ended with status {done.returncode}")
    return done.stdout.splitlines()
