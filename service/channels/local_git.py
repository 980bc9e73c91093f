"""A code host that is a git repository on this machine, read with libgit2; nothing is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import SortMode

from service.core.errors import CodeHostError
from service.core.model import GitCommit
from workloads.plan import PLAN_BYTES_MAX, PLAN_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Kept of a subject or an author: what a table can show.
LINE_LENGTH_MAX = 500


class LocalGit:
    """One repository, bare or with a work tree; only what is committed counts."""

    def __init__(self, repository: Path) -> None:
        self._path = repository.expanduser().resolve()

    @property
    def repository(self) -> Path:
        """Folder of the repository."""
        return self._path

    def plan_text(self) -> str:
        """Return the plan as the commit that HEAD's branch points to has it."""
        try:
            tree = self._open().revparse_single("HEAD").peel(pygit2.Tree)
            blob = tree[PLAN_FILE]
        except (KeyError, pygit2.GitError, pygit2.InvalidSpecError) as error:
            raise CodeHostError(
                f"{self._path}: HEAD has no {PLAN_FILE}; `forkwatch init` writes one, commit it"
            ) from error
        if not isinstance(blob, pygit2.Blob) or blob.size > PLAN_BYTES_MAX:
            raise CodeHostError(f"{self._path}: {PLAN_FILE} is no file of a plan's size")
        try:
            return blob.data.decode()
        except UnicodeDecodeError as error:
            raise CodeHostError(f"{self._path}: {PLAN_FILE} is not UTF-8") from error

    def branch_commits(self, branch: str, *, limit: int) -> list[GitCommit]:
        """Return the newest first-parent commits of a branch, oldest first."""
        repository = self._open()
        found = repository.lookup_branch(branch)
        if found is None:
            raise CodeHostError(f"{self._path} has no branch {branch!r}")
        newest = [_value(commit) for commit in islice(_walk(repository, found.target), limit)]
        return newest[::-1]

    def commit(self, sha: str) -> GitCommit:
        """Return one commit."""
        try:
            return _value(self._open()[sha].peel(pygit2.Commit))
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise CodeHostError(f"{self._path} has no commit {sha}") from error

    def _open(self) -> pygit2.Repository:
        # Opened anew each time: a handle kept open does not see packs that a push brought.
        try:
            return pygit2.Repository(str(self._path))
        except pygit2.GitError as error:
            raise CodeHostError(f"{self._path} is no git repository: {error}") from error


def _walk(repository: pygit2.Repository, start: pygit2.Oid | str) -> Iterator[pygit2.Commit]:
    walker = repository.walk(start, SortMode.TOPOLOGICAL)
    walker.simplify_first_parent()
    return iter(walker)


def _value(commit: pygit2.Commit) -> GitCommit:
    author = commit.author
    zone = timezone(timedelta(minutes=commit.commit_time_offset))
    return GitCommit(
        sha=str(commit.id),
        tree=str(commit.tree_id),
        parent=str(commit.parent_ids[0]) if commit.parent_ids else None,
        author=f"{author.name} <{author.email}>"[:LINE_LENGTH_MAX],
        subject=commit.message.strip().partition("\n")[0][:LINE_LENGTH_MAX],
        committed_at=datetime.fromtimestamp(commit.commit_time, zone).astimezone(UTC),
    )
