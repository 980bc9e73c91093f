"""A real git repository with a plan and commits that have only subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2

from tests.fakes.scripted_measurement import PLAN
from workloads.plan import PLAN_FILE

if TYPE_CHECKING:
    from pathlib import Path


class GitFork:
    """A repository whose branch is pushed to by tests."""

    def __init__(self, folder: Path, *, plan: str = PLAN) -> None:
        self.folder = folder
        self._repository = pygit2.init_repository(str(folder), bare=True, initial_head="main")
        self._plan = plan
        self._clock = 1_760_000_000

    def push(self, subject: str, *, also: str | None = None) -> str:
        """Commit to the branch, merging `also` where given; return the commit's hash."""
        repository = self._repository
        self._clock += 60
        builder = repository.TreeBuilder()
        builder.insert(PLAN_FILE, repository.create_blob(self._plan.encode()), 0o100644)
        note = repository.create_blob(f"{subject} {self._clock}".encode())
        builder.insert("note", note, 0o100644)
        who = pygit2.Signature("Ada", "ada@example.org", self._clock, 120)
        parents = [] if repository.head_is_unborn else [repository.head.target]
        if also is not None:
            parents.append(pygit2.Oid(hex=also))
        commit = repository.create_commit(
            "refs/heads/main", who, who, subject, builder.write(), parents
        )
        return str(commit)

    def commit_aside(self, subject: str, *, parent: str) -> str:
        """Commit to no branch; return the commit's hash."""
        repository = self._repository
        who = pygit2.Signature("Bob", "bob@example.org", self._clock, 0)
        tree = repository[parent].peel(pygit2.Commit).tree_id
        return str(repository.create_commit(None, who, who, subject, tree, [parent]))
