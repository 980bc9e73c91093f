"""A CI in memory whose runners work: each run fetches its order, measures by subjects, brings it.

Words in the subject of a commit say what goes wrong with the runs of its jobs: `cancel=2` has the
first two of each job cancelled before they come for their order, `elsewhere=1` the first one land
on a machine of another host class. The service is told of the end of each run, as by a webhook, but
for those with `silent=1`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from service.core.dispatching import RunEnded
from service.core.errors import CredentialRefusedError
from service.core.identity import Identity
from tests.fakes.memory_ci import MemoryCi
from tests.fakes.memory_fork import AT, MemoryFork
from tests.fakes.scripted_measurement import directives, measure

if TYPE_CHECKING:
    from service.core.dispatching import CiRun, RunAsk
    from service.flows.dispatched_runs import DispatchedRuns


@dataclass
class WorkingCi(MemoryCi):
    """Runs work in threads of their own, as machines elsewhere do."""

    fork: MemoryFork = field(default_factory=MemoryFork)
    #: The service's door; set before the first run begins.
    door: DispatchedRuns | None = None
    #: What went wrong with a run that should have gone well.
    faults: list[str] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def begin(self, ask: RunAsk) -> CiRun | None:
        """Begin a run, and have a runner come for it."""
        with self.alone:
            begun = super().begin(ask)
            runner = threading.Thread(target=self._work, args=(ask, self.last()))
        self._threads.append(runner)
        runner.start()
        return begun

    def join(self) -> None:
        """Wait for all runners."""
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), "a runner hangs"

    def _work(self, ask: RunAsk, run: str) -> None:
        try:
            how = self._worked(ask, run)
        except Exception as error:  # noqa: BLE001  a thread's error is nobody's; the test asks
            self.faults.append(f"{ask.title}: {type(error).__name__}: {error}")
            how = "failure"
        self.end(run, how)
        silent = "silent" in directives(self.fork.subjects[ask.candidate])
        if self.door is not None and not silent:
            news = RunEnded(system=self.system, external_id=run, how=how, at=AT)
            self.door.dispatcher.heard(news)

    def _worked(self, ask: RunAsk, run: str) -> str:
        assert self.door is not None, "a run has a service to ask"
        said = directives(self.fork.subjects[ask.candidate])
        if ask.attempt <= int(said.get("cancel", "0")):
            return "cancelled"
        me = Identity(
            system=self.system,
            commit=self.fork.commits[-1].sha,
            branch=ask.branch,
            run=f"github run {run}, attempt 1",
            digest=f"token-{run}",
            expires_at=AT + timedelta(days=1),
            run_id=run,
        )
        if ask.attempt <= int(said.get("elsewhere", "0")):
            try:
                self.door.hand_over(me, ask.job, "large")
            except CredentialRefusedError:
                return "failure"
        given = self.door.hand_over(me, ask.job, ask.host_class)
        assert given.order.credential is not None
        document = measure(given.order, self.fork.subjects)
        dispatched = self.door.check(ask.job, given.order.credential.get_secret_value())
        self.door.bring(dispatched, document.model_dump_json().encode())
        return "success"
