"""A service that is told to stop ends what is under way, begins nothing, and is gone soon."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

import pytest

from service.app.tokens import opened_tokens
from service.core.tokens import Scope
from tests.fakes.git_fork import GitFork
from tests.fakes.service_process import ServiceProcess
from tests.fakes.unhurried_service import NEVER_SECONDS, STOP_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: How much longer than its bound a process may take on a busy machine.
SLACK_SECONDS = 60


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service whose dispatcher takes its time, over a fork of two commits; not started."""
    fork = GitFork(tmp_path / "fork.git")
    fork.push("Import")
    fork.push("Quiet")
    found = ServiceProcess(tmp_path / "home", fork.folder, program="tests.fakes.unhurried_service")
    yield found
    found.kill()


def noted(service: ServiceProcess, what: str) -> list[str]:
    path = service.home / what
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_step_under_way_ends_and_is_not_done_again(
    service: ServiceProcess, number: signal.Signals
) -> None:
    service.start("0.7")
    service.wait_until(lambda: len(noted(service, "begun")) == 1)
    service.ask_to_stop(number)
    status, _ = service.wait_for_end()

    assert status == 0
    assert "still busy" not in service.log.read_text()
    assert noted(service, "ended") == noted(service, "begun")
    assert "flows go on after the next start" in service.log.read_text()

    service.start("0")
    service.wait_until_finished(2)
    assert service.stop() == 0
    begun = noted(service, "begun")
    assert len(begun) == len(set(begun)) == 2, "each job was started once"


def test_a_step_that_does_not_end_does_not_keep_the_process(service: ServiceProcess) -> None:
    service.start(str(NEVER_SECONDS))
    service.wait_until(lambda: len(noted(service, "begun")) == 1)
    service.ask_to_stop()
    status, seconds = service.wait_for_end()

    assert status == 0
    assert seconds < STOP_SECONDS + SLACK_SECONDS
    assert "still busy after" in service.log.read_text()

    service.start("0")
    service.wait_until_finished(2)
    assert service.stop() == 0


def test_a_request_under_way_is_answered(service: ServiceProcess) -> None:
    service.start("0")
    service.wait_until_finished(2)
    with opened_tokens(service.settings) as tokens:
        _, text = tokens.create("uploader", [Scope.SUBMIT])
    body = b'{"format": "no run document"}'
    head = (
        f"POST /api/v1/runs HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {text}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", service.port), timeout=120) as line:
        line.sendall(head.encode() + body[:10])
        # It has been let in once its token was used.
        with opened_tokens(service.settings) as tokens:
            service.wait_until(lambda: tokens.everything()[0].last_used_at is not None)
        service.ask_to_stop()
        service.wait_until(lambda: service.get("/healthz") is None)
        line.sendall(body[10:])
        answer = b"".join(iter(lambda: line.recv(65536), b""))

    assert answer.startswith(b"HTTP/1.1 422 ")
    assert service.wait_for_end()[0] == 0
