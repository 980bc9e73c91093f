"""`forkwatch backfill` on a service's store and a real repository."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from forkwatch.backfill_verb import backfill
from forkwatch.errors import DoorError
from service.channels.local_git import LocalGit
from service.core.errors import SettingsError
from service.core.settings import load_settings
from service.flows.watcher import Watcher
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.git_fork import GitFork
from tests.fakes.memory_fork import StillClock

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

APP = typer.Typer()
APP.command()(backfill)


@pytest.fixture
def shas(tmp_path: Path) -> list[str]:
    """The commits of a branch of which the service has seen the newest two."""
    fork = GitFork(tmp_path / "fork.git")
    pushed = [fork.push(f"Commit {number}") for number in range(6)]
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    Watcher(
        database=database,
        clock=StillClock(),
        code_host=LocalGit(fork.folder),
        settings=load_settings(backfill_commits=2),
        begin=lambda _: None,
    ).look()
    database.close()
    return pushed


def say(folder: Path, *words: str) -> Result:
    where = ["--home", str(folder), "--repository", str(folder / "fork.git"), "--fork", "demo"]
    return CliRunner().invoke(APP, [*where, *words])


def test_it_writes_the_order_down_and_says_how_far_it_is(tmp_path: Path, shas: list[str]) -> None:
    asked = say(tmp_path, "--commits", "3", "--order", "oldest-first", "--json")
    [told] = json.loads(asked.stdout)

    assert asked.exit_code == 0
    assert (told["state"], told["done"], told["asked_by"], told["via"]) == (
        "under-way",
        0,
        "operator",
        "shell",
    )
    assert told["commits"] == shas[1:4]
    assert "0 of 3 commits" in say(tmp_path).stdout
    assert "ended after 0, ended by operator" in say(tmp_path, "--cancel").stdout


def test_without_one_it_says_how_to_begin_one(tmp_path: Path, shas: list[str]) -> None:
    assert shas
    assert "--commits N begins one" in say(tmp_path).stdout


def test_what_is_wrong_is_said_with_what_to_do(tmp_path: Path, shas: list[str]) -> None:
    assert shas
    assert say(tmp_path, "--commits", "2", "--cancel").exit_code == 2
    assert say(tmp_path, "--commits", "2", "--order", "newest").exit_code == 2
    for words, wrong in (
        (("--commits", "501"), "1 to 500"),
        (("--cancel",), "no backfill of 'demo'"),
        (("--commits", "2", "--fork", "other"), "watches 'demo'"),
    ):
        refused = say(tmp_path, *words)
        assert isinstance(refused.exception, DoorError)
        assert wrong in str(refused.exception)


def test_without_a_repository_it_names_the_setting(tmp_path: Path) -> None:
    refused = CliRunner().invoke(APP, ["--home", str(tmp_path), "--fork", "demo"])

    assert isinstance(refused.exception, SettingsError)
    assert "FORKWATCH_REPOSITORY" in str(refused.exception)
