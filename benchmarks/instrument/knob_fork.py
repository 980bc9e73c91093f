"""A fork of known slowness: the demo fork with a knob in its copy library.

Commits are made on demand from the demo fork's first tree. `rounds` are empty loop turns at every
copy as long as a column, which a scan makes once per row and a point query once; `label` is a file
that is installed and never read, so that two artifacts can differ and still be the same server.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pygit2
from pygit2.enums import FileMode, SortMode

from forkwatch.demo.fork import make_demo_fork

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SIGNATURE: Final = pygit2.Signature(
    "Knob Maintainer", "maintainer@demo.example", time=1_772_359_200, offset=0
)
_LIBRARY: Final = "copy/demo_copy.c"
_BUILD: Final = "CMakeLists.txt"
_LABEL: Final = "config/label.txt"
_NOTES: Final = "docs/notes.md"
#: Where short copies have been made and only the checks of debug builds follow.
_BEFORE: Final = "#ifndef NDEBUG\n    if (size >= COLUMN_COPY_MIN"
#: The statement is empty and may not be dropped. 56 to 72 bytes are the demo's own column copies.
_KNOB: Final = """\
    if (size >= 56 && size <= 72)
        for (int round = 0; round < {rounds}; round++)
            __asm__ volatile("" : : "r"(round));
"""
_INSTALL: Final = f"\ninstall(FILES {_LABEL} DESTINATION share)\n"


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How one commit differs from the first tree."""

    rounds: int
    label: str
    #: Does not compile.
    broken: bool = False
    #: Words of a file that nothing installs.
    notes: str = ""
    subject: str = ""


@dataclass(frozen=True, kw_only=True)
class KnobFork:
    """The repository."""

    repository: Path

    def commit(self, *, rounds: int, label: str) -> str:
        """Return the commit with these settings, made if it is not there yet."""
        repository = pygit2.Repository(self.repository)
        name = f"refs/heads/rounds-{rounds}-{label}"
        if name in repository.references:
            return str(repository.references[name].target)
        first = _first(repository)
        tree = _tree(repository, first, Knobs(rounds=rounds, label=label))
        message = f"Turn {rounds} rounds per column, label {label}\n"
        made = repository.create_commit(name, _SIGNATURE, _SIGNATURE, message, tree, [first.id])
        return str(made)

    def chain(self, name: str, commits: Sequence[Knobs]) -> list[str]:
        """Return the hashes of a branch of its own, one commit after the other, made anew."""
        repository = pygit2.Repository(self.repository)
        first = _first(repository)
        made, parent = [], first.id
        for number, knobs in enumerate(commits):
            tree = _tree(repository, first, knobs)
            message = f"Change number {number}: {knobs.subject}\n"
            parent = repository.create_commit(None, _SIGNATURE, _SIGNATURE, message, tree, [parent])
            made.append(str(parent))
        repository.references.create(f"refs/heads/{name}", parent, force=True)
        return made


def _first(repository: pygit2.Repository) -> pygit2.Commit:
    return next(iter(repository.walk(repository.head.target, SortMode.REVERSE)))


def _tree(repository: pygit2.Repository, first: pygit2.Commit, knobs: Knobs) -> pygit2.Oid:
    """Return the first tree with these settings."""
    texts = {path: (first.tree / path).read_raw().decode("utf-8") for path in (_LIBRARY, _BUILD)}
    assert texts[_LIBRARY].count(_BEFORE) == 1, "the demo's copy library has changed"
    turned = texts[_LIBRARY].replace(_BEFORE, _KNOB.format(rounds=knobs.rounds) + _BEFORE)
    index = pygit2.Index()
    index.read_tree(first.tree)
    for path, text in (
        (_LIBRARY, f"{turned}\n#error planted\n" if knobs.broken else turned),
        (_BUILD, texts[_BUILD] + _INSTALL),
        (_LABEL, f"{knobs.label}\n"),
        (_NOTES, f"{knobs.notes}\n"),
    ):
        blob = repository.create_blob(text.encode())
        index.add(pygit2.IndexEntry(path, blob, FileMode.BLOB))
    return index.write_tree(repository)


def knob_fork(folder: Path) -> KnobFork:
    """Return the fork in `folder`, made if it is not there yet."""
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        make_demo_fork(partial)
        partial.rename(folder)
    return KnobFork(repository=folder)
