"""The range of a bisect, read from git: the commits of (good, bad] along first parents.

Two revisions come in, commits with the paths they touch go out. A pair of revisions that is no
such range is an error that says which range it might have been.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from bisects.commits import RangeCommit, refuse_range
from bisects.errors import BisectError
from forkwatch.errors import DoorError
from reports.numbers import short
from runner import checkout

if TYPE_CHECKING:
    from pathlib import Path

    from results.document import Commit

_log = logging.getLogger("forkwatch.bisect")

#: The author and the subject come last: they may hold any character but NUL.
_FORMAT: Final = "%H%x1f%T%x1f%P%x1f%cI%x1f%an%x1f%s"
_TEXT_MAX: Final = 500
#: Paths kept of one commit; what touches more moves the tree about, and some of them show it.
FILES_MAX: Final = 1_000
_WORDS: Final = ("log", "--first-parent", "--reverse", "--no-show-signature")


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
    rows = [
        row.lstrip("\n").split("\x1f", 5)
        for row in _git(repository, *_WORDS, "-z", f"--format={_FORMAT}", between).split("\0")
        if row.strip()
    ]
    _refuse_other_lines(repository, (good, bad), (first, last), rows[0][2].split())
    files = _files(repository, between)
    return Range(
        commits=(
            _range_commit(
                first.sha, first.committed_at.isoformat(), first.author, first.subject, files=()
            ),
            *(
                _range_commit(sha, at, author, subject, files=files.get(sha, ()))
                for sha, _, _, at, author, subject in rows
            ),
        ),
        trees=(first.tree, *(row[1] for row in rows)),
        parents=(first.parents, *(tuple(row[2].split()) for row in rows)),
    )


def _range_commit(
    sha: str, at: str, author: str, subject: str, *, files: tuple[str, ...]
) -> RangeCommit:
    return RangeCommit(
        sha=sha,
        subject=subject.rstrip("\n")[:_TEXT_MAX],
        author=author[:_TEXT_MAX],
        committed_at=datetime.fromisoformat(at),
        files=files,
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
            found[sha] = tuple(paths[:: 1 + max(0, len(paths) - 1) // FILES_MAX])
    return found


def _git(repository: Path, *words: str) -> str:
    done = checkout.git(repository, *words)
    if not done.ok:
        lines = (done.stderr or done.stopped_by).strip().splitlines() or ["git failed"]
        raise DoorError(f"the commits of {repository} cannot be read: {lines[0]}")
    return done.stdout
