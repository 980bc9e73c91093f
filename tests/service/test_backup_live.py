"""A backup made while a service works is one that the service goes on from, elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.app.backups import backup, restore
from service.core.model import EventKind, JobState
from service.store import commits, events, jobs, runs
from service.store.database import Database
from tests.fakes.git_fork import GitFork
from tests.fakes.service_process import ServiceProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BRANCH = ("Import", "Quiet", "Quiet too", "Quiet as well", "Still quiet")


@pytest.fixture
def fork(tmp_path: Path) -> GitFork:
    made = GitFork(tmp_path / "fork.git")
    for subject in BRANCH:
        made.push(subject)
    return made


@pytest.fixture
def services(tmp_path: Path, fork: GitFork) -> Iterator[list[ServiceProcess]]:
    """A service, and another one in a home of its own; neither is started."""
    found = [ServiceProcess(tmp_path / name, fork.folder) for name in ("home", "other")]
    yield found
    for one in found:
        one.kill()


def states(service: ServiceProcess) -> list[str]:
    return [commit["state"] for commit in service.get("/api/v1/commits?fork=demo") or []]


def unfinished(service: ServiceProcess) -> list[str]:
    """Return what is left to do, as the database says while nobody works."""
    database = Database(service.settings.data_url)
    with database.reading() as session:
        found = [one.sha for one in commits.unfinished(session, "demo")]
    database.close()
    return found


def test_a_service_goes_on_from_a_backup_made_in_the_middle(
    services: list[ServiceProcess], tmp_path: Path
) -> None:
    first, second = services
    first.start()
    first.wait_until(lambda: "finished" in states(first))
    backup(first.settings, tmp_path / "backup.tar")
    first.kill()
    restore(second.settings, tmp_path / "backup.tar")
    left = unfinished(second)
    second.start()
    second.wait_until_finished(len(BRANCH))
    assert second.stop() == 0

    assert left, "the backup was made while something was left to do"
    check_history(second)


def check_history(service: ServiceProcess) -> None:
    """Every commit has one job with one run, and was finished once."""
    database = Database(service.settings.data_url)
    with database.reading() as session:
        found = commits.newest(session, "demo")
        every_job = [job for one in found for job in jobs.of_commit(session, "demo", one.sha)]
        every_run = [run for one in found for run in runs.of_commit(session, "demo", one.sha)]
        log = [event for one in found for event in events.of_commit(session, "demo", one.sha)]
    database.close()
    assert len(found) == len(BRANCH)
    assert {job.state for job in every_job} == {JobState.STORED}
    assert sorted(run.job for run in every_run) == sorted(job.id for job in every_job)
    finished = [event.sha for event in log if event.kind is EventKind.FINISHED]
    assert sorted(finished) == sorted(one.sha for one in found)
