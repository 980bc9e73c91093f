"""The verbs on a service's database; what they do is tested beside what does it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from forkwatch.db_verbs import database
from forkwatch.errors import DoorError
from service.core.errors import SettingsError
from service.core.settings import Settings, load_settings
from service.store import commits
from service.store.database import Database
from tests.fakes.memory_fork import AT
from tests.fakes.old_runs import a_branch, a_run_with_seconds, accept_level
from tests.fakes.stored_fork import git_commit, measured
from tests.fakes.stored_weeks import sha_of

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


#: The runs of the builders are of November 2026, and the clock of the verbs is the machine's.
LONG_AGO = "UPDATE runs SET stored_at = '2020-01-01 00:00:00.000000'"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FORKWATCH_{name.upper()}", raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose service has written down three commits, flows included."""
    home = tmp_path / "home"
    assert say("upgrade", "--home", str(home)).exit_code == 0
    with closing(sqlite3.connect(home / "flows.sqlite")) as flows:
        flows.execute("CREATE TABLE workflow_status (name TEXT)")
    store = Database(load_settings(home=home).data_url)
    with store.writing() as session:
        shas = a_branch(session, 3)
        accept_level(session, shas[2])
    store.close()
    return home


def say(*words: str) -> Result:
    return CliRunner().invoke(database, list(words))


def told(result: Result) -> str:
    """Return the one line that a user reads of a failure."""
    assert isinstance(result.exception, DoorError), result.output
    return str(result.exception)


def test_upgrade_makes_what_check_wants(tmp_path: Path) -> None:
    before = say("check", "--home", str(tmp_path / "new"))
    assert "run `forkwatch db upgrade`" in told(before)

    assert say("upgrade", "--home", str(tmp_path / "new")).exit_code == 0
    after = say("check", "--home", str(tmp_path / "new"))
    assert (after.exit_code, after.stdout) == (0, "the database is as this version needs it\n")


def test_a_backup_is_made_and_restored(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "today.tar"
    made = say("backup", str(file), "--home", str(home))
    assert made.exit_code == 0, made.output
    assert "today.tar" in made.stdout
    assert "revision 0" in made.stdout

    restored = say("restore", str(file), "--home", str(tmp_path / "other"))
    assert restored.exit_code == 0, restored.output
    assert restored.stdout.startswith("restored as of 20")
    assert "before" not in restored.stdout
    assert say("check", "--home", str(tmp_path / "other")).exit_code == 0


def test_what_is_there_is_put_aside_by_force_alone(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "today.tar"
    say("backup", str(file), "--home", str(home))

    assert "give --force" in told(say("restore", str(file), "--home", str(home)))
    forced = say("restore", str(file), "--home", str(home), "--force")
    assert forced.exit_code == 0, forced.output
    assert "what was there before: " in forced.stdout


def test_faults_are_one_line_for_the_user(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "today.tar"
    file.write_text("precious")

    assert "is there already" in told(say("backup", str(file), "--home", str(home)))
    assert "is no backup" in told(say("restore", str(file), "--home", str(tmp_path / "other")))
    assert "run `forkwatch db upgrade`" in told(say("prune", "--home", str(tmp_path / "other")))


def test_a_wrong_setting_is_said_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKWATCH_KEEP_SAMPLES_DAYS", "a year")
    wrong = say("prune")

    assert isinstance(wrong.exception, SettingsError)
    assert "FORKWATCH_KEEP_SAMPLES_DAYS" in str(wrong.exception)


def test_pruning_says_that_nothing_is_to_be_pruned(home: Path) -> None:
    result = say("prune", "--home", str(home))

    assert result.exit_code == 0
    assert result.stdout.startswith("everything is kept for ever")


def test_pruning_says_what_would_go_and_then_lets_it_go(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Database(load_settings(home=home).data_url)
    with store.writing() as session:
        session.connection().exec_driver_sql(LONG_AGO)
    store.close()
    monkeypatch.setenv("FORKWATCH_KEEP_SAMPLES_DAYS", "30")
    would = say("prune", "--dry-run", "--home", str(home))
    assert would.exit_code == 0, would.output
    assert would.stdout.startswith("would go: ")
    assert " samples of 2 runs" in would.stdout

    numbers = json.loads(say("prune", "--home", str(home), "--json").stdout)
    assert (numbers["dry_run"], numbers["runs"], numbers["documents"]) == (False, 2, 0)
    assert numbers["rows"] > 0
    again = json.loads(say("prune", "--home", str(home), "--json").stdout)
    assert (again["runs"], again["rows"]) == (0, 0)


def test_pruning_of_seconds_says_how_many_bytes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Database(load_settings(home=home).data_url)
    with store.writing() as session:
        commits.register(session, "demo", [git_commit("f" * 40, parent=sha_of(2))], at=AT)
        a_run_with_seconds(session, measured("more", "f" * 40, scan=2.0, point=60000.0))
        session.connection().exec_driver_sql(LONG_AGO)
    store.close()
    monkeypatch.setenv("FORKWATCH_KEEP_SECONDS_DAYS", "30")
    result = say("prune", "--home", str(home))

    assert result.stdout.startswith("gone: the seconds of 1 documents, ")
    assert "older than 30 days" in result.stdout
