"""What cannot work is said before a service starts, with the variable and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2
import pytest
from sqlalchemy import create_engine

from service.app.serve import serve
from service.app.sole_service import only_one
from service.app.start_checks import check_start, prepare_database
from service.core.errors import SettingsError
from service.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.postgres_server import PostgresServer


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FORKWATCH_{name.upper()}", raising=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "fork"
    pygit2.init_repository(str(folder))
    return folder


def test_right_settings_pass(tmp_path: Path, repository: Path) -> None:
    check_start(load_settings(home=tmp_path, repository=repository))
    check_start(load_settings(home=tmp_path))
    check_start(load_settings(home=tmp_path, database_url="postgresql://fw@nowhere/fw"))


def test_every_fault_is_named_at_once(tmp_path: Path) -> None:
    settings = load_settings(
        home=tmp_path,
        database_url=f"sqlite:///{tmp_path / 'none' / 'a.sqlite'}",
        dbos_url="sqlite://",
        repository=tmp_path / "gone",
        digest_time_zone="Europe/Helsinky",
    )
    with pytest.raises(SettingsError) as told:
        check_start(settings)

    lines = str(told.value).splitlines()
    assert [line.split("=")[0].split(":")[0] for line in lines] == [
        "FORKWATCH_DATABASE_URL",
        "FORKWATCH_DBOS_URL",
        "FORKWATCH_REPOSITORY",
        "FORKWATCH_DIGEST_TIME_ZONE",
    ]
    assert f"there is no folder {tmp_path / 'none'}; make it" in lines[0]
    assert "in memory" in lines[1]
    assert "clone the fork there" in lines[2]
    assert "Europe/Helsinki" in lines[3]


def test_a_folder_that_is_no_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="this is no git repository"):
        check_start(load_settings(home=tmp_path, repository=tmp_path))


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(SettingsError, match=r"give --home or set FORKWATCH_HOME"):
        serve(load_settings(home=taken))


def test_a_home_is_held_by_one_and_free_again_afterwards(tmp_path: Path) -> None:
    with only_one(tmp_path), pytest.raises(SettingsError, match="another service"):
        only_one(tmp_path).__enter__()

    with only_one(tmp_path):
        pass


def test_a_database_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://fw:hunter2@/forkwatch?host={tmp_path}"
    settings = load_settings(home=tmp_path, database_url=url)
    with pytest.raises(SettingsError, match="FORKWATCH_DATABASE_URL: the data") as told:
        prepare_database(settings)

    assert "hunter2" not in str(told.value)


def test_a_database_that_is_not_there_is_named(tmp_path: Path, postgres: PostgresServer) -> None:
    settings = load_settings(home=tmp_path, database_url=postgres.url("no_such_database"))
    with pytest.raises(SettingsError, match='database "no_such_database" does not exist'):
        prepare_database(settings)


def test_a_database_of_a_newer_version_says_what_to_install(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path)
    prepare_database(settings)
    engine = create_engine(settings.data_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()

    with pytest.raises(SettingsError, match=r"'9999'.*install the newest one"):
        prepare_database(settings)
