"""A whole service in a process of its own: its log, its metrics, and where it sends people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.fakes.git_fork import GitFork
from tests.fakes.service_process import ServiceProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BRANCH = ("Import", "Quiet", "Quiet too", "Slower scan speed=0.88")
PUBLIC = "https://perf.example.org"


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[tuple[ServiceProcess, list[str]]]:
    """A service that has followed a fork to a regression, and the fork's commits."""
    fork = GitFork(tmp_path / "fork.git")
    shas = [fork.push(subject) for subject in BRANCH]
    service = ServiceProcess(tmp_path / "home", fork.folder)
    service.start(FORKWATCH_LOG_FORMAT="json", FORKWATCH_PUBLIC_URL=PUBLIC)
    service.wait_until_finished(len(BRANCH))
    yield service, shas
    service.kill()


def test_one_id_leads_through_the_log_and_people_to_the_public_address(
    lived: tuple[ServiceProcess, list[str]],
) -> None:
    service, shas = lived
    url = service.settings.base_url
    metrics = httpx.get(f"{url}/metrics", timeout=60).text
    ready = httpx.get(f"{url}/readyz", timeout=60)
    assert service.stop() == 0

    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    about_jobs = [line for line in lines if line["logger"] == "forkwatch.dispatch"]
    assert about_jobs
    assert all(line["job"] in line["message"] for line in about_jobs)
    assert {line["commit"] for line in about_jobs} == {f"demo@{sha[:12]}" for sha in shas}
    # What started the runner and what heard of its end are about the same job.
    ends = {line["job"] for line in about_jobs if "ended with status" in line["message"]}
    begins = {line["job"] for line in about_jobs if "started in" in line["message"]}
    assert ends <= begins
    assert len(begins) == len(shas) + 1, "the slow commit has a paired job too"

    [alert] = (service.home / "alerts").iterdir()
    assert f"{PUBLIC}/alerts/{alert.stem}" in alert.read_text()
    assert str(service.port) not in alert.read_text()
    assert any(line["message"] == f"forkwatch serves {PUBLIC}" for line in lines)
    assert ready.json() == {"status": "ready"}
    assert 'forkwatch_commits{state="finished"} 4.0' in metrics
    assert "forkwatch_poll_age_seconds" in metrics
