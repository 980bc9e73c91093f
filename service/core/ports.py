"""The ports: what the service asks of the outside, as small protocols.

`channels` has the real adapters, `tests/` the fakes; only `app/compose.py` knows which is in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pathlib import Path

    from bisects.commits import RangeCommit
    from reports.check import CheckText
    from results.job import JobOrder
    from service.core.alert_actions import AlertOrder
    from service.core.digests import StoredDigest
    from service.core.dispatching import CiRun, RunAsk
    from service.core.identity import CiSystem
    from service.core.model import Alert, GitCommit, JobStatus
    from service.core.pull_requests import PullCommits
    from workloads.plan import Notify


class CodeHost(Protocol):
    """Where the fork's commits and its plan come from."""

    @property
    def repository(self) -> Path:
        """A local git repository that runners on this machine can fetch from."""
        ...

    def plan_text(self) -> str:
        """Return the plan as the default branch's head has it.

        Raises:
            CodeHostError: The repository or the plan cannot be read.
        """
        ...

    def branch_commits(self, branch: str, *, limit: int) -> list[GitCommit]:
        """Return the newest `limit` first-parent commits of a branch, oldest first.

        Raises:
            CodeHostError: The repository or the branch cannot be read.
        """
        ...

    def commit(self, sha: str) -> GitCommit:
        """Return one commit.

        Raises:
            CodeHostError: It cannot be read.
        """
        ...

    def refresh(self, branch: str) -> None:
        """Bring a branch up to date, where this is a copy of another repository.

        Raises:
            CodeHostError: The other repository cannot be read now.
        """
        ...

    def pull_request(self, number: int, *, base: str) -> PullCommits:
        """Return head and merge base of a pull request as they are now, its commits fetched.

        Raises:
            CodeHostError: It, or the branch `base`, cannot be read.
        """
        ...

    def resolve(self, revision: str) -> GitCommit | None:
        """Return the commit that a branch, a tag or a hash names, None where it names nothing.

        Heads of pull requests have no names here.

        Raises:
            CodeHostError: The repository cannot be read.
        """
        ...

    def commits_between(self, good: str, bad: str, *, limit: int) -> list[RangeCommit]:
        """Return good, bad and what lies between along first parents, oldest first, with paths.

        Nothing where good is none of the newest `limit` commits that lead to bad. Both are hashes.

        Raises:
            CodeHostError: The repository cannot be read.
        """
        ...

    def merged_commits(self, merge: str, *, limit: int) -> list[RangeCommit]:
        """Return a merge's first parent, what it merged along first parents, and the merge.

        Nothing where it is no merge of two, or there would be more than `limit`.

        Raises:
            CodeHostError: The repository cannot be read.
        """
        ...


class Dispatcher(Protocol):
    """Starts jobs on runners and looks after them."""

    def start(self, order: JobOrder) -> None:
        """Start a runner on a job that has no runner now; a runner resumes where one left off.

        Raises:
            DispatchError: No runner could be started.
        """
        ...

    def status(self, job: str) -> JobStatus:
        """Return what became of a job; a job never started is lost."""
        ...

    def stop(self, job: str) -> None:
        """Stop the runner of a job, if it has one."""
        ...

    def collect(self, job: str) -> bytes:
        """Return the run document of a finished job as JSON.

        Raises:
            DispatchError: There is none.
        """
        ...


@runtime_checkable
class ExplainingDispatcher(Dispatcher, Protocol):
    """Knows why a job was lost, too."""

    def why_lost(self, job: str) -> str:
        """Return why the last runner of a job brought nothing; empty where that is not known."""
        ...


@runtime_checkable
class ElsewhereDispatcher(Dispatcher, Protocol):
    """Has jobs done by other machines, so that several of one host class may work at once."""

    def is_elsewhere(self, host_class: str) -> bool:
        """Whether jobs of a host class are done by other machines than this one."""
        ...

    def begun(self, prefix: str) -> dict[str, JobStatus]:
        """Return the jobs elsewhere whose names begin so, and what became of each."""
        ...


