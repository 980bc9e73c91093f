from __future__ import annotations

import fcntl
import socket
from typing import TYPE_CHECKING

import pytest

from service.app.database import check, upgrade
from service.app.serve import listening, serve
from service.app.sole_service import LOCK_FILE
from service.core.errors import ServiceError, SettingsError
from service.core.settings import Settings, load_settings
from tests.fakes.free_ports import free_port

if TYPE_CHECKING:
    from pathlib import Path


def never(_settings: Settings, _cpus: object) -> None:
    raise AssertionError("nothing may be composed")


def test_a_second_service_in_the_same_home_is_refused(tmp_path: Path) -> None:
    with (tmp_path / LOCK_FILE).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(SettingsError, match="another service works in"):
            serve(load_settings(home=tmp_path), composed=never)  # type: ignore[arg-type]


def test_a_port_in_use_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = load_settings(home=tmp_path, port=taken.getsockname()[1])
        with pytest.raises(SettingsError, match="give --port"):
            serve(settings, composed=never)  # type: ignore[arg-type]


def test_an_answer_in_two_parts_does_not_wait_for_its_reader(tmp_path: Path) -> None:
    with listening(load_settings(home=tmp_path, port=free_port())) as listener:
        reader = socket.create_connection(listener.getsockname())
        writer, _ = listener.accept()
        with reader, writer:
            assert writer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_database_is_made_by_upgrade_and_checked(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path / "new")
    upgrade(settings)
    check(settings)

    other = load_settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'other.sqlite'}")
    with pytest.raises(ServiceError, match="db upgrade"):
        check(other)
