"""The watcher: follows a branch and begins the flow of every new commit, oldest first.

It looks at its own pace and never waits for a flow. Trouble with the repository or its plan is
logged once and looked at again; a bug ends the thread, and the service then says it is not ready.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import OperationalError

from service.core.errors import TransientError
from service.core.model import EventKind
from service.store import commits, events, forks
from workloads.errors import CatalogError
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from service.core.clock import Clock
    from service.core.model import CommitRecord, GitCommit
    from service.core.ports import CodeHost
    from service.core.settings import Settings
    from service.store.database import Database

_log = logging.getLogger("forkwatch.watcher")

#: Commits read of a branch at one look. A push of more than this at once begins at the newest ones.
LOOK_COMMITS_MAX: Final = 500


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
    ) -> None:
        self._database = database
        self._clock = clock
        self._code_host = code_host
        self._settings = settings
        self._begin = begin
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._trouble = ""
        self._resumed = False
        self._looked_at: datetime | None = None

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

        Args:
            pushed: There is something new where the repository is only a copy of it.

        Raises:
            TransientError, CatalogError: The repository or its plan cannot be used now.
        """
        fork = parse_plan(self._code_host.plan_text()).fork
        if pushed:
            self._code_host.refresh(fork.branch)
        found = self._code_host.branch_commits(fork.branch, limit=LOOK_COMMITS_MAX)
        now = self._clock.now()
        with self._database.writing() as session:
            forks.ensure(session, fork.name, branch=fork.branch, at=now)
            known = {c.sha for c in found if commits.find(session, fork.name, c.sha) is not None}
            fresh = _new_commits(found, known, backfill=self._settings.backfill_commits)
            new = commits.register(session, fork.name, fresh, at=now)
            for commit in new:
                seen = f"seen on {fork.branch}: {commit.subject}"
                events.append_once(session, fork.name, commit.sha, EventKind.SEEN, seen, at=now)
            # A service killed between writing down and beginning left commits without a flow.
            begin = new if self._resumed else commits.unfinished(session, fork.name)
        for commit in begin:
            self._begin(commit)
        self._resumed, self._looked_at = True, now
        return new

    def _run(self) -> None:
        pushed = False
        while not self._stopped.is_set():
            # Before the look: what wakes it during one may not be seen by it.
            self._woken.clear()
            try:
                self.look(pushed=pushed)
                self._trouble, pushed = "", False
            except (TransientError, CatalogError, OperationalError) as error:
                self._say_once(str(error))
            if not self._stopped.is_set():
                pushed = self._woken.wait(self._settings.poll_seconds) or pushed

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
