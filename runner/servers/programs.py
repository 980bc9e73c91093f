"""Programs of an artifact: where they lie inside the sandbox, and with which words they start.

A tree that was unpacked from a newer system brings its own C library, which only its own dynamic
loader can load: then every program of the artifact is started through that.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from runner.sandbox import INSIDE, Bind

if TYPE_CHECKING:
    from runner.servers.engine import ServerSpec


def inside(path: str | PurePosixPath) -> Path:
    """Return where something of the artifact lies inside the sandbox."""
    return INSIDE / "artifact" / path


def words(spec: ServerSpec, program: str) -> list[str]:
    """Return the words that start a program of the artifact."""
    if spec.loader is None:
        return [str(inside(program))]
    started = [str(inside(spec.loader))]
    if spec.library_paths:
        started += ["--library-path", ":".join(str(inside(path)) for path in spec.library_paths)]
    return [*started, str(inside(program))]


def script(spec: ServerSpec, program: str) -> str:
    """Return a shell script that starts a program of the artifact with its own arguments."""
    return f'#!/bin/sh\nexec {" ".join(words(spec, program))} "$@"\n'


def view(spec: ServerSpec) -> tuple[Bind, ...]:
    """Return what a sandbox has to show for the programs to run without data."""
    return (Bind(host=spec.installed.folder, inside="artifact"),)


def base(spec: ServerSpec) -> PurePosixPath:
    """Return the folder above the program's own, relative to the prefix: `.`, or `usr`.

    Unpacked packages have their prefix inside the tree, and links to it beside.
    """
    tree = spec.installed.folder.resolve()
    program = (tree / spec.program).resolve()
    # What lies outside is a launcher around the artifact's program.
    if not program.is_relative_to(tree):
        return PurePosixPath()
    return PurePosixPath(program.relative_to(tree)).parent.parent


def first_of(spec: ServerSpec, *names: str) -> PurePosixPath | None:
    """Return the first of these that the artifact has below its base, relative to the prefix."""
    for name in names:
        path = base(spec) / name
        if (spec.installed.folder / path).exists():
            return path
    return None
