"""The watcher: follows a branch and begins the flow of every new commit, oldest first.

It looks at its own pace and never waits for a flow. Trouble with the repository or its plan is
logged once and looked at again; a bug ends the thread, and the service then says it is not ready.
"""

from __future__ import annotations

import logging
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import OperationalError

from service.core.errors import TransientError
from service.core.model import CommitState, EventKind
from service.flows.coalescing import coalesce
from service.store import commits, events, forks
from workloads.errors import CatalogError
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from service.core.clock import Clock
    from service.core.model import CommitRecord, GitCommit
    from service.core.ports import CodeHost
    from service.core.settings import Settings
    from service.store.database import Database
    from workloads.plan import Fork

_log = logging.getLogger("forkwatch.watcher")

#: Commits read of a branch at one look.
LOOK_COMMITS_MAX: Final = 500
#: Commits read where none of those is known: ten years of a slow branch. A branch of which none of
#: these is known was written anew, and begins at its newest ones.
FAR_COMMITS_MAX: Final = 10_000


class Watcher:
    """Follows one repository's branch."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        code_host: CodeHost,
        settings: Settings,
        begin: Callable[[CommitRecord], None],
        aside: Callable[[], None] | None = None,
        shown: Callable[[str, str, CommitState], None] | None = None,
        alone: AbstractContextManager[object] | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._code_host = code_host
        self._settings = settings
        self._begin = begin
        self._aside = aside
        self._shown = shown
        #: Held during a look, so that no replica of this service looks in between.
        self._alone = alone or nullcontext()
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._trouble = ""
        self._resumed = False
        self._looked_at: datetime | None = None
        #: As it was written down; followed while nothing is new.
        self._branch = ""

    @property
    def alive(self) -> bool:
        """Whether the branch is being followed."""
        return self._thread.is_alive()

    @property
    def looked_at(self) -> datetime | None:
        """When it last read the branch; None before the first time."""
        return self._looked_at

    def start(self) -> None:
        """Begin to follow the branch."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the branch now and not only when its time has come; returns at once."""
        self._woken.set()

    def stop(self) -> None:
        """Stop following; returns when the present look is over."""
        self._stopped.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()

    def look(self, *, pushed: bool = False) -> list[CommitRecord]:
        """Look once: write new commits down, begin their flows, and return them.

        Where more wait than may, some in between are skipped.

        Args:
            pushed: There is something new where the repository is only a copy of it.

        Raises:
            TransientError, CatalogError: The repository or its plan cannot be used now.
        """
        with self._alone:
            return self._look(pushed=pushed)

    def resume(self) -> None:
        """Begin with the next look what was written down and has no flow, as after a start."""
        self._resumed = False

    def _look(self, *, pushed: bool) -> list[CommitRecord]:
        fork = parse_plan(self._code_host.plan_text()).fork
        if pushed:
            self._code_host.refresh(fork.branch)
        found, known = self._read_branch(fork)
        fresh = _new_commits(found, known, backfill=self._settings.backfill_commits)
        now = self._clock.now()
        if self._resumed and not fresh and fork.branch == self._branch:
            self._looked_at = now
            return []
        with self._database.writing() as session:
            forks.ensure(session, fork.name, branch=fork.branch, at=now)
            new = commits.register(session, fork.name, fresh, at=now)
            for commit in new:
                seen = f"seen on {fork.branch}: {commit.subject}"
                events.append_once(session, fork.name, commit.sha, EventKind.SEEN, seen, at=now)
            skipped = coalesce(session, fork.name, most=self._waiting_max, at=now)
            # A service killed between writing down and beginning left commits without a flow.
            begin = new if self._resumed else commits.unfinished(session, fork.name)
        for commit in begin:
            if commit.sha not in skipped:
                self._begin(commit)
        if self._shown is not None:
            # Of a commit that never waited in sight, nobody needs to hear that it is skipped.
            for sha in skipped - {commit.sha for commit in new}:
                self._shown(fork.name, sha, CommitState.FINISHED)
        self._resumed, self._looked_at, self._branch = True, now, fork.branch
        return new

    @property
    def _waiting_max(self) -> int:
        """How many commits may wait; never fewer than a fork is begun with."""
        return max(self._settings.waiting_commits_max, self._settings.backfill_commits)

    def _read_branch(self, fork: Fork) -> tuple[list[GitCommit], set[str]]:
        """Return the newest commits of the branch, and which of them are known.

        Where a push brought so many that no known one is among them, it looks further back: else
        the branch would begin anew, and what changed in between would be lost.
        """
        for limit in (LOOK_COMMITS_MAX, FAR_COMMITS_MAX):
            found = self._code_host.branch_commits(fork.branch, limit=limit)
            with self._database.reading() as session:
                known = commits.known(session, fork.name, [commit.sha for commit in found])
                first = not known and not commits.newest(session, fork.name, limit=1)
            if known or first or len(found) < limit:
                break
        return found, known

    def _run(self) -> None:
        pushed = False
        while not self._stopped.is_set():
            # Before the look: what wakes it during one may not be seen by it. Asked and not told by
            # wait(), which may have given up just before somebody woke it.
            pushed = self._woken.is_set() or pushed
            self._woken.clear()
            try:
                self.look(pushed=pushed)
                self._trouble, pushed = "", False
                if self._aside is not None:
                    self._aside()
            except (TransientError, CatalogError, OperationalError) as error:
                self._say_once(str(error))
            if not self._stopped.is_set():
                self._woken.wait(self._settings.poll_seconds)

    def _say_once(self, trouble: str) -> None:
        if trouble != self._trouble:
            _log.warning("the branch cannot be followed now: %s", trouble)
        self._trouble = trouble


def _new_commits(found: Sequence[GitCommit], known: set[str], *, backfill: int) -> list[GitCommit]:
    """Return what came after the newest known commit, or the last few of an unknown branch."""
    for index in range(len(found) - 1, -1, -1):
        if found[index].sha in known:
            return list(found[index + 1 :])
    return list(found[-backfill:])
