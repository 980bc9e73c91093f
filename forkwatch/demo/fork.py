"""The demo fork: a series of patches in, a git repository with known commits out.

The fork is a MariaDB distribution: a launcher in C that starts the system's server with the fork's
own copy library and defaults. Authors, dates and contents are fixed, so the commits have the same
hashes on every machine. This module starts no program and knows nothing of measuring.
"""

from __future__ import annotations

import email.message
import email.parser
import email.policy
import shutil
from dataclasses import dataclass
from email.utils import parseaddr, parsedate_to_datetime
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import ApplyLocation

from forkwatch.errors import DemoForkError

SERIES: Final = Path(__file__).parent / "series"
BRANCH: Final = "main"

#: Places in the history, counted from 1 as the files of the series are.
_DOCS_ONLY: Final = 4
_BROKEN: Final = 5
_SLOW: Final = 7

_FIRST_MESSAGE: Final = """\
Import the distribution

The launcher, the copy library and the defaults that we ship today.
"""
_FIRST_SIGNATURE: Final = pygit2.Signature(
    "Demo Maintainer", "maintainer@demo.example", time=1_772_359_200, offset=0
)


@dataclass(frozen=True, kw_only=True)
class DemoFork:
    """A demo fork on disk and what is true about its commits."""

    repository: Path
    branch: str
    #: All commits, first one first.
    commits: tuple[str, ...]
    #: Makes full scans slower and leaves point queries as they were.
    slow: str
    #: Does not compile; the commit after it repairs that.
    broken: str
    #: Installs the same files as its parent.
    docs_only: str


@dataclass(frozen=True, kw_only=True)
class _Patch:
    signature: pygit2.Signature
    message: str
    diff: str


def make_demo_fork(folder: Path) -> DemoFork:
    """Return a demo fork newly made in `folder`, with the newest commit checked out.

    Raises:
        DemoForkError: `folder` exists and is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DemoForkError(f"{folder} is not an empty folder; name one that can be filled")
    folder.mkdir(parents=True, exist_ok=True)
    repository = pygit2.init_repository(folder, initial_head=BRANCH)
    _copy_first_tree(folder, repository.index)
    commits = [_commit(repository, _FIRST_SIGNATURE, _FIRST_MESSAGE)]
    for path in sorted(SERIES.glob("*.patch")):
        patch = _read_patch(path.read_text(encoding="utf-8"))
        repository.apply(pygit2.Diff.parse_diff(patch.diff), ApplyLocation.BOTH)
        repository.index.read()
        commits.append(_commit(repository, patch.signature, patch.message))
    return DemoFork(
        repository=folder,
        branch=BRANCH,
        commits=tuple(commits),
        slow=commits[_SLOW - 1],
        broken=commits[_BROKEN - 1],
        docs_only=commits[_DOCS_ONLY - 1],
    )


def _copy_first_tree(folder: Path, index: pygit2.Index) -> None:
    """Fill `folder` and add each file by name, so that nobody's global ignore list hides one."""
    first = SERIES / "0001-initial"
    shutil.copytree(first, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for path in sorted(first.rglob("*")):
        if path.is_file():
            index.add(path.relative_to(first).as_posix())


def _commit(repository: pygit2.Repository, signature: pygit2.Signature, message: str) -> str:
    """Commit the index on top of the branch and return the new commit's hash."""
    tree = repository.index.write_tree()
    repository.index.write()
    parents = [] if repository.head_is_unborn else [repository.head.target]
    new = repository.create_commit("HEAD", signature, signature, message, tree, parents)
    return str(new)


def _read_patch(text: str) -> _Patch:
    """Return a patch as `git format-patch` writes it, taken apart."""
    parser = email.parser.Parser(email.message.EmailMessage, policy=email.policy.default)
    mail = parser.parsestr(text)
    name, address = parseaddr(mail["From"])
    date = parsedate_to_datetime(mail["Date"])
    offset = date.utcoffset()
    assert offset is not None, "git writes the offset of every date"
    body, marker, diff = mail.get_content().partition("diff --git ")
    assert marker, "a patch without a diff changes nothing"
    return _Patch(
        signature=pygit2.Signature(
            name, address, int(date.timestamp()), int(offset.total_seconds()) // 60
        ),
        message=f"{mail['Subject']}\n\n{body.strip()}\n",
        diff=marker + diff,
    )
