from __future__ import annotations

import os
import signal
import sys

import pytest

from runner import shell, watchdog
from tests.runner.processes import until


@pytest.mark.parametrize("pause_s", [0.0, 0.005, 0.02, 0.05, 0.2])
def test_nothing_in_a_sandbox_outlives_a_killed_runner(tmp_path, pause_s):
    # The program starts one sandbox after the other; the kill falls somewhere into that.
    program = """
from runner import shell, watchdog
from runner.sandbox import Sandbox
print(watchdog.MARK, flush=True)
with watchdog.guard(), open("/dev/null", "wb") as nowhere:
    while True:
        words = Sandbox(binds=()).command(["sh", "-c", "sleep 600 & sleep 600"])
        process = shell.start(words, output=nowhere)
        print("up", flush=True)
        process.wait(0.03)
        process.kill()
"""
    with (tmp_path / "out").open("wb") as out:
        runner = shell.start([sys.executable, "-c", program], output=out)
    until(lambda: "up" in (tmp_path / "out").read_text())
    mark = (tmp_path / "out").read_text().split()[0]
    assert watchdog.marked(mark)
    runner.wait(pause_s)

    os.kill(runner.pid, signal.SIGKILL)
    runner.wait(60)

    until(lambda: not watchdog.marked(mark))


def test_a_guard_that_ends_well_ends_the_watchdog_at_once():
    with watchdog.guard():
        # It carries its mark from the moment its program has begun.
        until(lambda: watchdog.marked(watchdog.MARK))
        (watcher,) = watchdog.marked(watchdog.MARK)

    assert not watcher.is_running()
