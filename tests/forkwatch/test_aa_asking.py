"""`forkwatch host aa --service` on a service's store and a real repository."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from forkwatch.errors import DoorError
from forkwatch.host_verbs import host
from service.channels.local_git import LocalGit
from service.core.errors import SettingsError
from service.core.settings import load_settings
from service.flows.watcher import Watcher
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.git_fork import GitFork
from tests.fakes.memory_fork import StillClock
from tests.fakes.stored_fork import a_stored_run, measured

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def sha(tmp_path: Path) -> str:
    """The newest commit of a branch that the service has seen."""
    fork = GitFork(tmp_path / "fork.git")
    newest = fork.push("Import")
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    Watcher(
        database=database,
        clock=StillClock(),
        code_host=LocalGit(fork.folder),
        settings=load_settings(),
        begin=lambda _: None,
    ).look()
    database.close()
    return newest


def measure(folder: Path, sha: str) -> None:
    """Have the commit's own run in the store."""
    database = Database(f"sqlite:///{folder / 'service.sqlite'}")
    with database.writing() as session:
        a_stored_run(session, measured("run-1", sha, scan=2.0, point=63000.0))
    database.close()


def say(folder: Path, *words: str) -> Result:
    where = ["--home", str(folder), "--repository", str(folder / "fork.git")]
    return CliRunner().invoke(host, ["aa", "--service", *where, *words])


def test_it_writes_the_order_down(tmp_path: Path, sha: str) -> None:
    measure(tmp_path, sha)
    asked = say(tmp_path, "--json")
    [told] = json.loads(asked.stdout)

    assert asked.exit_code == 0, asked.output
    assert (told["sha"], told["state"], told["asked_by"], told["via"]) == (
        sha,
        "waiting",
        "operator",
        "shell",
    )
    again = say(tmp_path)
    assert isinstance(again.exception, DoorError)
    assert "is under way" in str(again.exception)


def test_it_says_in_words_what_it_asked(tmp_path: Path, sha: str) -> None:
    measure(tmp_path, sha)

    assert f"{sha[:8]}): waiting: it is measured when nothing else waits" in say(tmp_path).stdout


def test_without_a_measured_commit_there_is_nothing_to_check_with(tmp_path: Path, sha: str) -> None:
    assert sha
    refused = say(tmp_path)

    assert isinstance(refused.exception, DoorError)
    assert "no commit of 'demo' was measured yet" in str(refused.exception)


def test_what_the_service_decides_cannot_be_given(tmp_path: Path, sha: str) -> None:
    assert sha
    assert say(tmp_path, "--starts", "5").exit_code == 2
    assert say(tmp_path, "--workload", "scan").exit_code == 2


def test_without_a_repository_it_names_the_setting(tmp_path: Path) -> None:
    refused = CliRunner().invoke(host, ["aa", "--service", "--home", str(tmp_path)])

    assert isinstance(refused.exception, SettingsError)
    assert "FORKWATCH_REPOSITORY" in str(refused.exception)
