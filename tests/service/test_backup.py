"""A backup is whole though others write meanwhile, and comes back as it was; or says why not."""

from __future__ import annotations

import fcntl
import json
import sqlite3
import tarfile
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from service.app.backups import DATA, FLOWS, backup, restore
from service.app.sole_service import LOCK_FILE
from service.core.errors import SettingsError
from service.core.settings import Settings, load_settings
from service.store import commits, migrate
from service.store.backup import BackupError, Manifest, copy_database
from service.store.database import Database
from service.store.revisions import newest_revision
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.stored_fork import SHAS, a_week

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FORKWATCH_{name.upper()}", raising=False)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a service that has lived for a week, in a home of its own."""
    found = load_settings(home=tmp_path / "home")
    found.home_folder.mkdir()
    migrate.upgrade(found.data_url)
    database = Database(found.data_url)
    with database.writing() as session:
        a_week(session)
    database.close()
    with closing(sqlite3.connect(found.home_folder / FLOWS)) as flows:
        flows.execute("CREATE TABLE workflow_status (name TEXT)")
        flows.execute("INSERT INTO workflow_status VALUES ('watch_commit')")
        flows.commit()
    return found


def flows_in(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / FLOWS)) as flows:
        return [row[0] for row in flows.execute("SELECT name FROM workflow_status")]


def shas_in(settings: Settings) -> set[str]:
    database = Database(settings.data_url)
    with database.reading() as session:
        found = {commit.sha for commit in commits.newest(session, "demo")}
    database.close()
    return found


