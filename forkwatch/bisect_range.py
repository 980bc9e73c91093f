"""The range of a bisect, read from git: the commits of (good, bad] along first parents.

Two revisions come in, commits with the paths they touch go out. A pair of revisions that is no
such range is an error that says which range it might have been.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from bisects.commits import RANGE_COMMITS_MAX, RangeCommit, refuse_range
from bisects.errors import BisectError
from forkwatch.errors import DoorError
from reports.numbers import short
from runner import checkout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from results.document import Commit

_log = logging.getLogger("forkwatch.bisect")

#: The author and the subject come last: they may hold any character but NUL.
_FORMAT: Final = "%H%x1f%T%x1f%P%x1f%cI%x1f%an%x1f%s"
_TEXT_MAX: Final = 500
#: Paths kept of one commit; what touches more moves the tree about, and some of them show it.
FILES_MAX: Final = 1_000
_WORDS: Final = ("log", "--first-parent", "--reverse", "--no-show-signature")
_PATH: Final = r"(?P<path>[\w./~-]+?)(?:\.git)?/?"
#: Where a clone came from, as forges write it, by HTTPS and by SSH; what stands before the host is
#: nobody else's matter.
_REMOTES: Final = (
    re.compile(rf"https://(?:[^/@\s]*@)?(?P<host>[\w.-]+(?::\d+)?)/{_PATH}"),
    re.compile(rf"(?:ssh://)?[\w.-]+@(?P<host>[\w.-]+)(?::\d+)?[:/]{_PATH}"),
)


@dataclass(frozen=True, kw_only=True)
class Range:
    """The commits of a range, oldest first: the good end, ..., the bad end."""

    commits: tuple[RangeCommit, ...]
    #: Of each commit: its tree, by which its artifact is known, and its parents.
    trees: tuple[str, ...]
    parents: tuple[tuple[str, ...], ...]


def read_range(repository: Path, good: str, bad: str) -> Range:
    """Return the commits from `good` to `bad`.

    Raises:
        DoorError: There is no such range; says which one might be meant.
        OperatorError: Not a repository, or no such commit.
    """
    first, last = checkout.resolve(repository, good), checkout.resolve(repository, bad)
    if first.sha == last.sha:
        raise DoorError(f"{good} and {bad} are the same commit; name two, the older one first")
    between = f"{first.sha}..{last.sha}"
    counted = _git(repository, "rev-list", "--count", "--first-parent", between)
    try:
        refuse_range(int(counted) + 1)
    except BisectError as error:
        if int(counted) == 0:
            raise DoorError(
                f"{good} is newer than {bad}: forkwatch bisect {bad} {good} looks from the older "
                "one to the newer one"
            ) from error
        raise DoorError(str(error)) from error
    rows = _rows(repository, between)
    _refuse_other_lines(repository, (good, bad), (first, last), rows[0][2].split())
    files = _files(repository, between)
    return Range(
        commits=(_end(first), *_range_commits(rows, files)),
        trees=(first.tree, *(row[1] for row in rows)),
        parents=(first.parents, *(tuple(row[2].split()) for row in rows)),
    )


def merged_range(repository: Path, merge: str) -> Range | None:
    """Return what a merge of two brought: its first parent, the commits of the other, the merge.

    The commits are those along the first parents of the other that the first parent does not have.
    They were made beside it and not after it, so that what they lack of it is part of the merge
    here. None where there is no such commit, where there are too many, or where more were merged.

    Raises:
        DoorError, OperatorError: The commits cannot be read.
    """
    found = checkout.resolve(repository, merge)
    if len(found.parents) != 2:  # noqa: PLR2004  what was merged into, and what was
        return None
    onto, other = found.parents
    between = f"{onto}..{other}"
    rows = _rows(repository, between)
    if not 0 < len(rows) <= RANGE_COMMITS_MAX - 2:
        return None
    first = checkout.resolve(repository, onto)
    shown = checkout.git(repository, "diff", "--no-renames", "--name-only", other, merge)
    lacking = _thinned(shown.stdout.splitlines()) if shown.ok else ()
    return Range(
        commits=(
            _end(first),
            *_range_commits(rows, _files(repository, between)),
            replace(_end(found), files=lacking),
        ),
        trees=(first.tree, *(row[1] for row in rows), found.tree),
        # What stands before the merge here is the last commit that it merged.
        parents=(first.parents, *(tuple(row[2].split()) for row in rows), (other,)),
    )


def commit_address(repository: Path) -> str | None:
    """Return the address of commits at the forge that a repository was cloned from, if it was."""
    told = checkout.git(repository, "remote", "get-url", "origin")
    for pattern in _REMOTES if told.ok else ():
        found = pattern.fullmatch(told.stdout.strip())
        if found:
            return f"https://{found['host']}/{found['path']}/commit"
    return None


def _rows(repository: Path, between: str) -> list[list[str]]:
    """Return what git says of each commit along first parents, oldest first."""
    told = _git(repository, *_WORDS, "-z", f"--format={_FORMAT}", between)
    return [row.lstrip("\n").split("\x1f", 5) for row in told.split("\0") if row.strip()]


def _range_commits(
    rows: Iterable[list[str]], files: Mapping[str, tuple[str, ...]]
) -> Iterator[RangeCommit]:
    for sha, _, _, at, author, subject in rows:
        yield RangeCommit(
            sha=sha,
            subject=subject.rstrip("\n")[:_TEXT_MAX],
            author=author[:_TEXT_MAX],
            committed_at=datetime.fromisoformat(at),
            files=files.get(sha, ()),
        )


def _end(commit: Commit) -> RangeCommit:
    """Return an end of a range that has no paths of its own."""
    return RangeCommit(
        sha=commit.sha,
        subject=commit.subject,
        author=commit.author,
        committed_at=commit.committed_at,
        files=(),
    )


def _refuse_other_lines(
    repository: Path, names: tuple[str, str], ends: tuple[Commit, Commit], below: list[str]
) -> None:
    """Raise DoorError unless the parents `below` the oldest commit begin with the good end."""
    (good, bad), (first, last) = names, ends
    if below and below[0] == first.sha:
        return
    base = checkout.merge_base(repository, first.sha, last.sha)
    if base != first.sha:
        raise DoorError(
            f"{good} is no ancestor of {bad}; both parted at {short(base)}: forkwatch bisect "
            f"{short(base)} {bad}"
        )
    raise DoorError(
        f"{good} came into {bad} by a merge and is not on its first-parent line; that line passed "
        f"it at {short(below[0])}: forkwatch bisect {short(below[0])} {bad}"
    )


def _files(repository: Path, between: str) -> dict[str, tuple[str, ...]]:
    """Return the paths that each commit touches beside its first parent, evenly thinned if many."""
    words = ("--diff-merges=first-parent", "--no-renames", "--name-only", "--format=%x00%H")
    shown = checkout.git(repository, *_WORDS, *words, between)
    if not shown.ok:
        # Without paths every commit is as likely as the next, which only costs measurements.
        _log.warning("git does not tell which paths %s touches; all weigh the same", between)
        return {}
    found = {}
    for record in shown.stdout.split("\0"):
        lines = [line for line in record.split("\n") if line]
        if lines:
            sha, *paths = lines
            found[sha] = _thinned(paths)
    return found


def _thinned(paths: Sequence[str]) -> tuple[str, ...]:
    """Return paths, evenly thinned if there are many."""
    return tuple(paths[:: 1 + max(0, len(paths) - 1) // FILES_MAX])


def _git(repository: Path, *words: str) -> str:
    done = checkout.git(repository, *words)
    if not done.ok:
        lines = (done.stderr or done.stopped_by).strip().splitlines() or ["git failed"]
        raise DoorError(f"the commits of {repository} cannot be read: {lines[0]}")
    return done.stdout
