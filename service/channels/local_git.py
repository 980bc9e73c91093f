"""A code host that is a git repository on this machine, read with libgit2.

Nothing is written but `refs/forkwatch/...`, which keep what is fetched of pull requests, and the
branches of a mirror; all else is left to whoever keeps the repository.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import TYPE_CHECKING, Final

import pygit2
from pygit2.enums import SortMode

from bisects.commits import RangeCommit
from service.core.errors import CodeHostError
from service.core.model import GitCommit
from service.core.pull_requests import PullCommits
from workloads.plan import PLAN_BYTES_MAX, PLAN_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from service.channels.git_credentials import GitCredentials

#: Paths kept of one commit. What touches more moves the tree about, and some of them show it.
FILES_MAX: Final = 1_000
#: Kept of a subject or an author: what a table can show.
LINE_LENGTH_MAX = 500
#: Where pull requests are fetched from, if the repository has one of that name.
REMOTE: Final = "origin"
#: A server that says nothing for so long is not waited for.
REMOTE_TIMEOUT_MS: Final = 60_000
_KEPT: Final = "refs/forkwatch"
#: Where a name is looked for. Never among what was fetched of pull requests: what is called by a
#: name is somebody's with write access.
_NAMED: Final = ("refs/heads/", f"refs/remotes/{REMOTE}/", "refs/tags/")
_HASH: Final = re.compile(r"[0-9a-f]{7,64}")
_REVISION: Final = re.compile(r"(?P<name>[^~^:{}@?*\[\\\s]+)(?P<steps>(?:[~^][0-9]*)*)")


class LocalGit:
    """One repository, bare or with a work tree; only what is committed counts."""

    def __init__(self, repository: Path, credentials: GitCredentials | None = None) -> None:
        """Remember where, and what a remote is told that asks who reads it."""
        self._path = repository.expanduser().resolve()
        self._credentials = credentials

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

    def refresh(self, branch: str) -> None:
        """Fetch a branch where the repository was made by `git clone --mirror`.

        Elsewhere the branches are somebody's own, and nothing is done.
        """
        repository = self._open()
        if f"remote.{REMOTE}.mirror" not in repository.config:
            return
        if repository.config.get_bool(f"remote.{REMOTE}.mirror"):
            self._fetch(repository, {f"refs/heads/{branch}": f"refs/heads/{branch}"})

    def pull_request(self, number: int, *, base: str) -> PullCommits:
        """Return head and merge base of a pull request, fetched now where there is a remote."""
        head_ref, base_ref = f"refs/pull/{number}/head", f"refs/heads/{base}"
        # A name that git takes cannot hold what separates the halves of a refspec.
        if not pygit2.reference_is_valid_name(base_ref):
            raise CodeHostError(f"pull request {number} is for no branch that git can name")
        repository = self._open()
        if REMOTE in repository.remotes.names():
            wanted = {head_ref: f"{_KEPT}/pull/{number}", base_ref: f"{_KEPT}/base/{base}"}
            self._fetch(repository, wanted)
            head_ref, base_ref = wanted.values()
        head, onto = self._tip(repository, head_ref), self._tip(repository, base_ref)
        parted = repository.merge_base(head.id, onto.id)
        return PullCommits(
            head=_value(head),
            merge_base=None if parted is None else _value(repository[parted].peel(pygit2.Commit)),
        )

    def resolve(self, revision: str) -> GitCommit | None:
        """Return the commit that a branch, a tag or a hash names, None where it names nothing."""
        parts = _REVISION.fullmatch(revision)
        if parts is None:
            return None
        repository = self._open()
        names = [f"{prefix}{parts['name']}" for prefix in _NAMED]
        try:
            found = next((name for name in names if name in repository.references), None)
            if found is None and not _HASH.fullmatch(parts["name"]):
                return None
            spec = f"{found or parts['name']}{parts['steps']}"
            return _value(repository.revparse_single(spec).peel(pygit2.Commit))
        # Two hashes may begin alike, and a name may be none that git takes.
        except (KeyError, ValueError, pygit2.GitError):
            return None

    def commits_between(self, good: str, bad: str, *, limit: int) -> list[RangeCommit]:
        """Return good, bad and what lies between along first parents, oldest first.

        Nothing where good is none of the newest `limit` commits that lead to bad.
        """
        repository = self._open()
        found = []
        try:
            for commit in islice(_back(repository, bad), limit):
                found.append(commit)
                if str(commit.id) == good:
                    return [_range_commit(repository, one) for one in reversed(found)]
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise CodeHostError(f"{self._path}: the commits up to {bad} cannot be read") from error
        return []

    def merged_commits(self, merge: str, *, limit: int) -> list[RangeCommit]:
        """Return a merge's first parent, what it merged along first parents, and the merge.

        Nothing where it is no merge of two, or there would be more than `limit`. Beside the last
        commit that it merged, the merge brings what the first parent's line had meanwhile.
        """
        repository = self._open()
        try:
            last = repository[merge].peel(pygit2.Commit)
            if len(last.parent_ids) != 2:  # noqa: PLR2004  what was merged into, and what was
                return []
            onto, other = (repository[one].peel(pygit2.Commit) for one in last.parent_ids)
            merged = _own(repository, onto, islice(_back(repository, str(other.id)), limit - 1))
            if not merged:
                return []
            return [
                replace(_range_commit(repository, onto), files=()),
                *(_range_commit(repository, one) for one in reversed(merged)),
                replace(_range_commit(repository, last), files=_touched(other.tree, last.tree)),
            ]
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise CodeHostError(f"{self._path}: what {merge} merged cannot be read") from error

    def _fetch(self, repository: pygit2.Repository, wanted: dict[str, str]) -> None:
        """Fetch references, each to the name that it is kept under."""
        # The library has one setting for all; every fetch sets it to the same.
        pygit2.settings.server_connect_timeout = REMOTE_TIMEOUT_MS
        pygit2.settings.server_timeout = REMOTE_TIMEOUT_MS
        asked = self._credentials.callbacks() if self._credentials else None
        refspecs = [f"+{theirs}:{own}" for theirs, own in wanted.items()]
        try:
            repository.remotes[REMOTE].fetch(refspecs, callbacks=asked)
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise CodeHostError(
                f"{self._path}: {', '.join(wanted)} cannot be fetched from {REMOTE}: {error}"
            ) from error

    def _tip(self, repository: pygit2.Repository, reference: str) -> pygit2.Commit:
        try:
            return repository.revparse_single(reference).peel(pygit2.Commit)
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise CodeHostError(f"{self._path} has no {reference}") from error

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


def _back(repository: pygit2.Repository, sha: str) -> Iterator[pygit2.Commit]:
    """Give a commit and its first-parent ancestors, nearest first, as they are asked for.

    A walk of the library's in this order reads the whole history before it gives the first one.
    """
    commit = repository[sha].peel(pygit2.Commit)
    yield commit
    while commit.parent_ids:
        commit = repository[commit.parent_ids[0]].peel(pygit2.Commit)
        yield commit


def _own(
    repository: pygit2.Repository, onto: pygit2.Commit, line: Iterable[pygit2.Commit]
) -> list[pygit2.Commit]:
    """Return the commits of a line, nearest first, that `onto` does not have; none if all are.

    What it has, it has to the end of the line, so that few of them need a look.
    """
    commits = list(line)

    def has(commit: pygit2.Commit) -> bool:
        return commit.id == onto.id or repository.descendant_of(onto.id, commit.id)

    first = bisect_left(commits, True, key=has)
    return commits[:first] if first < len(commits) else []


def _range_commit(repository: pygit2.Repository, commit: pygit2.Commit) -> RangeCommit:
    known = _value(commit)
    return RangeCommit(
        sha=known.sha,
        subject=known.subject,
        author=known.author,
        committed_at=known.committed_at,
        files=_files(repository, commit),
    )


def _files(repository: pygit2.Repository, commit: pygit2.Commit) -> tuple[str, ...]:
    """Return the paths that a commit touches beside its first parent.

    The first commit of all is never searched for, and a list of the whole tree would say nothing.
    """
    if not commit.parent_ids:
        return ()
    return _touched(repository[commit.parent_ids[0]].peel(pygit2.Commit).tree, commit.tree)


def _touched(before: pygit2.Tree, after: pygit2.Tree) -> tuple[str, ...]:
    """Return the paths in which two trees differ, evenly thinned if many."""
    # Paths are bytes to git; what is no UTF-8 has to be shown all the same.
    paths = [
        delta.new_file.raw_path.decode("utf-8", "replace")
        for delta in before.diff_to_tree(after).deltas
    ]
    return tuple(paths[:: 1 + max(0, len(paths) - 1) // FILES_MAX])


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
