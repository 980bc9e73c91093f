"""The lock that one service holds on its home folder; what replaces databases holds it too."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from service.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Held while a service works in a home folder, so that a second one cannot resume the same flows.
LOCK_FILE: Final = "service.lock"


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Hold the lock of a home folder, which is made where it is not there.

    Raises:
        SettingsError: A service works in it, or it cannot be written.
    """
    _make(home)
    with (home / LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                f"another service works in {home}; stop it or give --home"
            ) from None
        yield


def _make(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        (home / LOCK_FILE).touch()
    except OSError as error:
        raise SettingsError(
            f"{home} cannot be written ({error.strerror}); give --home or set FORKWATCH_HOME"
        ) from error
