"""A first plan for a fork: its source tree in, a commented forkwatch.toml out.

Every choice says where it comes from, so that the reader can tell what was seen in the tree from
what was assumed. Nothing is built or run here, and nothing beyond the top of the tree is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pygit2

from forkwatch.errors import InitError
from forkwatch.plan_text import plan_lines
from forkwatch.source_trees import recognise
from workloads.plan import PLAN_FILE, parse_plan

if TYPE_CHECKING:
    from pathlib import Path

    from forkwatch.source_trees import SourceTree

_KEY_LENGTH_MAX: Final = 64
_BRANCH: Final = re.compile(r"[A-Za-z0-9_./+-]{1,200}")


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a checkout told about itself; each finding with where it was seen."""

    name: str
    branch: str
    branch_seen: str
    tree: SourceTree


def write_plan(folder: Path, *, force: bool = False) -> Path:
    """Write a plan into the fork at `folder` and return its path.

    Raises:
        InitError: No fork that can be measured, or a plan is there and `force` is not set.
    """
    path = folder / PLAN_FILE
    if path.exists() and not force:
        raise InitError(f"{path} exists; --force replaces it")
    text = plan_text(look_at(folder))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InitError(f"{path} cannot be written: {error.strerror}") from error
    return path


def look_at(folder: Path) -> Findings:
    """Return what the checkout at `folder` says about itself.

    Raises:
        InitError: Not a source tree, or of an engine that is not measured.
    """
    tree = recognise(folder)
    branch, branch_seen = _branch(folder)
    return Findings(name=_name(folder), branch=branch, branch_seen=branch_seen, tree=tree)


def plan_text(found: Findings) -> str:
    """Return a plan for `found` that `parse_plan` accepts."""
    lines = plan_lines(
        found.tree, name=found.name, branch=found.branch, branch_seen=found.branch_seen
    )
    text = "\n".join(lines)
    parse_plan(text)
    return text


def _branch(folder: Path) -> tuple[str, str]:
    """Return the branch to watch, and how we know."""
    found = pygit2.discover_repository(str(folder))
    if found is None:
        return "main", "assumed: no git repository here"
    repository = pygit2.Repository(found)
    if repository.head_is_detached:
        return "main", "assumed: no branch is checked out here"
    name = str(repository.lookup_reference("HEAD").target).removeprefix("refs/heads/")
    if not _BRANCH.fullmatch(name):
        return "main", "assumed: the branch that is checked out has letters a plan cannot hold"
    return name, "the branch that is checked out"


def _name(folder: Path) -> str:
    """Return the folder's name in the letters that a name may have."""
    kept = re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.resolve().name).lstrip("_.-")
    return kept[:_KEY_LENGTH_MAX] or "fork"
