"""From a push to an alert on one machine with nothing made up but GitHub's own servers.

act runs the workflow of the documentation, and its forkwatch builds the demo fork with CMake and
measures MariaDB with sysbench, on the order of a service in a process of its own. That the lines of
the documentation install forkwatch is tested in `test_act.py`; here it is the one of this checkout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2
import pytest

from forkwatch.demo.fork import BRANCH, make_demo_fork
from tests.ci.forkwatch_double import program_text
from tests.ci.one_machine import one_machine
from tests.runner.processes import servers
from workloads.plan import PLAN_FILE

if TYPE_CHECKING:
    from pathlib import Path

# Six starts of a server at least, on a machine that may be busy.
pytestmark = [pytest.mark.ci, pytest.mark.timeout(1800)]

#: The smallest plan that finds the demo's slow commit: one workload, slices of a second.
SHORTER = {
    'workloads = ["scan", "point-query"]': 'workloads = ["scan"]',
    "rows = 200000": "rows = 50000",
    "seconds = 2": "seconds = 1",
}


class DemoFork:
    """A bare repository to which the demo's commits are pushed, each with the shorter plan."""

    def __init__(self, folder: Path) -> None:
        self.made = make_demo_fork(folder / "demo")
        self.folder = folder / "origin.git"
        self.repository = pygit2.clone_repository(
            str(self.made.repository), str(self.folder), bare=True
        )
        self._last: list[pygit2.Oid] = []

    def push(self, sha: str) -> str:
        """Push what a commit has; return the hash of the new one."""
        like = self.repository[sha].peel(pygit2.Commit)
        text = self.repository[like.tree[PLAN_FILE].id].data.decode()
        for old, new in SHORTER.items():
            assert old in text, old
            text = text.replace(old, new)
        index = pygit2.Index()
        index.read_tree(like.tree)
        plan = self.repository.create_blob(text.encode())
        index.add(pygit2.IndexEntry(PLAN_FILE, plan, 0o100644))
        tree = index.write_tree(self.repository)
        pushed = self.repository.create_commit(
            None, like.author, like.committer, like.message, tree, self._last
        )
        self.repository.references.create(f"refs/heads/{BRANCH}", pushed, force=True)
        self._last = [pushed]
        return str(pushed)


def test_a_slow_commit_is_measured_confirmed_and_alerted_by_jobs_of_github(tmp_path):
    fork = DemoFork(tmp_path)
    before = fork.made.commits[fork.made.commits.index(fork.made.slow) - 1]
    base = fork.push(before)
    with one_machine(
        tmp_path, fork.folder, program=program_text("forkwatch"), fork="demo-mariadb"
    ) as machine:
        first = machine.judged(base)
        assert first["commit"]["outcome"] == "baseline", machine.said()

        sha = fork.push(fork.made.slow)
        slow = machine.push(sha)

        assert slow["commit"]["outcome"] == "regression", machine.said()
        runs = machine.over(sha)
        assert [run["conclusion"] for run in runs] == ["success", "success"]
        (item,) = slow["alert"]["workloads"]
        assert item["workload"] == "scan"
        assert -0.5 < item["effect"] < -0.08
        assert {run["host_class"] for run in slow["runs"]} == {"small"}
    assert servers(tmp_path) == []
