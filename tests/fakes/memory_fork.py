"""A code host and a dispatcher in memory: a fork whose commits say how they measure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bisects.commits import RangeCommit
from service.core.errors import CodeHostError, DispatchError
from service.core.model import GitCommit, JobStatus
from tests.fakes.run_documents import TREE
from tests.fakes.scripted_measurement import PLAN, directives, measure

if TYPE_CHECKING:
    from results.job import JobOrder
    from service.core.model import Alert
    from workloads.plan import Notify

AT = datetime(2026, 11, 3, 6, 30, tzinfo=UTC)


def sha_of(number: int) -> str:
    """Return the hash of the n-th commit of a memory fork."""
    return f"{number:040x}"


def _files(subject: str) -> tuple[str, ...]:
    found = re.search(r"files=(\S+)", subject)
    return tuple(found[1].split(",")) if found else ("sql/handler.cc",)


def _ranged(one: GitCommit) -> RangeCommit:
    return RangeCommit(
        sha=one.sha,
        subject=one.subject,
        author=one.author,
        committed_at=one.committed_at,
        files=_files(one.subject),
    )


class MemoryFork:
    """A branch, as a list of subjects."""

    def __init__(self, *subjects: str, plan: str = PLAN) -> None:
        self.plan = plan
        self.broken = False
        self.commits: list[GitCommit] = []
        #: What commits merged, by their hashes, oldest first.
        self.merges: dict[str, list[GitCommit]] = {}
        for subject in subjects:
            self.push(subject)

    def push(self, subject: str) -> str:
        """Add a commit to the branch and return its hash."""
        number = len(self.commits) + 1
        commit = GitCommit(
            sha=sha_of(number),
            tree=TREE,
            parent=sha_of(number - 1) if number > 1 else None,
            author="Ada",
            subject=subject,
            committed_at=AT,
        )
        self.commits.append(commit)
        return commit.sha

    @property
    def subjects(self) -> dict[str, str]:
        """Subject by hash."""
        return {commit.sha: commit.subject for commit in self.commits}

    @property
    def repository(self) -> Path:
        """A path that nobody opens."""
        return Path("/nowhere")

    def plan_text(self) -> str:
        if self.broken:
            raise CodeHostError("the repository is away")
        return self.plan

    def branch_commits(self, branch: str, *, limit: int) -> list[GitCommit]:
        assert branch == "main"
        return self.commits[-limit:]

    def commits_between(self, good: str, bad: str, *, limit: int) -> list[RangeCommit]:
        """Return what lies between; `files=a.cc,b.md` in a subject says what is touched."""
        self.plan_text()  # As broken as the rest.
        shas = [commit.sha for commit in self.commits]
        if not {good, bad} <= set(shas):
            return []
        between = self.commits[shas.index(good) : shas.index(bad) + 1]
        if len(between) > limit:
            return []
        return [_ranged(one) for one in between]

    def merged_commits(self, merge: str, *, limit: int) -> list[RangeCommit]:
        """Return what a commit merged, where a test has said so."""
        self.plan_text()  # As broken as the rest.
        merged = self.merges.get(merge, [])
        if not 0 < len(merged) <= limit - 2:
            return []
        last = self.commit(merge)
        assert last.parent is not None
        return [_ranged(one) for one in (self.commit(last.parent), *merged, last)]

    def commit(self, sha: str) -> GitCommit:
        return next(commit for commit in self.commits if commit.sha == sha)


class MemoryRunners:
    """Runners that are done at once.

    `lose=2` in a subject loses the first two of each job, `loseconfirm=9` nine of the paired one.
    """

    def __init__(self, fork: MemoryFork) -> None:
        self._fork = fork
        self.orders: list[JobOrder] = []
        self._documents: dict[str, bytes] = {}

    def start(self, order: JobOrder) -> None:
        self.orders.append(order)
        said = directives(self._fork.subjects[order.candidate])
        losses = said.get("loseconfirm" if order.baseline else "lose", "0")
        if self.starts_of(order.job) > int(losses):
            document = measure(order, self._fork.subjects)
            self._documents[order.job] = document.model_dump_json().encode()

    def starts_of(self, job: str) -> int:
        """Return how often a job was started."""
        return sum(order.job == job for order in self.orders)

    def status(self, job: str) -> JobStatus:
        return JobStatus.FINISHED if job in self._documents else JobStatus.LOST

    def stop(self, job: str) -> None:
        raise AssertionError(f"nobody should stop {job}")

    def collect(self, job: str) -> bytes:
        if job not in self._documents:
            raise DispatchError
        return self._documents[job]


class MemoryAlerts:
    """Alerts by id, and how often each was told."""

    def __init__(self) -> None:
        self.told: dict[str, tuple[Alert, str]] = {}
        self.calls = 0

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        self.calls += 1
        self.told[alert.id] = (alert, text)
        return f"memory:{alert.id}"


class StillClock:
    """A clock that moves only when told to."""

    def __init__(self, at: datetime = AT) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self._at += by