def test_what_was_written_down_comes_back_in_another_home(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "today.tar"
    manifest = backup(settings, file, clock=StillClock())
    other = load_settings(home=tmp_path / "other")
    restored = restore(other, file)

    assert manifest.revision == newest_revision()
    assert manifest.made_at == AT
    assert restored.manifest == manifest
    assert restored.aside is None
    assert shas_in(other) == set(SHAS)
    assert flows_in(other.home_folder) == ["watch_commit"]
    migrate.check(other.data_url)


def test_the_file_is_for_its_owner_and_nothing_is_left_beside_it(
    settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    backup(settings, folder / "today.tar")

    assert [path.name for path in folder.iterdir()] == ["today.tar"]
    assert (folder / "today.tar").stat().st_mode & 0o777 == 0o600
    with tarfile.open(folder / "today.tar") as tar:
        assert tar.getnames() == ["manifest.json", FLOWS, DATA]


def test_what_is_there_is_kept_aside_and_only_where_that_is_wanted(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "today.tar"
    backup(settings, file)
    database = Database(settings.data_url)
    with database.writing() as session:
        session.connection().exec_driver_sql("UPDATE commits SET author = 'Somebody'")
    database.close()

    with pytest.raises(BackupError, match="give --force"):
        restore(settings, file)
    restored = restore(settings, file, force=True, clock=StillClock())

    aside = settings.home_folder / "before-restore-20261103T063000Z"
    assert restored.aside == aside
    assert {path.name for path in aside.iterdir()} >= {DATA, FLOWS}
    with closing(sqlite3.connect(aside / DATA)) as old:
        assert old.execute("SELECT DISTINCT author FROM commits").fetchall() == [("Somebody",)]
    with closing(sqlite3.connect(settings.home_folder / DATA)) as new:
        assert ("Somebody",) not in new.execute("SELECT author FROM commits").fetchall()


def test_what_sqlite_keeps_beside_a_database_goes_aside_with_it(
    settings: Settings, tmp_path: Path
) -> None:
    """A killed service leaves a log of writes behind; it belongs to the old database."""
    file = tmp_path / "today.tar"
    backup(settings, file)
    with closing(sqlite3.connect(settings.home_folder / DATA)) as open_:
        open_.execute("PRAGMA journal_mode=WAL")
        open_.execute("UPDATE commits SET author = 'Somebody'")
        open_.commit()
        assert (settings.home_folder / f"{DATA}-wal").exists()
        restored = restore(settings, file, force=True)
        assert restored.aside is not None
        assert (restored.aside / f"{DATA}-wal").exists()

    assert not (settings.home_folder / f"{DATA}-wal").exists()
    assert shas_in(settings) == set(SHAS)


def test_a_service_that_runs_is_not_written_over(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "today.tar"
    backup(settings, file)
    with (settings.home_folder / LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SettingsError, match="another service works in"):
            restore(settings, file, force=True)

    assert not list(settings.home_folder.glob("before-restore-*"))


def test_a_copy_is_of_one_moment_though_somebody_writes(tmp_path: Path) -> None:
    """Two rows that are always written together are never seen apart."""
    source = tmp_path / "live.sqlite"
    with closing(sqlite3.connect(source)) as live:
        live.execute("PRAGMA journal_mode=WAL")
        live.execute("CREATE TABLE pairs (number INTEGER, half TEXT)")
        live.commit()
    begun, ended = threading.Event(), threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(source, timeout=120)) as writer:
            number = 0
            while not ended.is_set():
                number += 1
                writer.execute("INSERT INTO pairs VALUES (?, 'left')", (number,))
                writer.execute("INSERT INTO pairs VALUES (?, ?)", (number, "right" * 200))
                writer.commit()
                begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(120)
        for place in range(10):
            copy_database(source, tmp_path / f"copy-{place}")
    finally:
        ended.set()
        thread.join()

    sizes = []
    for place in range(10):
        with closing(sqlite3.connect(tmp_path / f"copy-{place}")) as copy:
            assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            query = "SELECT count(*), count(DISTINCT number), sum(half = 'left') FROM pairs"
            rows, numbers, lefts = copy.execute(query).fetchone()
        assert rows == 2 * numbers
        assert lefts == numbers
        sizes.append(numbers)
    assert sizes == sorted(sizes)


def test_a_file_that_is_there_is_not_written_over(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "today.tar"
    file.write_text("precious")
    with pytest.raises(BackupError, match="is there already; name a new file"):
        backup(settings, file)

    assert file.read_text() == "precious"


def test_a_home_without_databases_says_so(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="is this the home of the service"):
        backup(load_settings(home=tmp_path / "nobody"), tmp_path / "today.tar")
    with pytest.raises(BackupError, match="there is no folder"):
        backup(load_settings(home=tmp_path), tmp_path / "none" / "today.tar")


def rewritten(file: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Change the members of a backup."""
    with tarfile.open(file) as tar:
        members = {name: _content(tar, name) for name in tar.getnames()}
    change(members)
    with tarfile.open(file, "w") as tar:
        for name, content in members.items():
            path = file.with_name("member")
            path.write_bytes(content)
            tar.add(path, arcname=name)


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    stream = tar.extractfile(name)
    assert stream is not None
    return stream.read()


def damaged(members: dict[str, bytes]) -> None:
    members[DATA] = members[DATA][:-4096] + bytes(4096)


def without_flows(members: dict[str, bytes]) -> None:
    manifest = json.loads(members["manifest.json"])
    del manifest["databases"][FLOWS], members[FLOWS]
    members["manifest.json"] = json.dumps(manifest).encode()


def promised_only(members: dict[str, bytes]) -> None:
    del members[FLOWS]


def of_the_future(members: dict[str, bytes]) -> None:
    manifest = Manifest.model_validate_json(members["manifest.json"])
    newer = manifest.model_copy(update={"revision": "9999"})
    members["manifest.json"] = newer.model_dump_json().encode()


def without_manifest(members: dict[str, bytes]) -> None:
    del members["manifest.json"]


def odd_manifest(members: dict[str, bytes]) -> None:
    members["manifest.json"] = b'{"format": "other"}'


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (damaged, "service.sqlite is damaged"),
        (without_flows, "has no flows.sqlite"),
        (promised_only, "has no flows.sqlite"),
        (of_the_future, "revision 9999 .* does not know; install"),
        (without_manifest, "is no backup of forkwatch"),
        (odd_manifest, "is no backup of forkwatch"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_no_whole_backup_changes_nothing(
    change: Callable[[dict[str, bytes]], None], told: str, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "today.tar"
    backup(settings, file)
    rewritten(file, change)
    before = sorted(path.name for path in settings.home_folder.iterdir())

    with pytest.raises(BackupError, match=told):
        restore(settings, file, force=True)
    after = sorted(path.name for path in settings.home_folder.iterdir())
    assert [name for name in after if name != LOCK_FILE] == before
    assert shas_in(settings) == set(SHAS)


@pytest.fixture(params=["text", "absent"])
def no_archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "odd.tar"
    if request.param == "text":
        file.write_text("nothing of the kind")
    yield file
    file.unlink(missing_ok=True)


def test_what_is_no_archive_is_refused(no_archive: Path, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"is no backup of forkwatch|cannot be read"):
        restore(load_settings(home=tmp_path / "home"), no_archive)


def test_a_database_without_tables_is_no_backup(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path)
    for name in (DATA, FLOWS):
        with closing(sqlite3.connect(tmp_path / name)) as empty:
            empty.execute("CREATE TABLE something (number)")
    with pytest.raises(BackupError, match="has no tables of forkwatch"):
        backup(settings, tmp_path / "today.tar")


def test_for_postgresql_its_own_programs_are_named_without_the_password(tmp_path: Path) -> None:
    settings = load_settings(
        home=tmp_path, database_url="postgresql+psycopg://fw:hunter2@db.example/forkwatch"
    )
    address = "'postgresql://fw@db.example/forkwatch'"

    with pytest.raises(BackupError, match="pg_dump --format=custom") as told:
        backup(settings, tmp_path / "today.dump")
    assert address in str(told.value)
    assert "hunter2" not in str(told.value)
    with pytest.raises(BackupError, match="pg_restore --clean --if-exists") as told:
        restore(settings, tmp_path / "today.dump")
    assert address in str(told.value)
