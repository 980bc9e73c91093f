"""A fork's history as its recipes keep it: what earlier builds would have left on the branch.

A repository and runs go in; entries of the branch come out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pygit2

from forkwatch.history_places import BranchPlace
from forkwatch.history_text import entries_of, file_of, read, with_entry
from results.job import JobOrder
from tests.fakes.scripted_measurement import PLAN, measure
from workloads.plan import PLAN_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forkwatch.history_text import Entry
    from results.document import RunDocument
    from results.series import SeriesKey
    from tests.fakes.git_fork import GitFork

FORKWATCH_PLAN: Final = PLAN + "\n[hosts.small]\n\n[hosts.default]\n"
HISTORY: Final = "forkwatch-history"


def propose(fork: GitFork, subject: str, *, parent: str, plan: str) -> str:
    """Commit to a branch of its own, with a plan of its own; return the commit's hash."""
    repository = pygit2.Repository(str(fork.folder))
    builder = repository.TreeBuilder()
    builder.insert(PLAN_FILE, repository.create_blob(plan.encode()), 0o100644)
    who = pygit2.Signature("Bob", "bob@example.org", 1_770_000_000, 0)
    return str(
        repository.create_commit("refs/heads/topic", who, who, subject, builder.write(), [parent])
    )


def own_run(
    fork: GitFork, sha: str, subject: str, seed: int, *, host_class: str = "small"
) -> RunDocument:
    """Return the run of a commit that its subject asks for."""
    order = JobOrder(
        job=f"own-{seed}",
        run=f"own-{seed}",
        repository=fork.folder,
        plan=FORKWATCH_PLAN,
        branch="main",
        suite="commit",
        host_class=host_class,
        candidate=sha,
        seed=seed,
    )
    return measure(order, {sha: subject}, host_class=host_class)


def kept(fork: GitFork, key: SeriesKey) -> Sequence[Entry]:
    """Return what the branch of the history says of a series."""
    place = BranchPlace(repository=fork.folder, branch=HISTORY, remote=".")
    name = file_of(key)
    return read(place.read([name]).get(name, ""), source=name)


def keep(fork: GitFork, document: RunDocument) -> None:
    """Add a run to the branch of the history."""
    place = BranchPlace(repository=fork.folder, branch=HISTORY, remote=".")
    for key, entry in entries_of(document).items():
        name = file_of(key)

        def change(files, name=name, key=key, entry=entry):
            return {name: with_entry(files.get(name, ""), key, entry, source=name)}

        assert place.update([name], change, message="before")


def keep_usual(fork: GitFork, commits: int, *, host_class: str = "small") -> None:
    """Push so many commits without a change, and add their runs."""
    for seed in range(1, commits + 1):
        subject = f"usual work {seed}"
        run = own_run(fork, fork.push(subject), subject, seed, host_class=host_class)
        keep(fork, run)
