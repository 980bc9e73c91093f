"""What a program leaves behind in a sandbox has ended when `Sandbox.run` returns."""

from __future__ import annotations

import os

import psutil
import pytest

from runner import first_process
from runner.sandbox import Sandbox

#: The time that a sleep of ours is found by among all processes.
SLEEP = "61907"
#: One look may find all gone by chance.
TIMES = 5
LEAVE_BEHIND = f"(setsid sleep {SLEEP} &); (setsid sleep {SLEEP} &); exit 3"


def sleeping() -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.cmdline() == ["sleep", SLEEP]:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_nothing_left_behind_runs_when_a_sandbox_has_ended():
    for _ in range(TIMES):
        done = Sandbox(binds=()).run(["sh", "-c", LEAVE_BEHIND], timeout_s=120)

        assert done.returncode == 3
        assert sleeping() == []


def test_a_sandbox_without_a_filter_of_calls_is_waited_for_too():
    done = Sandbox(binds=(), filtered=False).run(["sh", "-c", LEAVE_BEHIND], timeout_s=120)

    assert done.returncode == 3
    assert sleeping() == []


@pytest.mark.parametrize(
    "said", [b"", b"{", b"{}", b'{"child-pid": "nobody"}', b'{"child-pid": 4194305}']
)
def test_nobody_is_waited_for_where_bubblewrap_told_no_process(said):
    with first_process.awaited(timeout_s=3600) as report:
        os.write(report, said)


def test_a_process_that_is_no_first_one_is_not_waited_for():
    with first_process.awaited(timeout_s=3600) as report:
        os.write(report, b'{"child-pid": %d}' % os.getpid())