class CiRunners(Protocol):
    """Has runners of a CI come for jobs: one workflow, or one pipeline."""

    @property
    def system(self) -> CiSystem:
        """The CI, as the tokens of its jobs name it."""
        ...

    def begin(self, ask: RunAsk) -> CiRun | None:
        """Ask for a run; return it where the CI says at once which it is.

        Raises:
            TransientError: It may have begun or not: look for it before asking again.
            DispatchRefusedError: It is not begun, now or later.
        """
        ...

    def find(self, ask: RunAsk) -> CiRun | None:
        """Return the run that was begun for an ask, None where there is none to be seen.

        Raises:
            TransientError: The CI cannot be asked now.
            DispatchRefusedError: The CI does not answer us.
        """
        ...

    def look(self, external_id: str) -> CiRun:
        """Return how a run is; one that is gone has ended.

        Raises:
            TransientError: The CI cannot be asked now.
            DispatchRefusedError: The CI does not answer us.
        """
        ...

    def cancel(self, external_id: str) -> None:
        """Ask for the end of a run; one that is over stays so.

        Raises:
            TransientError: The CI cannot be asked now.
        """
        ...


class AlertSink(Protocol):
    """Tells people about alerts."""

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        """Tell about an alert, once however often called; return where it can be seen.

        Args:
            alert: What it is about; its id tells one from another.
            text: The alert in Markdown.
            notify: Where the fork wants to be told.
        """
        ...


@runtime_checkable
class AlertTracker(AlertSink, Protocol):
    """Keeps something open about each alert for as long as it lasts, such as an issue."""

    def close_alert(
        self, alert: Alert, text: str, *, key: str, intended: bool = False
    ) -> str | None:
        """Close it and say why, once for each key; return where it is, None where there is none.

        Args:
            alert: What it is about.
            text: Why, in Markdown.
            key: What closed it, such as a commit.
            intended: Somebody takes the loss as intended; else it is gone.
        """
        ...

    def reopen_alert(self, alert: Alert, text: str, *, key: str) -> str | None:
        """Open it again and say why, once for each key; return where it is, if it is anywhere."""
        ...


class AlertActions(Protocol):
    """Carries out what people order about alerts."""

    def act(self, order: AlertOrder) -> Alert:
        """Carry an order out and return the alert as it is then; the same key is done once.

        Raises:
            ActionError: There is no such alert, or the order is not possible now; the message is
                for whoever gave it.
        """
        ...


class CheckSink(Protocol):
    """Shows on a commit what is known about it."""

    def publish(
        self, sha: str, check: CheckText, *, suite: str, key: str, page: str | None = None
    ) -> str:
        """Show it, once however often called, and bring it up to date; return where it is.

        Args:
            sha: The commit.
            check: What to show; without a conclusion it is under way.
            suite: Name of the measurement among others of the commit.
            key: What it is about, such as a job; another key is another check.
            page: Where to read more.
        """
        ...


class PullRequestComments(Protocol):
    """Talks to people on pull requests."""

    def stick(self, pull: int, text: str, *, suite: str, loud: bool) -> str | None:
        """Have the one comment of this suite say this; without `loud` no new one is made.

        Returns where it is, None where there is none.
        """
        ...

    def answer(self, number: int, question: int, text: str) -> str:
        """Answer the comment `question` on a pull request or issue, once; return where."""
        ...

    def acknowledge(self, question: int) -> None:
        """Show that a comment was seen."""
        ...


class Permissions(Protocol):
    """Knows who may give orders."""

    def may_write(self, login: str) -> bool:
        """Whether a person may write to the watched repository, now."""
        ...


class DigestSink(Protocol):
    """Sends weekly digests to people."""

    def send_digest(self, digest: StoredDigest) -> str:
        """Send it, once however often called with one fork and week; return where it is.

        Raises:
            TransientError: It cannot be sent now.
        """
        ...
