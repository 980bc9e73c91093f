"""A fork with pull requests in memory, runners that can be kept at work, and a GitHub that listens.

    fork = MemoryPulls("Import", "Quiet")
    head = fork.open(7, "Slower scan speed=0.8")

The subject of a head says how it measures, as for commits; `wait=yes` keeps its runner at work.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from service.channels.github.errors import RateLimitedError
from service.core.model import GitCommit, JobStatus
from service.core.pull_requests import PullCommits
from tests.fakes.memory_fork import AT, MemoryFork, MemoryRunners
from tests.fakes.run_documents import TREE
from tests.fakes.scripted_measurement import PLAN, directives, measure

if TYPE_CHECKING:
    from reports.check import CheckText
    from results.job import JobOrder
    from service.core.alert_actions import AlertOrder


class MemoryPulls(MemoryFork):
    """A branch and pull requests."""

    def __init__(self, *subjects: str, plan: str = PLAN) -> None:
        super().__init__(*subjects, plan=plan)
        self.pulls: dict[int, PullCommits] = {}
        self.heads: dict[str, GitCommit] = {}
        self.refreshed: list[str] = []

    def open(self, number: int, subject: str) -> str:
        """Push a head to a pull request, which parted from the branch where that is now."""
        base = self.pulls[number].merge_base if number in self.pulls else self.commits[-1]
        head = GitCommit(
            sha=f"{0xABC000000 + len(self.heads):040x}",
            tree=TREE,
            parent=base.sha if base else None,
            author="Bob",
            subject=subject,
            committed_at=AT,
        )
        self.heads[head.sha] = head
        self.pulls[number] = PullCommits(head=head, merge_base=base)
        return head.sha

    def merged(self, number: int) -> None:
        """Have the base branch hold the head already."""
        pull = self.pulls[number]
        self.pulls[number] = replace(pull, merge_base=pull.head)

    @property
    def subjects(self) -> dict[str, str]:
        """Subject by hash."""
        return super().subjects | {sha: head.subject for sha, head in self.heads.items()}

    def pull_request(self, number: int, *, base: str) -> PullCommits:
        self.plan_text()  # As broken as the rest.
        assert base
        return self.pulls[number]

    def resolve(self, revision: str) -> GitCommit | None:
        if revision == "main":
            return self.commits[-1]
        known = [*self.commits, *self.heads.values()]
        return next((commit for commit in known if commit.sha == revision), None)

    def refresh(self, branch: str) -> None:
        self.plan_text()
        self.refreshed.append(branch)


class PatientRunners(MemoryRunners):
    """Runners that are done at once, but for those that wait."""

    def __init__(self, fork: MemoryPulls) -> None:
        super().__init__(fork)
        self.stopped: list[str] = []
        self.at_work: set[str] = set()

    def start(self, order: JobOrder) -> None:
        if "wait" not in directives(self._fork.subjects[order.candidate]):
            super().start(order)
            return
        self.orders.append(order)
        self.at_work.add(order.job)

    def release(self, job: str) -> None:
        """Let a runner that waits come to its end."""
        self.at_work.remove(job)
        order = next(order for order in self.orders if order.job == job)
        document = measure(order, self._fork.subjects)
        self._documents[job] = document.model_dump_json().encode()

    def status(self, job: str) -> JobStatus:
        return JobStatus.ALIVE if job in self.at_work else super().status(job)

    def stop(self, job: str) -> None:
        self.stopped.append(job)
        self.at_work.discard(job)


class Mood:
    """What GitHub answers next: a limit in the place of an answer, as often as was ordered."""

    def __init__(self) -> None:
        self.limits: list[float] = []

    def ask(self) -> None:
        """Be refused, if that was ordered."""
        if self.limits:
            raise RateLimitedError("too many requests", retry_after_s=self.limits.pop(0))


class MemoryChecks:
    """Checks on commits."""

    def __init__(self, mood: Mood) -> None:
        self._mood = mood
        #: By commit, suite and key.
        self.shown: dict[tuple[str, str, str], CheckText] = {}

    def publish(
        self, sha: str, check: CheckText, *, suite: str, key: str, page: str | None = None
    ) -> str:
        self._mood.ask()
        self.shown[sha, suite, key] = check
        return f"memory:{sha}"

    def of(self, sha: str) -> list[CheckText]:
        """Return the checks of a commit, in the order in which they were made."""
        return [check for (on, _, _), check in self.shown.items() if on == sha]


class MemoryTalk:
    """Comments on pull requests and issues."""

    def __init__(self, mood: Mood) -> None:
        self._mood = mood
        #: By number and suite.
        self.stuck: dict[tuple[int, str], str] = {}
        #: By the comment that asked.
        self.answers: dict[int, str] = {}
        self.answered: Counter[int] = Counter()
        self.seen: list[int] = []

    def stick(self, pull: int, text: str, *, suite: str, loud: bool) -> str | None:
        self._mood.ask()
        if not loud and (pull, suite) not in self.stuck:
            return None
        self.stuck[pull, suite] = text
        return f"memory:{pull}:{suite}"

    def answer(self, number: int, question: int, text: str) -> str:
        self._mood.ask()
        self.answers[question] = text
        self.answered[question] += 1
        return f"memory:{number}:{question}"

    def acknowledge(self, question: int) -> None:
        self._mood.ask()
        self.seen.append(question)


class Writers:
    """People who may write to the repository; whoever is asked about is remembered."""

    def __init__(self, *logins: str) -> None:
        self.logins = set(logins)
        self.asked: list[str] = []

    def may_write(self, login: str) -> bool:
        self.asked.append(login)
        return login in self.logins


class HeardActions:
    """Orders about alerts, as they were given."""

    def __init__(self) -> None:
        self.orders: list[AlertOrder] = []
        self.refusal: Exception | None = None

    def act(self, order: AlertOrder) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.orders.append(order)
