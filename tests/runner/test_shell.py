from __future__ import annotations

import sys
import time

import psutil
import pytest

from runner import shell
from runner.errors import HostError


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path):
    pid_file = tmp_path / "pid"
    words = ["sh", "-c", f"sleep 300 & echo $! > {pid_file}; wait"]

    done = shell.run(words, timeout_s=3)

    assert done.timed_out
    assert not done.ok
    assert _ends(int(pid_file.read_text()))


def test_output_and_status_are_returned():
    done = shell.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=60)

    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_a_log_takes_both_streams_and_its_tail_begins_with_a_line(tmp_path):
    log = tmp_path / "log"
    script = f"[print(number) for number in range({10**4})]"
    assert shell.run([sys.executable, "-c", script], timeout_s=120, log=log).ok

    text = shell.tail(log)

    assert len(text) <= shell.TAIL_BYTES
    lines = text.splitlines()
    assert lines[-1] == "9999"
    assert all(later == earlier + 1 for earlier, later in zip(map(int, lines), map(int, lines[1:])))  # noqa: B905  the second is shorter by one


def test_the_tail_of_a_log_that_is_not_there_is_empty(tmp_path):
    assert shell.tail(tmp_path / "none") == ""


def test_a_missing_program_names_its_package():
    with pytest.raises(HostError, match="apt-get install nothing-such"):
        shell.require("no-such-program", package="nothing-such")


def _ends(pid: int) -> bool:
    """Whether a process that was sent SIGKILL is gone; a busy kernel may take a moment over it."""
    deadline = time.monotonic() + 120
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not _runs(pid)


def _runs(pid: int) -> bool:
    """Whether a process runs; one that nobody has reaped yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
