"""Two jobs on one home measure one after the other."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from runner import shell
from runner.host.sole_use import sole_use
from tests.runner.conftest import SilentProgress
from tests.runner.processes import until


def test_the_second_waits_for_the_first_and_is_told(tmp_path):
    first, second = SilentProgress(), SilentProgress()
    happened = []

    def wait_for_it() -> None:
        with sole_use(tmp_path / "host", second):
            happened.append("second")

    with sole_use(tmp_path / "host", first):
        waiting = threading.Thread(target=wait_for_it)
        waiting.start()
        until(lambda: second.stages)
        happened.append("first")
    waiting.join()

    assert happened == ["first", "second"]
    assert first.stages == []
    [(stage, detail)] = second.stages
    assert (stage, "waiting for its end" in detail) == ("host", True)


def test_an_error_while_measuring_is_passed_on_once(tmp_path):
    for error in (BlockingIOError("of the job itself"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, sole_use(tmp_path, SilentProgress()):
            raise error
        assert caught.value is error
    with sole_use(tmp_path, progress := SilentProgress()):
        assert progress.stages == []


def test_who_is_killed_holds_nobody_up(tmp_path):
    program = f"""
import time
from pathlib import Path
from runner.host.sole_use import sole_use
with sole_use(Path({str(tmp_path)!r}), None):
    print("mine", flush=True)
    time.sleep(600)
"""
    with (tmp_path / "log").open("wb") as log:
        holder = shell.start([sys.executable, "-c", program], output=log)
    until(lambda: "mine" in (tmp_path / "log").read_text())
    progress = SilentProgress()

    def kill_it() -> None:
        until(lambda: progress.stages)
        os.kill(holder.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_it)
    killer.start()
    with sole_use(tmp_path, progress):
        assert len(progress.stages) == 1
    killer.join()
    holder.wait(60)
