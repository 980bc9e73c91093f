"""Who works on the one machine: a runner of GitHub's, which is `act`, and agents of Buildkite's.

Runs and builds that the doubles were asked for come in; what they did goes back into the doubles.
Each runs in a thread, one at a time for each system, as on a machine with one runner of each.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.ci import recipes
from tests.ci.test_buildkite_agent import run_agent, told
from tests.fakes.buildkite_api import Build

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.ci.act import Actions, Did, Run
    from tests.fakes.github_api.world import World

PAGE: Final = "dispatching.md"
#: Where the examples of the page have the service.
EXAMPLE_SERVICE: Final = "https://perf.example"
#: A worker ends soon after what it waits for has.
JOIN_SECONDS_MAX: Final = 1500


@dataclass
class Work:
    """Threads of a worker."""

    alone: threading.Lock = field(default_factory=threading.Lock)
    threads: list[threading.Thread] = field(default_factory=list)
    #: What went wrong with the worker itself.
    faults: list[str] = field(default_factory=list)

    def begin(self, do: Callable[[], None]) -> None:
        """Do something in a thread, once all that began before is done."""

        def work() -> None:
            try:
                with self.alone:
                    do()
            except Exception as error:  # noqa: BLE001  a thread's error is nobody's; the test asks
                self.faults.append(f"{type(error).__name__}: {error}")

        thread = threading.Thread(target=work)
        self.threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Wait for all of it."""
        # What ends may begin some more: the list grows until nobody does.
        for thread in self.threads:
            thread.join(JOIN_SECONDS_MAX)
            assert not thread.is_alive(), "a worker hangs"
        assert self.faults == []


class ActRunner:
    """Does the runs that are dispatched on GitHub, by the workflow of the documentation."""

    def __init__(
        self,
        actions: Actions,
        world: World,
        *,
        service: Callable[[], str],
        head: Callable[[], str],
        env: Callable[[str], Mapping[str, str]],
    ) -> None:
        """Remember where.

        Args:
            actions: The repository.
            world: What GitHub's double knows of it.
            service: Address of the service.
            head: Newest commit of the branch that a run is of.
            env: What a run finds in its environment, by its id.
        """
        self._actions, self._world = actions, world
        self._service, self._head, self._env = service, head, env
        self.work = Work()
        self._under_way: dict[int, Run] = {}
        self._cancelled: set[int] = set()
        self._closed = False
        #: By id of a run.
        self.did: dict[int, Did] = {}

    def begin(self, run: dict[str, Any], inputs: Mapping[str, str]) -> None:
        """Take a run that was just dispatched."""
        self.work.begin(lambda: self._do(run, inputs))

    def cancel(self, identity: int) -> bool:
        """End a run that is under way; return whether it is."""
        run = self._under_way.get(identity)
        if run is None:
            return False
        self._cancelled.add(identity)
        # Its own thread ends it in the world. GitHub, too, says some time later that it is over.
        threading.Thread(target=run.cancel).start()
        return True

    def stop(self) -> None:
        """End everything, and begin nothing more."""
        self._closed = True
        for identity in [*self._under_way]:
            self.cancel(identity)
        self.work.join()

    def _do(self, run: dict[str, Any], inputs: Mapping[str, str]) -> None:
        identity = int(run["id"])
        if run["status"] == "completed":
            return
        if self._closed:
            self._world.end_workflow_run(identity, "cancelled")
            return
        workflow = recipes.example(PAGE).replace(EXAMPLE_SERVICE, self._service())
        begun = self._actions.begin(
            "workflow_dispatch",
            {"ref": f"refs/heads/{run['head_branch']}", "inputs": dict(inputs)},
            commit=self._head(),
            workflow=workflow,
            env={"GITHUB_RUN_ID": str(identity), **self._env(str(identity))},
        )
        self._under_way[identity] = begun
        run["status"] = "in_progress"
        did = self.did[identity] = begun.wait()
        del self._under_way[identity]
        passed = bool(did.jobs) and set(did.jobs.values()) == {"success"}
        how = "success" if passed else "failure"
        self._world.end_workflow_run(identity, "cancelled" if identity in self._cancelled else how)


class Agents:
    """Do the builds that are made on Buildkite, by the steps of the documentation: one for each."""

    def __init__(
        self,
        folder: Path,
        *,
        repository: Path,
        service: Callable[[], str],
        head: Callable[[], str],
        identity: Callable[[int, str], str],
    ) -> None:
        """Remember where.

        Args:
            folder: Empty; each agent has a folder of its own in it.
            repository: The fork's.
            service: Address of the service.
            head: Newest commit of the branch that a build is of.
            identity: Signs who a build is, by its number and an audience.
        """
        self._folder, self._repository = folder, repository
        self._service, self._head, self._identity = service, head, identity
        self.work = Work()
        #: What was said, by number of a build.
        self.did: dict[int, str] = {}

    def begin(self, made: dict[str, Any]) -> None:
        """Take a build that was just made."""
        self.work.begin(lambda: self._do(made))

    def stop(self) -> None:
        """Wait for all of them."""
        self.work.join()

    def _do(self, made: dict[str, Any]) -> None:
        number = int(made["number"])
        build = Build(
            str(self._repository),
            self._head(),
            made["branch"],
            made["env"]["FORKWATCH_JOB_HOST_CLASS"],
            made["env"],
            identity=lambda audience: self._identity(number, audience),
        )
        (step,) = recipes.parsed(recipes.blocks(PAGE)[1])["steps"]
        command = step["command"].replace(EXAMPLE_SERVICE, self._service())
        build.add([{**step, "key": "forkwatch", "command": command}])
        made["state"] = "running"
        folder = self._folder / f"build-{number}"
        folder.mkdir(parents=True)
        done = run_agent(build, folder)
        self.did[number] = told(build, done)
        passed = all(job.exit_status == 0 for job in build.jobs)
        made["state"] = "passed" if passed else "failed"
