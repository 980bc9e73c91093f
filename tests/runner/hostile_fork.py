"""A fork whose build attacks what it runs on, and small limits for it to run into."""

from __future__ import annotations

from typing import Any

import pytest

from runner import checkout, watchdog
from runner.build import Builder
from runner.errors import BuildError
from runner.limits import MIB
from runner.settings import RunnerSettings
from tests.runner.processes import until
from workloads.plan import BuildVariant

RELEASE = BuildVariant(server="sbin/mariadbd")
#: Small enough to be reached at once, and for the machine not to notice.
SMALL: dict[str, Any] = {
    "sandbox_memory": 300 * MIB,
    "sandbox_file_size": 100 * MIB,
    "sandbox_open_files": 256,
    "sandbox_disk_size": 60 * MIB,
    "sandbox_disk_files": 3000,
    "sandbox_tmp_size": 20 * MIB,
    "sandbox_log_size": 2 * MIB,
    "disk_reserve": 50 * MIB,
}
#: For bombs of processes alone. The kernel counts them by user, and all sandboxes have the same:
#: a bomb in another worker's test would leave too few for a test that has this limit too.
FEW_PROCESSES = {"sandbox_processes": 150}
MOMENT = """\
execute_process(COMMAND /usr/bin/python3 ${CMAKE_SOURCE_DIR}/attack.py RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "attack ended with ${status}")
endif()
"""
INSTALL = (
    'install(CODE "execute_process(COMMAND /usr/bin/python3 /forkwatch/source/attack.py '
    'COMMAND_ERROR_IS_FATAL ANY)")\n'
)


class Hostile:
    """A fork whose build runs `attack`, and the builder of it."""

    def __init__(self, fork, home) -> None:
        self.fork, self.home = fork, home

    def commit(self, attack: str, *, at: str = MOMENT) -> str:
        lists = (self.fork.folder / "CMakeLists.txt").read_text()
        return self.fork.commit("attack", {"attack.py": attack, "CMakeLists.txt": lists + at})

    def build(
        self, sha: str, *, variant=RELEASE, trusted: bool = True, minute_s: float = 60.0, **limits
    ):
        settings = RunnerSettings(home=self.home.root, **{**SMALL, **limits})
        builder = Builder(
            home=self.home,
            settings=settings,
            repository=self.fork.folder,
            trusted=trusted,
            minute_s=minute_s,
        )
        return builder.build(checkout.resolve(self.fork.folder, sha), "rel", variant)

    def failure(self, attack: str, *, at: str = MOMENT, leaving=(), **chosen) -> BuildError:
        """Return how the build failed, having seen that nothing of it is left."""
        sha = self.commit(attack, at=at)
        with pytest.raises(BuildError) as caught:
            self.build(sha, **chosen)
        until(lambda: watchdog.marked(watchdog.MARK) == [])
        left = {path.name for path in self.home.folder("artifacts").iterdir()}
        assert {name for name in left if not name.endswith(".lock")} == set(leaving)
        assert list(self.home.folder("worktrees").iterdir()) == []
        assert list(self.home.folder("builds").iterdir()) == []
        return caught.value

    def goes_on(self) -> bool:
        """Whether the next build, an honest one, is none the worse."""
        return self.build(self.fork.first).facts.installed_bytes > 0
