"""Writing a file so that a reader, or a crash, meets the old one or the new one, whole."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Replace the file at `path` with `text`; it never has looser permissions than `mode`.

    A process that is killed in the middle leaves a hidden file beside it, which whoever writes it
    the next time takes over.
    """
    beside = path.with_name(f".{path.name}.part")
    with os.fdopen(_opened_alone(beside), "w", encoding="utf-8") as file:
        try:
            # A credential is never on show, not even in what somebody else left.
            os.fchmod(file.fileno(), mode & 0o600)
            file.truncate(0)
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink()
            raise


def _opened_alone(path: Path) -> int:
    """Open a file that nobody else writes; wait for whoever does."""
    while True:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(handle), path.lstat()):
                return handle
        except FileNotFoundError:
            # Its writer has put it into its place meanwhile: this is the finished file.
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
