"""A seat is one replica's, a lock is one thread's, and both are gone with their connection."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, text

from service.app import replicas as joining
from service.app.replicas import Replicas
from service.app.sole_service import home_id
from service.core.errors import SettingsError
from service.core.settings import load_settings
from service.store.replica_locks import ReplicaLocks, alone, number_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fakes.postgres_server import PostgresServer

#: Nobody waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 120


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
def first(url: str) -> Iterator[ReplicaLocks]:
    """The locks of a replica that has its seat."""
    locks = ReplicaLocks(url, name="first")
    assert locks.take_seat("home", patience_seconds=0)
    yield locks
    locks.leave()


def end_connections(url: str) -> None:
    """End every other connection to a database, as its restart would; return when all are over."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        # Without a time it only asks them to end, and one may answer its client once more.
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, :patience_ms) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'"
            ),
            {"patience_ms": PATIENCE_SECONDS * 1000},
        )
    engine.dispose()


def test_a_name_has_one_seat(url: str, first: ReplicaLocks) -> None:
    again, second = ReplicaLocks(url, name="first"), ReplicaLocks(url, name="second")

    assert not again.take_seat("home", patience_seconds=0.3)
    assert second.take_seat("home", patience_seconds=0)
    assert first.seats() == {number_of("first"), number_of("second")}
    with second.vacant("first") as vacant:
        assert not vacant

    first.leave()
    assert again.take_seat("home", patience_seconds=PATIENCE_SECONDS)
    again.leave()
    second.leave()


def test_a_seat_that_somebody_looks_after_is_taken_when_they_are_done(url: str) -> None:
    heir, owner = ReplicaLocks(url, name="heir"), ReplicaLocks(url, name="owner")
    with heir.vacant("owner") as vacant:
        assert vacant
        assert not owner.take_seat("home", patience_seconds=0)

    assert owner.take_seat("home", patience_seconds=PATIENCE_SECONDS)
    owner.leave()


def test_a_lost_seat_is_taken_again(url: str, first: ReplicaLocks) -> None:
    assert first.keep_seat()
    end_connections(url)

    assert first.keep_seat()
    assert first.seats() == {number_of("first")}


def test_another_home_is_seen(url: str, first: ReplicaLocks) -> None:
    assert not first.other_homes()
    other = ReplicaLocks(url, name="second")
    assert other.take_seat("elsewhere", patience_seconds=0)

    assert first.other_homes()
    assert other.other_homes()
    other.leave()


def test_a_lock_keeps_threads_and_replicas_apart(url: str, first: ReplicaLocks) -> None:
    ours, theirs = first.alone("deed"), ReplicaLocks(url, name="second").alone("deed")
    done: list[str] = []

    def wait_and_do() -> None:
        with theirs:
            done.append("theirs")

    waiting = threading.Thread(target=wait_and_do)
    with ours, ours:
        with first.alone("another deed"):
            waiting.start()
        waiting.join(0.3)
        done.append("ours")
    waiting.join(PATIENCE_SECONDS)

    assert done == ["ours", "theirs"]
    with alone(url, "deed"):
        done.append("nobody holds it any more")


def test_a_lock_that_broke_is_no_lock_and_can_be_taken_again(url: str, first: ReplicaLocks) -> None:
    deed = first.alone("deed")
    with deed:
        end_connections(url)
    with deed, alone(url, "another deed"):
        pass


def test_replicas_need_names_of_their_own_and_one_home(url: str, tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("home", "other")]
    for home in homes:
        home.mkdir()

    def replicas(home: Path, name: str) -> Replicas:
        return Replicas(load_settings(home=home, replica=name, database_url=url))

    there = [replicas(homes[0], name) for name in ("a", "b")]
    for one in there:
        one.join()
    with pytest.raises(SettingsError, match="give its --home"):
        replicas(homes[1], "c").join()
    for one in there:
        one.leave()


def test_a_name_in_use_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "JOIN_SECONDS_MAX", 0.2)
    settings = load_settings(home=tmp_path, replica="a", database_url=url)
    there = Replicas(settings)
    there.join()

    with pytest.raises(SettingsError, match="FORKWATCH_REPLICA"):
        Replicas(settings).join()
    there.leave()


def test_a_home_keeps_its_id(tmp_path: Path) -> None:
    found = home_id(tmp_path)

    assert home_id(tmp_path) == found
    (tmp_path / "other").mkdir()
    assert home_id(tmp_path / "other") != found


def test_on_sqlite_there_is_one_process_and_nothing_to_join(tmp_path: Path) -> None:
    alone_here = Replicas(load_settings(home=tmp_path))
    alone_here.join()
    alone_here.start(lambda: None)

    with alone_here.alone("deed"):
        pass
    alone_here.stop()
    assert list(tmp_path.iterdir()) == []
