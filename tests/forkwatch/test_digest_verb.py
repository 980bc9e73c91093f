"""The verb on a service's store; what a digest says is tested beside the flow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from forkwatch.digest_reading import read_digests
from forkwatch.digest_verb import digest
from forkwatch.errors import DoorError
from service.core.errors import NotFoundError, SettingsError
from service.core.settings import load_settings
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.memory_fork import StillClock
from tests.fakes.stored_weeks import DAY, MONDAY, SAME, SLOWER, WEEK, Weeks, sha_of

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from click.testing import Result

    from service.core.settings import Settings

CALM = {"scan": SAME, "point-query": SAME}
APP = typer.Typer()
APP.command()(digest)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of a service that has seen two forks in the week 45."""
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    with database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found=CALM)
        weeks.confirmed(MONDAY + DAY, {"scan": SLOWER}, subject="Check every record")
        Weeks(session, fork="quiet").commit(MONDAY, found=CALM)
    database.close()
    return tmp_path


def say(home: Path, *words: str) -> Result:
    return CliRunner().invoke(APP, ["--home", str(home), "--week", "2026-W45", *words])


def names(settings: Settings, now: datetime, **asked: str | None) -> list[tuple[str, str]]:
    """Return the forks and weeks that are read at this time."""
    words = {"week_name": None, "fork_name": None, "against": None, "zone_name": "UTC"} | asked
    found = read_digests(settings, **words, clock=StillClock(now))
    return [(one.fork, one.week) for one in found]


def test_it_prints_every_fork_in_lines_that_fit(home: Path) -> None:
    said = say(home)

    assert said.exit_code == 0, said.output
    lines = said.stdout.splitlines()
    assert lines[0] == "demo, week 2026-W45: 1 commit slower"
    assert lines[-1].startswith("quiet, week 2026-W45: nothing to say; 1 commit followed")
    assert max(map(len, lines)) <= 80


def test_one_fork_as_markdown(home: Path) -> None:
    said = say(home, "--fork", "demo", "--markdown")

    assert said.stdout.startswith("# demo, week 2026-W45: 1 commit slower\n\n2 to 8 November 2026")
    assert "Check every record" in said.stdout


def test_json_is_a_list_of_documents(home: Path) -> None:
    found = json.loads(say(home, "--json").stdout)

    assert [one["facts"]["fork"] for one in found] == ["demo", "quiet"]
    assert [one["quiet"] for one in found] == [False, True]


def test_a_commit_to_compare_with_is_named(home: Path) -> None:
    said = say(home, "--fork", "demo", "--against", sha_of(1))

    assert "the chosen commit" in said.stdout


def test_nothing_is_written(home: Path) -> None:
    before = (home / "service.sqlite").read_bytes()
    say(home)

    assert (home / "service.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--week", "2026-W60"), "has no week 60"),
        (("--week", "yesterday"), "write it as 2026-W47"),
        (("--week", "2999-W01"), "has not begun"),
        (("--fork", "nobody"), "stored are: demo, quiet"),
        (("--against", "ffff"), "no measured commit ffff"),
    ],
)
def test_what_cannot_be_is_one_sentence(home: Path, words: tuple[str, ...], message: str) -> None:
    said = say(home, *words)

    assert isinstance(said.exception, DoorError)
    assert message in str(said.exception)


def test_a_zone_that_is_none_is_named(home: Path) -> None:
    assert isinstance(say(home, "--time-zone", "Nowhere").exception, SettingsError)


def test_two_formats_at_once_are_misuse(home: Path) -> None:
    assert say(home, "--json", "--markdown").exit_code == 2


def test_a_folder_without_a_service_stays_empty(tmp_path: Path) -> None:
    said = say(tmp_path)

    assert isinstance(said.exception, DoorError)
    assert "is --home the service's?" in str(said.exception)
    assert list(tmp_path.iterdir()) == []


def test_an_old_database_is_told_what_to_run(tmp_path: Path) -> None:
    upgrade(f"sqlite:///{tmp_path / 'service.sqlite'}", "0001")

    assert "forkwatch db upgrade" in str(say(tmp_path).exception)


def test_the_usual_week_is_the_last_whole_one(home: Path) -> None:
    settings = load_settings(home=home)

    assert names(settings, MONDAY + 3 * WEEK) == [("demo", "2026-W47"), ("quiet", "2026-W47")]
    # A fork that is younger than a week has something to say about this one.
    assert names(settings, MONDAY + 2 * DAY)[0] == ("demo", "2026-W45")
    assert names(settings, MONDAY + WEEK)[0] == ("demo", "2026-W45")


def test_a_week_can_be_asked_for_while_it_runs(home: Path) -> None:
    settings = load_settings(home=home)

    asked = names(settings, MONDAY + 2 * DAY, week_name="2026-W45", fork_name="demo")
    assert asked == [("demo", "2026-W45")]
    with pytest.raises(DoorError, match="has not begun; it is 2026-W45 now"):
        names(settings, MONDAY + 2 * DAY, week_name="2026-W46")


def test_a_missing_commit_is_told_before_the_verb_words_it(home: Path) -> None:
    with pytest.raises(NotFoundError):
        names(load_settings(home=home), MONDAY + DAY, fork_name="demo", against="ffff")
