"""The fork of the story: a real git repository, and beside it what its commits cost.

What a commit does to throughput is planted here and nowhere in the repository, so that nothing
which reads the fork can know it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pygit2
from pygit2.enums import FileMode

from results.document import Commit
from workloads.plan import PLAN_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FORK: Final = "mariadb-fork"
PLAN: Final = f"""
[fork]
name = "{FORK}"
branch = "main"
engine = "mariadb"

[builds.rel]

[suites.commit]
workloads = [
  "scan", "point-query", "random-points(100)", "update-index", "update-nonindex", "insert",
]

[gates]
default = 0.05
"""
_BRANCH: Final = "refs/heads/main"
_BETWEEN_COMMITS: Final = timedelta(minutes=1)
#: What is below these installs nothing.
_INSTALLS_NOTHING: Final = ("Docs/", "mysql-test/")


@dataclass(frozen=True, kw_only=True)
class Deed:
    """A commit that somebody makes, and what is planted in it."""

    subject: str
    author: str
    #: Paths that it touches.
    files: tuple[str, ...]
    #: Throughput after it over throughput before it, by workload.
    factors: Mapping[str, float] = field(default_factory=dict)
    #: The same, of its first measurement alone: bad luck that comes once.
    luck: Mapping[str, float] = field(default_factory=dict)
    #: Why the host cannot be trusted while it is measured alone; empty where it can.
    trouble: str = ""


class StoryFork:
    """A bare repository whose branch and pull requests are pushed to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._repository = pygit2.init_repository(str(folder), bare=True, initial_head="main")
        self._deeds: dict[str, Deed] = {}

    def push(self, deeds: Sequence[Deed], *, at: datetime) -> list[str]:
        """Commit these to the branch, which shows all of them at once; return their hashes."""
        tip: str | None = None
        if not self._repository.head_is_unborn:
            tip = self._tip()
        made: list[str] = []
        for place, deed in enumerate(deeds):
            tip = self._commit(deed, parent=tip, at=at + place * _BETWEEN_COMMITS)
            made.append(tip)
        self._point(_BRANCH, made[-1])
        return made

    def open(self, number: int, deed: Deed, *, parent: str | None = None, at: datetime) -> str:
        """Push the head of a pull request, onto the branch or onto `parent`; return its hash."""
        head = self._commit(deed, parent=parent or self._tip(), at=at)
        self._point(f"refs/pull/{number}/head", head)
        return head

    def deed(self, sha: str) -> Deed:
        """Return what was done in a commit."""
        return self._deeds[sha]

    def factor(self, sha: str, workload: str) -> float:
        """Return the throughput at a commit over that of the first of all."""
        made = 1.0
        for one in self._line(sha):
            made *= self._deeds[one].factors.get(workload, 1.0)
        return made

    def content(self, sha: str) -> str:
        """Return a name for what a commit installs: its own, or that of the one it leaves so."""
        for one in self._line(sha):
            if any(not path.startswith(_INSTALLS_NOTHING) for path in self._deeds[one].files):
                return f"content-{one[:12]}"
        raise AssertionError("the first commit of all installs something")

    def commit(self, sha: str) -> Commit:
        """Return a commit as a run document has it."""
        found = self._found(sha)
        return Commit(
            sha=sha,
            tree=str(found.tree_id),
            parents=tuple(str(parent) for parent in found.parent_ids),
            author=found.author.name,
            subject=found.message.strip(),
            committed_at=datetime.fromtimestamp(found.commit_time, UTC),
        )

    def _line(self, sha: str) -> list[str]:
        """Return a commit and its ancestors, nearest first."""
        line = [sha]
        while parents := self._found(line[-1]).parent_ids:
            line.append(str(parents[0]))
        return line

    def _tip(self) -> str:
        return str(self._repository.references[_BRANCH].target)

    def _found(self, sha: str) -> pygit2.Commit:
        return self._repository[sha].peel(pygit2.Commit)

    def _point(self, reference: str, sha: str) -> None:
        self._repository.references.create(reference, pygit2.Oid(hex=sha), force=True)

    def _commit(self, deed: Deed, *, parent: str | None, at: datetime) -> str:
        repository, index = self._repository, pygit2.Index()
        if parent is not None:
            index.read_tree(self._found(parent).tree)
        changed = dict.fromkeys(deed.files, f"{deed.subject}\n")
        if parent is None:
            changed[PLAN_FILE] = PLAN
        for path, text in changed.items():
            blob = repository.create_blob(text.encode())
            index.add(pygit2.IndexEntry(path, blob, FileMode.BLOB))
        mail = f"{deed.author.partition(' ')[0].lower()}@example.org"
        who = pygit2.Signature(deed.author, mail, int(at.timestamp()), 0)
        parents: list[pygit2.Oid | str] = [] if parent is None else [pygit2.Oid(hex=parent)]
        tree = index.write_tree(repository)
        made = str(repository.create_commit(None, who, who, deed.subject, tree, parents))
        self._deeds[made] = deed
        return made
