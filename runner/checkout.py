"""Checkout: commits of a local repository as facts and as worktrees.

Git is asked through its own program, because it knows worktrees, filters and submodules best. The
worktree's link to the repository is not visible inside the sandbox, so a build cannot reach history
or embed a commit id that would make equal trees build unequal binaries.
"""

from __future__ import annotations

import contextlib
import shutil
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final

from results.document import Commit
from runner import shell
from runner.errors import OperatorError, StageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GIT_TIMEOUT_S: Final = 600
_FORMAT: Final = "%H%x1f%T%x1f%P%x1f%cI%x1f%an%x1f%s"
_SUBJECT_LENGTH_MAX: Final = 500


def git(repository: Path, *words: str) -> shell.Completed:
    """Run git in `repository`, whoever owns it, and return how it ended."""
    program = shell.require("git", package="git")
    prefix = [program, "-c", "safe.directory=*", "-C", str(repository)]
    return shell.run([*prefix, *words], timeout_s=GIT_TIMEOUT_S)


def resolve(repository: Path, revision: str) -> Commit:
    """Return the commit that `revision` names.

    Raises:
        OperatorError: Not a repository, or no such commit.
    """
    if revision.startswith("-"):
        raise OperatorError(f"{revision!r} is not a revision")
    shown = git(repository, "show", "--no-patch", f"--format={_FORMAT}", f"{revision}^{{commit}}")
    if not shown.ok:
        reason = shown.stderr.strip().splitlines()
        raise OperatorError(
            f"no commit {revision!r} in {repository}: {reason[0] if reason else 'git failed'}"
        )
    sha, tree, parents, committed_at, names = shown.stdout.rstrip("\n").split("\x1f", 4)
    # People may have any character in their names, and what is left over is the subject's.
    author, _, subject = names.partition("\x1f")
    return Commit(
        sha=sha,
        tree=tree,
        parents=tuple(parents.split()),
        author=author[:_SUBJECT_LENGTH_MAX],
        subject=subject[:_SUBJECT_LENGTH_MAX],
        committed_at=datetime.fromisoformat(committed_at),
    )


def merge_base(repository: Path, one: str, other: str) -> str:
    """Return the best common ancestor of two revisions.

    Raises:
        OperatorError: They have none.
    """
    found = git(repository, "merge-base", one, other)
    if not found.ok:
        raise OperatorError(f"{one} and {other} have no common ancestor")
    return found.stdout.strip()


@contextmanager
def worktree(repository: Path, commit: Commit, folder: Path) -> Iterator[Path]:
    """Give a worktree of `commit` at `folder`, removed again at the end.

    Raises:
        StageError: git could not make it (stage `checkout`).
    """
    # A killed runner leaves its folder and git's record of it behind.
    shutil.rmtree(folder, ignore_errors=True)
    _forget(repository, folder)
    try:
        # Within: a big tree takes long enough to be interrupted half-way.
        added = git(repository, "worktree", "add", "--detach", "--force", str(folder), commit.sha)
        if not added.ok:
            raise StageError("checkout", f"git worktree add failed for {commit.sha}", added.stderr)
        if (folder / ".gitmodules").exists():
            updated = git(folder, "submodule", "update", "--init", "--recursive", "--depth", "1")
            if not updated.ok:
                raise StageError("checkout", "git submodule update failed", updated.stderr)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            _forget(repository, folder)


def _forget(repository: Path, folder: Path) -> None:
    """Have git forget a worktree whose folder is gone."""
    # Git locks a worktree while it makes it; one that was killed meanwhile stays locked for good.
    git(repository, "worktree", "unlock", str(folder))
    git(repository, "worktree", "prune")
