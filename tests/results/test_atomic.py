"""A file is the old one or the new one, whole, whoever else writes it and whoever is killed."""

from __future__ import annotations

import signal
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from results.atomic import write_atomically
from runner import shell

if TYPE_CHECKING:
    from pathlib import Path

#: Dies when all is written, and before it is in its place.
KILLED = """
import os, signal, sys
from pathlib import Path
from results.atomic import write_atomically

os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(Path(sys.argv[1]), "of somebody who was killed, and long")
"""


def test_what_a_killed_writer_left_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "digest.md"
    write_atomically(path, "old")
    done = shell.run([sys.executable, "-c", KILLED, str(path)], timeout_s=120)

    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2, "it was killed in the middle"

    write_atomically(path, "new", mode=0o600)

    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_many_writers_of_one_file_leave_one_of_their_texts(tmp_path: Path) -> None:
    path = tmp_path / "alert.md"
    texts = [f"{number}" * 100_000 for number in range(8)]
    write_atomically(path, texts[0])

    def write(text: str) -> bool:
        for _ in range(20):
            write_atomically(path, text)
            if path.read_text() not in texts:
                return False
        return True

    with ThreadPoolExecutor(len(texts)) as pool:
        assert all(pool.map(write, texts))
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "alert.md"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\udc80")

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_its_way_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    (tmp_path / ".alert.md.part").symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic link"):
        write_atomically(tmp_path / "alert.md", "theirs")

    assert elsewhere.read_text() == "mine"
