from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess  # noqa: TID251  tests start programs
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from results.job import JobOrder
from service.channels.this_machine import ThisMachine
from service.core.errors import DispatchError
from service.core.model import JobStatus
from tests.fakes.run_documents import sha

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 120

#: Stands in for the runner: waits for a file named `go`, then leaves its document.
RUNNER = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
with (folder / "begun").open("a") as begun:
    begun.write("once\\n")
while not (folder / "go").exists():
    time.sleep(0.01)
(folder / "run.json").write_text("{}")
"""


def order(job: str = "single-1") -> JobOrder:
    return JobOrder(
        job=job,
        run="run-1",
        repository=Path("/nowhere"),
        plan="",
        branch="main",
        suite="commit",
        host_class="small",
        candidate=sha("a"),
        credential=SecretStr("secret"),
    )


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose runners are all gone at the end."""
    yield tmp_path
    for path in tmp_path.glob("jobs/*"):
        (path / "go").touch()
        machine(tmp_path).stop(path.name)


def machine(home: Path) -> ThisMachine:
    return ThisMachine(home, command=(sys.executable, "-c", RUNNER))


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_a_job_is_alive_from_its_first_moment_until_its_document_is_there(home: Path) -> None:
    dispatcher, folder = machine(home), home / "jobs" / "single-1"
    assert dispatcher.status("single-1") is JobStatus.LOST

    dispatcher.start(order())
    assert dispatcher.status("single-1") is JobStatus.ALIVE
    with pytest.raises(DispatchError):
        dispatcher.collect("single-1")
    (folder / "go").touch()
    eventually(lambda: dispatcher.status("single-1") is JobStatus.FINISHED)

    assert dispatcher.collect("single-1") == b"{}"


def test_starting_twice_starts_one_runner(home: Path) -> None:
    dispatcher, folder = machine(home), home / "jobs" / "single-1"
    dispatcher.start(order())
    dispatcher.start(order())
    machine(home).start(order())
    (folder / "go").touch()
    eventually(lambda: dispatcher.status("single-1") is JobStatus.FINISHED)

    assert (folder / "begun").read_text() == "once\n"


def test_the_order_and_its_credential_are_for_the_owner_alone(home: Path) -> None:
    machine(home).start(order())
    path = home / "jobs" / "single-1" / "job.json"

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["credential"] == "secret"
    assert JobOrder.model_validate_json(path.read_text()) == order()


def test_a_killed_runner_is_lost_and_another_may_start(home: Path) -> None:
    dispatcher, folder = machine(home), home / "jobs" / "single-1"
    dispatcher.start(order())
    eventually((folder / "begun").exists)
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    eventually(lambda: dispatcher.status("single-1") is JobStatus.LOST)

    dispatcher.start(order())
    eventually(lambda: (folder / "begun").read_text() == "once\nonce\n")
    assert dispatcher.status("single-1") is JobStatus.ALIVE


def test_a_runner_outlives_the_service_and_is_found_again(home: Path) -> None:
    """The starting process is killed; a new dispatcher sees the runner and its document."""
    program = (
        "import sys, time; from pathlib import Path;"
        "from tests.service.test_this_machine import machine, order;"
        "machine(Path(sys.argv[1])).start(order()); print('started', flush=True); time.sleep(60)"
    )
    root = Path(__file__).resolve().parents[2]
    service = subprocess.Popen(
        [sys.executable, "-c", program, str(home)], stdout=subprocess.PIPE, cwd=root
    )
    assert service.stdout is not None
    assert service.stdout.readline() == b"started\n"
    service.kill()
    service.wait()
    service.stdout.close()

    restarted = machine(home)
    assert restarted.status("single-1") is JobStatus.ALIVE
    (home / "jobs" / "single-1" / "go").touch()
    eventually(lambda: restarted.status("single-1") is JobStatus.FINISHED)


def test_a_runner_started_by_hand_counts_as_alive(home: Path) -> None:
    folder = home / "jobs" / "single-1"
    folder.mkdir(parents=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert machine(home).status("single-1") is JobStatus.ALIVE
    assert machine(home).status("single-1") is JobStatus.LOST


def test_stopping_ends_the_runner_and_nobody_else(home: Path) -> None:
    dispatcher, folder = machine(home), home / "jobs" / "single-1"
    dispatcher.start(order())
    eventually((folder / "begun").exists)
    dispatcher.stop("single-1")
    eventually(lambda: dispatcher.status("single-1") is JobStatus.LOST)

    # The process id on file is nobody's of ours any more; here it names this very process.
    (folder / "pid").write_text(str(os.getpid()))
    dispatcher.stop("single-1")
    dispatcher.stop("never-started")


def test_a_runner_that_cannot_be_started_is_said(home: Path) -> None:
    dispatcher = ThisMachine(home, command=("/no/such/program",))

    with pytest.raises(DispatchError, match="/no/such/program"):
        dispatcher.start(order())
    assert dispatcher.status("single-1") is JobStatus.LOST
