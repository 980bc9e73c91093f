"""A runner that is interrupted or killed loses at most the start under way, and leaves nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from forkwatch.streams import EXIT_INTERRUPTED
from results.atomic import write_atomically
from results.document import Outcome, RunDocument
from runner import shell
from tests.runner.processes import servers, until
from tests.runner.tiny_fork import CMAKE

#: Enough that a stage that was missed once comes again.
STARTS = 6
#: Long enough to be caught building.
SLOW_CMAKE = CMAKE + "execute_process(COMMAND sleep 2)\n"


class Job:
    """A job on the disk, and runners that work on it one after the other."""

    def __init__(self, fork, home, **chosen) -> None:
        self.home = home
        self.order = fork.order(fork.first, **chosen)
        self.folder = home.folder("jobs", self.order.job)
        write_atomically(self.folder / "job.json", self.order.model_dump_json())
        self.log = self.folder / "log"

    def start(self) -> shell.Process:
        words = [sys.executable, "-m", "forkwatch", "run", "--job", str(self.folder)]
        with self.log.open("ab") as log:
            return shell.start(words, output=log)

    def starts(self) -> list[dict]:
        paths = sorted((self.folder / "starts").glob("*.json"))
        return [json.loads(path.read_text()) for path in paths]

    def document(self) -> RunDocument:
        return RunDocument.model_validate_json((self.folder / "run.json").read_text())

    def is_building(self) -> bool:
        return any(self.home.folder("builds").iterdir())

    def is_loading(self) -> bool:
        return bool(list(self.home.folder("datasets").glob("*.partial-*/data/*")))

    def is_measuring(self) -> bool:
        return bool(servers(self.folder))

    def check_nothing_is_left(self) -> None:
        """Nothing runs, and what lies about is what the next runner goes on from.

        Who was killed ends when it gets a processor; after a polite end nobody else would end it.
        """
        until(lambda: not left_running(self.home.root))


def left_running(folder) -> list[str]:
    """Return the command lines, other than ours, that name something below a folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        named = any(str(folder) in word for word in words)
        if named and process.pid != os.getpid() and process.info["status"] != "zombie":
            found.append(" ".join(words)[:300])
    return found


def scratch_of(runner: shell.Process) -> list[Path]:
    """Return the folders for sockets and logs that a runner has made."""
    return list(Path(tempfile.gettempdir()).glob(f"forkwatch-{runner.pid}-*"))


@pytest.fixture(autouse=True)
def signals_are_heard():
    """Under `nohup`, or in the background of a shell, a child would be born deaf to them."""
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGHUP, hangup)
    signal.signal(signal.SIGINT, interrupt)


@pytest.fixture
def job(tiny_fork, own_home):
    """Return a short job, long enough to be in the middle of."""
    return Job(tiny_fork, own_home, workloads=["scan"], starts=3)


@pytest.fixture
def long_job(tiny_fork, own_home):
    tiny_fork.first = tiny_fork.commit("slow to build", {"CMakeLists.txt": SLOW_CMAKE})
    return Job(tiny_fork, own_home, workloads=["scan"], starts=STARTS)


# A polite end leaves the contexts, so all is gone at once; at the others the watchdog clears up.
ENDS = [
    (signal.SIGTERM, "is_building", 0),
    (signal.SIGINT, "is_loading", 0),
    (signal.SIGTERM, "is_measuring", 1),
    (signal.SIGHUP, "is_measuring", 2),
    (signal.SIGINT, "is_measuring", 3),
]


def test_one_job_survives_every_signal_at_every_stage(long_job):
    job = long_job
    before: list[dict] = []
    for number, stage, complete in ENDS:
        runner = job.start()
        until(lambda: len(job.starts()) >= complete and getattr(job, stage)())  # noqa: B023  at once
        os.kill(runner.pid, number)
        status = runner.wait(120)

        polite = number is not signal.SIGHUP
        assert status == (EXIT_INTERRUPTED if polite else -number), shell.tail(job.log)
        job.check_nothing_is_left()
        until(lambda: not scratch_of(runner))  # noqa: B023  at once
        if polite:
            assert not (job.folder / "data").exists()
            assert list(job.home.folder("worktrees").iterdir()) == []
            assert list(job.home.folder("builds").iterdir()) == []
            assert list(job.home.folder("artifacts").glob("*.partial")) == []
            assert list(job.home.folder("datasets").glob("*.partial-*")) == []
        assert job.starts()[: len(before)] == before
        before = job.starts()
    assert not (job.folder / "run.json").exists()

    assert job.start().wait(120) == 0, shell.tail(job.log)

    document = job.document()
    assert document.outcome is Outcome.MEASURED
    assert [start.index for start in document.starts] == list(range(STARTS))
    kept = [json.loads(start.model_dump_json()) for start in document.starts]
    assert kept[: len(before)] == before
    assert "the same command goes on from the last complete start" in job.log.read_text()


def test_an_impatient_second_interrupt_leaves_nothing_either(job):
    runner = job.start()
    until(job.is_measuring)
    for _ in range(3):
        os.kill(runner.pid, signal.SIGINT)
        time.sleep(0.02)

    assert runner.wait(120) is not None
    job.check_nothing_is_left()
    assert job.start().wait(120) == 0, shell.tail(job.log)
    assert [start.index for start in job.document().starts] == list(range(job.order.starts))


def test_a_kill_of_everything_at_once_is_what_a_power_cut_leaves(job):
    """Runner, watchdog, sandboxes and servers die together; nobody clears up."""
    runner = job.start()
    until(lambda: job.starts() and job.is_measuring())
    tree = [psutil.Process(runner.pid), *psutil.Process(runner.pid).children(recursive=True)]
    for act in (psutil.Process.suspend, psutil.Process.kill):
        for process in tree:
            # A client may have come to its end by itself.
            with contextlib.suppress(psutil.NoSuchProcess):
                act(process)
    runner.wait(60)
    before = job.starts()
    assert (job.folder / "data").exists(), "it was not in the middle of a start"

    assert job.start().wait(120) == 0, shell.tail(job.log)

    document = job.document()
    kept = [json.loads(start.model_dump_json()) for start in document.starts]
    assert kept[: len(before)] == before
    assert len(kept) == job.order.starts
    assert not (job.folder / "data").exists()
